//===- TileConvolution.cpp - Convolutions as products of tiles ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the input is a convolution of the cotangent by turned
// windows. So that what a product reads and writes is in a cache, tiles are
// computed in strips where there are few weights, and channels of the result in
// blocks where there are many. How is the same for any number of threads: the
// bits do not depend on it.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/TileConvolution.h"

#include "runtime/device/cpu/Step.h"
#include "runtime/device/cpu/Tiles.h"

#include <algorithm>
#include <atomic>

using namespace penstock::runtime;

namespace {

/// Matrices of all points of a tile, one after the other.
struct Points {
  int64_t count = 0, rows = 0, columns = 0;
  uint64_t offset = 0; // in the scratch

  /// Not a power of two: points at one place of a cache would fight for it.
  int64_t stride() const { return (rows * columns + 15) / 16 * 16 + 16; }
  uint64_t bytes() const { return aligned(count * stride() * sizeof(float)); }
};

constexpr int64_t kWindow = 9;

/// What a thread computes.
enum class Division {
  Blocks, ///< Channels of the result, for all tiles.
  Strips, ///< Rows of tiles, for all channels.
  Points, ///< Of all strips: the gradients of few weights are their sums.
};

/// What a thread has for itself.
struct Part {
  Points inputs, windows, products;
  uint64_t spread = 0, scratch = 0;
  Step product;
  dnnl_memory_t operands[3] = {};
  dnnl_stream_t stream = nullptr;
};

} // namespace

struct TileConvolution::State {
  penstock_conv_descriptor conv;
  bool isWeightGrad, isTurned;
  Division division;
  TileStrip strip; // The first, or the one that threads compute together.
  int64_t strips;
  /// Of what is transformed first, and of what is computed in blocks.
  int64_t sources, results, block;
  /// Of all blocks, where several strips have them in common.
  uint64_t windowsOffset = 0;
  std::vector<Part> parts;
  uint64_t bytes = 0;
  char *scratch = nullptr;
  /// Of the call that runs.
  const float *input, *weights, *output;
  std::atomic<bool> hasFailed;

  ~State();
  bool plan();
  void divide();
  void planParts();
  bool createProduct(Part &part);
  bool prepare(Part &part);
  void run();

private:
  float *at(uint64_t offset) const {
    return reinterpret_cast<float *>(scratch + offset);
  }
  Planes planesOf(const float *tensor, bool isInput, int64_t channel) const;
  int64_t blocks() const { return (results + block - 1) / block; }
  /// Of points, which a product takes at once.
  int64_t group() const {
    return strip.points() / (division == Division::Points ? 4 : 1);
  }
  float *windowsOf(int64_t index, const Part &part) const {
    return at(division == Division::Strips
                  ? windowsOffset + index * part.windows.bytes()
                  : part.windows.offset);
  }
  void clearSpread(const Part &part) const {
    std::fill_n(at(part.spread), strip.spread(), 0.0f);
  }
  void clearSpreads() const {
    for (const Part &part : parts)
      clearSpread(part);
  }
  void multiply(float *a, float *b, float *c, Part &part);
  void transformSource(const TileStrip &strip, int64_t channel, Part &part);
  void computeBlock(const TileStrip &strip, int64_t index, Part &part);

  // What the threads do, by number.
  void transformSource(int64_t channel, Part &part) {
    transformSource(strip, channel, part);
  }
  void transformCotangent(int64_t channel, Part &part);
  void transformBlock(int64_t index, Part &part);
  void computeBlock(int64_t index, Part &part) {
    computeBlock(strip, index, part);
  }
  void computeGradients(int64_t index, Part &part);
  void computeStrip(int64_t index, Part &part);
  void clearPoints(int64_t index, Part &part);
  void addPoints(int64_t index, Part &part);
  void addGradients(int64_t channel, Part &part);
  void run(int64_t count, void (State::*step)(int64_t, Part &));
};

TileConvolution::TileConvolution() = default;
TileConvolution::~TileConvolution() = default;

