//===- TileConvolution.cpp - Convolutions as products of tiles ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors are transformed tile by tile on their way into and out of products.
// The gradient of the input is a convolution of the cotangent by turned
// windows.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/TileState.h"

using namespace penstock::runtime;

Planes TileConvolution::getPlanes(const float *tensor, bool isInput,
                                  int64_t channel,
                                  const TileStrip &strip) const {
  const int64_t *size = isInput ? conv.input : conv.output;
  int64_t channels = isInput ? conv.input_channels : conv.output_channels;
  int64_t plane = size[0] * size[1];
  return {const_cast<float *>(tensor) +
              (strip.firstSample * channels + channel) * plane,
          channels * plane,
          size[0],
          size[1],
          0,
          0};
}

void TileConvolution::transformSource(const TileStrip &strip, int64_t channel,
                                      TilePart &part) {
  const TilePoints &inputs = part.inputs;
  Planes planes =
      getPlanes(isTurned ? output : input, !isTurned, channel, strip);
  planes.top = isTurned ? 2 - conv.pad_before[0] : conv.pad_before[0];
  planes.left = isTurned ? 2 - conv.pad_before[1] : conv.pad_before[1];
  transformInputs(strip, planes, at(part.spread),
                  at(inputs.offset) + channel * inputs.columns,
                  inputs.stride());
}

/// Sixteen channels of a sample.
void TileConvolution::transformChannels(int64_t index, TilePart &part) {
  int64_t sample = index % strip.batch, first = index / strip.batch * 16;
  const TilePoints &inputs = part.inputs;
  float *result = at(inputs.offset) + first;
  ChannelPlanes planes = {input +
                              ((strip.firstSample + sample) * sources + first) *
                                  conv.input[0] * conv.input[1],
                          std::min<int64_t>(16, sources - first),
                          sample,
                          conv.input[0],
                          conv.input[1],
                          conv.pad_before[0],
                          conv.pad_before[1]};
  penstock::runtime::transformChannels(strip, planes, at(part.spread), result,
                                       inputs.stride(), inputs.columns);
  if (sample != 0)
    return;
  // What is left of vectors of tiles is multiplied by zeros.
  for (int64_t p = 0; p < inputs.count; ++p)
    for (int64_t y = 0; y < strip.rows; ++y)
      for (int64_t t = strip.lanes(); t < strip.line(); ++t)
        std::fill_n(result + p * inputs.stride() +
                        (y * strip.line() + t) * inputs.columns,
                    16, 0.0f);
}

void TileConvolution::transformCotangent(int64_t channel, TilePart &part) {
  int64_t row = division == TileDivision::Points ? channel : channel % block;
  transformCotangents(strip, getPlanes(output, false, channel, strip),
                      at(part.spread),
                      at(part.products.offset) + row * part.products.columns,
                      part.products.stride());
}

void TileConvolution::transformBlock(int64_t index, TilePart &part) {
  int64_t begin = index * block, count = std::min(block, results - begin);
  float *windows = getWindows(index, part);
  int64_t stride = part.windows.stride();
  if (isTurned) {
    for (int64_t s = 0; s < sources; ++s) {
      const float *from = weights + (s * results + begin) * kWindow;
      // The next windows stand far behind.
      for (int64_t i = 0; i < count * kWindow; i += 16)
        __builtin_prefetch(from + 4 * results * kWindow + i);
      transformWindows(strip.size, from, count, true, windows + s * block,
                       stride);
    }
    return;
  }
  for (int64_t m = 0; m < count; ++m)
    transformWindows(strip.size, weights + (begin + m) * sources * kWindow,
                     sources, false, windows + m * sources, stride);
}

void TileConvolution::multiply(float *a, float *b, float *c, TilePart &part) {
  float *operands[] = {a, b, c};
  bool done = true;
  for (int i = 0; i < 3; ++i)
    done &= oneDnn().dnnl_memory_set_data_handle(part.operands[i],
                                                 operands[i]) == dnnl_success;
  if (!done || !part.product.run(part.stream))
    hasFailed = true;
}

