//===- TileConvolution.cpp - Convolutions as products of tiles ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the input is a convolution of the cotangent by turned
// windows. Blocks are of one size, whatever the number of threads, and each is
// computed by one of them: the bits do not depend on it.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/TileConvolution.h"

#include "runtime/device/cpu/Step.h"
#include "runtime/device/cpu/Tiles.h"

#include <algorithm>
#include <atomic>

using namespace penstock::runtime;

namespace {

/// Matrices of all points of the tiles, one after the other.
struct Points {
  int64_t rows = 0, columns = 0;
  uint64_t offset = 0; // in the scratch

  /// Not a power of two: points at one place of a cache would fight for it.
  int64_t stride() const { return (rows * columns + 15) / 16 * 16 + 16; }
  uint64_t bytes() const {
    return aligned(kTilePoints * stride() * sizeof(float));
  }
};

/// What a thread has for itself.
struct Part {
  Points windows, products;
  uint64_t spread = 0;
  Step product;
  dnnl_memory_t operands[3] = {};
  dnnl_stream_t stream = nullptr;
};

} // namespace

struct TileConvolution::State {
  penstock_conv_descriptor conv;
  bool isWeightGrad, isTurned;
  TileGrid grid;
  /// Of what is transformed first, and of what is computed in blocks.
  int64_t sources, results, block;
  Points inputs;
  std::vector<Part> parts;
  uint64_t bytes = 0;
  char *scratch = nullptr;
  /// Of the call that runs.
  const float *input, *weights, *output;
  std::atomic<bool> hasFailed;

  ~State();
  bool plan();
  bool createProduct(Part &part);
  bool prepare(Part &part);
  float *at(uint64_t offset) const {
    return reinterpret_cast<float *>(scratch + offset);
  }
  Planes planesOf(const float *tensor, bool isInput, int64_t channel) const;
  void transformSource(int64_t channel, Part &part);
  void clear(const Part &part);
  void computeBlock(int64_t index, Part &part);
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
  const int64_t *planes = isTurned ? conv.input : conv.output;
  grid = {conv.batch, planes[0], planes[1]};
  sources = isTurned ? conv.output_channels : conv.input_channels;
  results = isTurned ? conv.input_channels : conv.output_channels;
  // A block's transformed weights take at most half a second-level cache.
  block = std::min<int64_t>(results, sources <= 256 ? 64 : isTurned ? 16 : 32);

  inputs = {sources, grid.tiles(), 0};
  bytes = inputs.bytes();
  parts.resize(oneDnn().getThreads());
  for (Part &part : parts) {
    part.windows = isTurned ? Points{sources, block} : Points{block, sources};
    part.products = {block, grid.tiles()};
    for (Points *points : {&part.windows, &part.products}) {
      points->offset = bytes;
      bytes += points->bytes();
    }
    part.spread = bytes;
    bytes += aligned(grid.spread() * sizeof(float));
    if (!createProduct(part))
      return false;
    bytes += aligned(part.product.getScratchBytes());
  }
  return true;
}

/// For every point, products = windows x inputs, or windows = products x
/// inputs, with the windows' gradients for windows.
bool TileConvolution::State::createProduct(Part &part) {
  const OneDnn &dnnl = oneDnn();
  int64_t batch = kTilePoints;
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
                                        describe(inputs, true, b) &&
                                        describe(part.windows, false, c)
                                  : describe(part.windows, isTurned, a) &&
                                        describe(inputs, false, b) &&
                                        describe(part.products, false, c);
  if (!isDescribed || dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr,
                                                 &c) != dnnl_success)
    return false;
  dnnl_primitive_attr_t attributes = makeAttributes(false);
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
  uint64_t windows = part.windows.offset, products = part.products.offset;
  uint64_t offsets[] = {isWeightGrad ? products : windows, inputs.offset,
                        isWeightGrad ? windows : products};
  constexpr dnnl_query_t kQueries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                       dnnl_query_dst_md};
  constexpr int kArguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  for (int i = 0; i < 3; ++i) {
    if (dnnl.dnnl_memory_create(&part.operands[i],
                                part.product.query(kQueries[i]), dnnl.engine,
                                scratch + offsets[i]) != dnnl_success)
      return false;
    part.product.arguments.push_back({kArguments[i], part.operands[i]});
  }
  uint64_t own = part.spread + aligned(grid.spread() * sizeof(float));
  return part.product.prepare(scratch + own);
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

void TileConvolution::State::clear(const Part &part) {
  std::fill_n(at(part.spread), grid.spread(), 0.0f);
}

void TileConvolution::State::transformSource(int64_t channel, Part &part) {
  Planes planes = planesOf(isTurned ? output : input, !isTurned, channel);
  planes.top = isTurned ? 2 - conv.pad_before[0] : conv.pad_before[0];
  planes.left = isTurned ? 2 - conv.pad_before[1] : conv.pad_before[1];
  transformInputs(grid, planes, at(part.spread),
                  at(inputs.offset) + channel * inputs.columns,
                  inputs.stride());
}

void TileConvolution::State::computeBlock(int64_t index, Part &part) {
  int64_t begin = index * block, count = std::min(block, results - begin);
  float *windows = at(part.windows.offset);
  float *products = at(part.products.offset);
  int64_t windowStride = part.windows.stride();
  int64_t productStride = part.products.stride(), tiles = grid.tiles();
  constexpr int64_t kWindow = 9;
  auto compute = [&] {
    if (!part.product.run(part.stream))
      hasFailed = true;
  };
  if (isWeightGrad) {
    for (int64_t m = 0; m < count; ++m)
      transformCotangents(grid, planesOf(output, false, begin + m),
                          at(part.spread), products + m * tiles, productStride);
    compute();
    for (int64_t m = 0; m < count; ++m)
      addWindows(windows + m * sources, windowStride, sources,
                 const_cast<float *>(weights) +
                     (begin + m) * sources * kWindow);
    return;
  }
  if (isTurned) {
    for (int64_t s = 0; s < sources; ++s)
      transformWindows(weights + (s * results + begin) * kWindow, count, true,
                       windows + s * block, windowStride);
  } else {
    for (int64_t m = 0; m < count; ++m)
      transformWindows(weights + (begin + m) * sources * kWindow, sources,
                       false, windows + m * sources, windowStride);
  }
  compute();
  for (int64_t m = 0; m < count; ++m)
    transformOutputs(grid, products + m * tiles, productStride, at(part.spread),
                     planesOf(isTurned ? input : output, isTurned, begin + m));
}

bool TileConvolution::run(const float *input, const float *weights,
                          const float *output) {
  const OneDnn &dnnl = oneDnn();
  state->input = input;
  state->weights = weights;
  state->output = output;
  state->hasFailed = false;
  // What lies around the planes stays zero from channel to channel.
  for (const Part &part : state->parts)
    state->clear(part);
  dnnl.runParts(state->sources, state.get(),
                [](void *closure, int64_t index, int part) {
                  auto &state = *static_cast<State *>(closure);
                  state.transformSource(index, state.parts[part]);
                });
  if (state->isWeightGrad)
    for (const Part &part : state->parts)
      state->clear(part);
  int64_t blocks = (state->results + state->block - 1) / state->block;
  dnnl.runParts(blocks, state.get(),
                [](void *closure, int64_t index, int part) {
                  auto &state = *static_cast<State *>(closure);
                  state.computeBlock(index, state.parts[part]);
                });
  return !state->hasFailed;
}