TileConvolution::State::~State() {
  const OneDnn &dnnl = oneDnn();
  for (Part &part : parts) {
    part.product.destroy();
    for (dnnl_memory_t memory : part.operands)
      if (memory)
        dnnl.dnnl_memory_destroy(memory);
    if (part.stream)
      dnnl.dnnl_stream_destroy(part.stream);
  }
}

bool TileConvolution::plan(const penstock_conv_descriptor &descriptor) {
  state = std::make_unique<State>();
  state->conv = descriptor;
  return state->plan();
}

uint64_t TileConvolution::getScratchBytes() const { return state->bytes; }

bool TileConvolution::State::plan() {
  if (conv.spatial_rank != 2 || conv.groups != 1)
    return false;
  for (int i = 0; i < 2; ++i)
    if (conv.kernel[i] != 3 || conv.stride[i] != 1 || conv.dilation[i] != 1 ||
        conv.pad_before[i] > 2 || conv.pad_after[i] > 2 ||
        conv.output[i] !=
            conv.input[i] + conv.pad_before[i] + conv.pad_after[i] - 2)
      return false;
  isWeightGrad = conv.kind == PENSTOCK_CONV_WEIGHT_GRAD;
  isTurned = conv.kind == PENSTOCK_CONV_INPUT_GRAD;
  sources = isTurned ? conv.output_channels : conv.input_channels;
  results = isTurned ? conv.input_channels : conv.output_channels;
  divide();
  planParts();
  for (Part &part : parts) {
    if (!createProduct(part))
      return false;
    part.scratch = bytes;
    bytes += aligned(part.product.getScratchBytes());
  }
  return true;
}

void TileConvolution::State::divide() {
  constexpr int64_t kSecondCache = 1 << 20, kKept = 1 << 15, kBlock = 64;
  const int64_t *plane = isTurned ? conv.input : conv.output;
  int64_t size = conv.layout == PENSTOCK_CONV_TILES_4X4 ? 4 : 2;
  int64_t rows = (plane[0] + size - 1) / size;
  strip = {size, conv.batch, (plane[1] + size - 1) / size, 0, rows};
  int64_t point = strip.points() * sizeof(float);
  // Into strips of equally many rows. Where all transformed windows take too
  // much, they are made once for all tiles, block by block.
  if (sources * results <= kKept) {
    int64_t channels = isWeightGrad ? std::max(sources, results) : sources;
    bool isOneBlock = results <= kBlock && !isWeightGrad;
    while (strip.rows > 1 &&
           (rows % strip.rows != 0 || (isOneBlock && strip.rows == rows) ||
            point * channels * strip.tiles() > kSecondCache))
      --strip.rows;
  }
  strips = rows / strip.rows;
  division = strips == 1    ? Division::Blocks
             : isWeightGrad ? Division::Points
                            : Division::Strips;
  if (division == Division::Points) {
    block = results;
    return;
  }
  block = kBlock;
  while (block > 16 &&
         point * block * (sources + strip.tiles()) > 2 * kSecondCache)
    block /= 2;
  // Equal ones, of whole vectors, and as many for each of two threads.
  int64_t count = blocks();
  if (division == Division::Blocks)
    count = (count + 1) / 2 * 2;
  block = ((results + count - 1) / count + 15) / 16 * 16;
}

void TileConvolution::State::planParts() {
  auto place = [&](Points &points) {
    points.offset = bytes;
    bytes += points.bytes();
  };
  Part common;
  common.inputs = {strip.points(), sources, strip.tiles()};
  common.windows = {strip.points(), isTurned ? sources : block,
                    isTurned ? block : sources};
  common.products = {strip.points(), block, strip.tiles()};
  if (division != Division::Strips)
    place(common.inputs);
  if (division == Division::Points) {
    place(common.windows);
    place(common.products);
  }
  for (int i = 0, threads = oneDnn().getThreads(); i < threads; ++i) {
    Part &part = parts.emplace_back(common);
    if (division == Division::Strips)
      place(part.inputs);
    if (division == Division::Blocks)
      place(part.windows);
    if (division != Division::Points)
      place(part.products);
    part.spread = bytes;
    bytes += aligned(strip.spread() * sizeof(float));
  }
  windowsOffset = bytes;
  if (division == Division::Strips)
    bytes += blocks() * common.windows.bytes();
}