void TileConvolution::computeBlock(const TileStrip &strip, int64_t index,
                                   TilePart &part) {
  if (division == TileDivision::Blocks)
    transformBlock(index, part);
  float *products = at(part.products.offset);
  multiply(getWindows(index, part), at(part.inputs.offset), products, part);
  int64_t begin = index * block, count = std::min(block, results - begin);
  for (int64_t m = 0; m < count; ++m)
    transformOutputs(
        strip, products + m * part.products.columns, part.products.stride(),
        at(part.spread),
        getPlanes(isTurned ? input : output, isTurned, begin + m, strip));
}

void TileConvolution::computeGradients(int64_t index, TilePart &part) {
  int64_t begin = index * block, end = std::min(begin + block, results);
  for (int64_t m = begin; m < end; ++m)
    transformCotangent(m, part);
  multiply(at(part.products.offset), at(part.inputs.offset),
           at(part.windows.offset), part);
  for (int64_t m = begin; m < end; ++m)
    addGradients(m, part);
}

/// Computes a strip. The border around the planes stays zero from channel to
/// channel.
void TileConvolution::computeStrip(int64_t index, TilePart &part) {
  TileStrip own = getStrip(index);
  clearSpread(part);
  for (int64_t s = 0; s < sources; ++s)
    transformSource(own, s, part);
  for (int64_t b = 0; b < blocks(); ++b)
    computeBlock(own, b, part);
}

/// Transforms this part's share of the channels of a strip that threads compute
/// together.
void TileConvolution::transformShare(int64_t index, TilePart &part) {
  int64_t count = parts.size();
  auto share = [&](int64_t all, auto body) {
    for (int64_t i = all * index / count, end = all * (index + 1) / count;
         i < end; ++i)
      body(i);
  };
  clearSpread(part);
  if (!isWeightGrad)
    return share(sources, [&](int64_t s) { transformSource(strip, s, part); });
  share(part.inputs.columns / 16 * strip.batch,
        [&](int64_t i) { transformChannels(i, part); });
  clearSpread(part);
  if (division == TileDivision::Points)
    share(results, [&](int64_t m) { transformCotangent(m, part); });
}

void TileConvolution::addPoints(int64_t index, TilePart &part) {
  auto of = [&](const TilePoints &points) {
    return at(points.offset) + index * group() * points.stride();
  };
  if (strip.firstRow == 0 && strip.firstSample == 0)
    std::fill_n(of(part.windows), group() * part.windows.stride(), 0.0f);
  multiply(of(part.products), of(part.inputs), of(part.windows), part);
}

void TileConvolution::addGradients(int64_t channel, TilePart &part) {
  int64_t row = division == TileDivision::Points ? channel : channel % block;
  addWindows(strip.size, at(part.windows.offset) + row * part.windows.columns,
             part.windows.stride(), sources,
             const_cast<float *>(weights) + channel * sources * kWindow);
}

void TileConvolution::run(int64_t count,
                          void (TileConvolution::*step)(int64_t, TilePart &)) {
  struct Call {
    TileConvolution *method;
    void (TileConvolution::*step)(int64_t, TilePart &);
  } call = {this, step};
  oneDnn().runParts(count, &call, [](void *closure, int64_t index, int part) {
    Call &call = *static_cast<Call *>(closure);
    (call.method->*call.step)(index, call.method->parts[part]);
  });
}

void TileConvolution::compute() {
  switch (division) {
  case TileDivision::Strips:
    run(blocks(), &TileConvolution::transformBlock);
    return run(strips, &TileConvolution::computeStrip);
  case TileDivision::Blocks:
    run(parts.size(), &TileConvolution::transformShare);
    return run(blocks(), isWeightGrad ? &TileConvolution::computeGradients
                                      : &TileConvolution::computeOutputs);
  case TileDivision::Points:
    for (int64_t i = 0; i < strips; ++i) {
      strip = getStrip(i);
      run(parts.size(), &TileConvolution::transformShare);
      run(strip.points() / group(), &TileConvolution::addPoints);
    }
    strip = getStrip(0);
    return run(results, &TileConvolution::addGradients);
  }
}

bool TileConvolution::run(const float *input, const float *weights,
                          const float *output) {
  this->input = input;
  this->weights = weights;
  this->output = output;
  hasFailed = false;
  compute();
  return !hasFailed;
}

std::unique_ptr<ConvolutionMethod> penstock::runtime::makeTileConvolution() {
  return std::make_unique<TileConvolution>();
}