/// For every point, products = windows x inputs, or windows = products x
/// inputs, with the windows' gradients for windows.
bool TileConvolution::State::createProduct(Part &part) {
  const OneDnn &dnnl = oneDnn();
  int64_t batch = group();
  auto describe = [&](const Points &points, bool isTransposed,
                      dnnl_memory_desc_t &result) {
    int64_t strides[] = {points.stride(), points.columns, 1};
    int64_t rows = points.rows, columns = points.columns;
    if (isTransposed) {
      std::swap(strides[1], strides[2]);
      std::swap(rows, columns);
    }
    return describeMatrix(1, &batch, strides, rows, columns, result);
  };
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t operation;
  bool isDescribed = isWeightGrad ? describe(part.products, false, a) &&
                                        describe(part.inputs, true, b) &&
                                        describe(part.windows, false, c)
                                  : describe(part.windows, isTurned, a) &&
                                        describe(part.inputs, false, b) &&
                                        describe(part.products, false, c);
  if (!isDescribed || dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr,
                                                 &c) != dnnl_success)
    return false;
  dnnl_primitive_attr_t attributes =
      makeAttributes(division == Division::Points);
  bool done = dnnl.dnnl_primitive_desc_create(&part.product.type, &operation,
                                              attributes, dnnl.engine,
                                              nullptr) == dnnl_success &&
              slowImplementation(part.product.type).empty();
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return done;
}

bool TileConvolution::prepare(char *scratch) {
  state->scratch = scratch;
  for (Part &part : state->parts)
    if (!state->prepare(part))
      return false;
  return true;
}

bool TileConvolution::State::prepare(Part &part) {
  const OneDnn &dnnl = oneDnn();
  if (dnnl.dnnl_stream_create(&part.stream, dnnl.engine,
                              dnnl_stream_default_flags) != dnnl_success)
    return false;
  constexpr dnnl_query_t kQueries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                       dnnl_query_dst_md};
  constexpr int kArguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  for (int i = 0; i < 3; ++i) {
    if (dnnl.dnnl_memory_create(&part.operands[i],
                                part.product.query(kQueries[i]), dnnl.engine,
                                scratch) != dnnl_success)
      return false;
    part.product.arguments.push_back({kArguments[i], part.operands[i]});
  }
  return part.product.prepare(scratch + part.scratch);
}

Planes TileConvolution::State::planesOf(const float *tensor, bool isInput,
                                        int64_t channel) const {
  const int64_t *size = isInput ? conv.input : conv.output;
  int64_t channels = isInput ? conv.input_channels : conv.output_channels;
  int64_t plane = size[0] * size[1];
  return {const_cast<float *>(tensor) + channel * plane,
          channels * plane,
          size[0],
          size[1],
          0,
          0};
}

void TileConvolution::State::transformSource(const TileStrip &strip,
                                             int64_t channel, Part &part) {
  const Points &inputs = part.inputs;
  Planes planes = planesOf(isTurned ? output : input, !isTurned, channel);
  planes.top = isTurned ? 2 - conv.pad_before[0] : conv.pad_before[0];
  planes.left = isTurned ? 2 - conv.pad_before[1] : conv.pad_before[1];
  transformInputs(strip, planes, at(part.spread),
                  at(inputs.offset) + channel * inputs.columns,
                  inputs.stride());
}

void TileConvolution::State::transformCotangent(int64_t channel, Part &part) {
  int64_t row = division == Division::Points ? channel : channel % block;
  transformCotangents(strip, planesOf(output, false, channel), at(part.spread),
                      at(part.products.offset) + row * part.products.columns,
                      part.products.stride());
}

void TileConvolution::State::transformBlock(int64_t index, Part &part) {
  int64_t begin = index * block, count = std::min(block, results - begin);
  float *windows = windowsOf(index, part);
  int64_t stride = part.windows.stride();
  if (isTurned) {
    for (int64_t s = 0; s < sources; ++s)
      transformWindows(strip.size, weights + (s * results + begin) * kWindow,
                       count, true, windows + s * block, stride);
    return;
  }
  for (int64_t m = 0; m < count; ++m)
    transformWindows(strip.size, weights + (begin + m) * sources * kWindow,
                     sources, false, windows + m * sources, stride);
}

void TileConvolution::State::multiply(float *a, float *b, float *c,
                                      Part &part) {
  float *operands[] = {a, b, c};
  bool done = true;
  for (int i = 0; i < 3; ++i)
    done &= oneDnn().dnnl_memory_set_data_handle(part.operands[i],
                                                 operands[i]) == dnnl_success;
  if (!done || !part.product.run(part.stream))
    hasFailed = true;
}

void TileConvolution::State::computeBlock(const TileStrip &strip, int64_t index,
                                          Part &part) {
  if (division == Division::Blocks)
    transformBlock(index, part);
  float *products = at(part.products.offset);
  multiply(windowsOf(index, part), at(part.inputs.offset), products, part);
  int64_t begin = index * block, count = std::min(block, results - begin);
  for (int64_t m = 0; m < count; ++m)
    transformOutputs(strip, products + m * part.products.columns,
                     part.products.stride(), at(part.spread),
                     planesOf(isTurned ? input : output, isTurned, begin + m));
}

void TileConvolution::State::computeGradients(int64_t index, Part &part) {
  int64_t begin = index * block, end = std::min(begin + block, results);
  for (int64_t m = begin; m < end; ++m)
    transformCotangent(m, part);
  multiply(at(part.products.offset), at(part.inputs.offset),
           at(part.windows.offset), part);
  for (int64_t m = begin; m < end; ++m)
    addGradients(m, part);
}

/// What lies around the planes stays zero from channel to channel.
void TileConvolution::State::computeStrip(int64_t index, Part &part) {
  TileStrip own = strip;
  own.firstRow = index * own.rows;
  clearSpread(part);
  for (int64_t s = 0; s < sources; ++s)
    transformSource(own, s, part);
  for (int64_t b = 0; b < blocks(); ++b)
    computeBlock(own, b, part);
}

void TileConvolution::State::clearPoints(int64_t index, Part &part) {
  int64_t count = group() * part.windows.stride();
  std::fill_n(at(part.windows.offset) + index * count, count, 0.0f);
}

void TileConvolution::State::addPoints(int64_t index, Part &part) {
  auto of = [&](const Points &points) {
    return at(points.offset) + index * group() * points.stride();
  };
  multiply(of(part.products), of(part.inputs), of(part.windows), part);
}

void TileConvolution::State::addGradients(int64_t channel, Part &part) {
  int64_t row = division == Division::Points ? channel : channel % block;
  addWindows(strip.size, at(part.windows.offset) + row * sources,
             part.windows.stride(), sources,
             const_cast<float *>(weights) + channel * sources * kWindow);
}

void TileConvolution::State::run(int64_t count,
                                 void (State::*step)(int64_t, Part &)) {
  struct Call {
    State *state;
    void (State::*step)(int64_t, Part &);
  } call = {this, step};
  oneDnn().runParts(count, &call, [](void *closure, int64_t index, int part) {
    Call &call = *static_cast<Call *>(closure);
    (call.state->*call.step)(index, call.state->parts[part]);
  });
}

void TileConvolution::State::run() {
  switch (division) {
  case Division::Strips:
    run(blocks(), &State::transformBlock);
    return run(strips, &State::computeStrip);
  case Division::Blocks:
    clearSpreads();
    run(sources, &State::transformSource);
    if (!isWeightGrad)
      return run(blocks(), &State::computeBlock);
    clearSpreads();
    return run(blocks(), &State::computeGradients);
  case Division::Points:
    int64_t groups = strip.points() / group();
    run(groups, &State::clearPoints);
    for (int64_t i = 0; i < strips; ++i) {
      strip.firstRow = i * strip.rows;
      clearSpreads();
      run(sources, &State::transformSource);
      clearSpreads();
      run(results, &State::transformCotangent);
      run(groups, &State::addPoints);
    }
    strip.firstRow = 0;
    return run(results, &State::addGradients);
  }
}

bool TileConvolution::run(const float *input, const float *weights,
                          const float *output) {
  state->input = input;
  state->weights = weights;
  state->output = output;
  state->hasFailed = false;
  state->run();
  return !state->hasFailed;
}
