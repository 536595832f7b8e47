//===- TileConvolution.cpp - Convolutions as products of tiles ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the input is a convolution of the cotangent by turned
// windows. Tiles are computed in strips and channels of the result in blocks,
// so that what a product reads and writes is in a cache. Blocks are of one
// size, whatever the number of threads, and each is computed by one of them:
// the bits do not depend on it.
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
  TileStrip strip; // The one that is computed.
  int64_t strips;
  /// Of what is transformed first, and of what is computed in blocks.
  int64_t sources, results, block;
  Points inputs;
  /// Of all blocks, where there are several strips.
  uint64_t windowsOffset = 0;
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
  void divide();
  int64_t blocks() const { return (results + block - 1) / block; }
  float *windowsOf(int64_t index, const Part &part) const {
    return at(strips == 1 ? part.windows.offset
                          : windowsOffset + index * part.windows.bytes());
  }
  void transformSource(int64_t channel, Part &part);
  void transformBlock(int64_t index, Part &part);
  void clearBlock(int64_t index, Part &part);
  void computeBlock(int64_t index, Part &part);
  void addBlock(int64_t index, Part &part);
  void clearSpreads();
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

  inputs = {strip.points(), sources, strip.tiles()};
  bytes = inputs.bytes();
  parts.resize(oneDnn().getThreads());
  for (Part &part : parts) {
    int64_t rows = isTurned ? sources : block;
    int64_t columns = isTurned ? block : sources;
    part.windows = {strip.points(), rows, columns};
    part.products = {strip.points(), block, strip.tiles()};
    part.products.offset = bytes;
    bytes += part.products.bytes();
    part.windows.offset = bytes;
    bytes += strips == 1 ? part.windows.bytes() : 0;
    part.spread = bytes;
    bytes += aligned(strip.spread() * sizeof(float));
    if (!createProduct(part))
      return false;
    bytes += aligned(part.product.getScratchBytes());
  }
  windowsOffset = bytes;
  if (strips != 1)
    bytes += blocks() * parts.front().windows.bytes();
  return true;
}

/// Into strips of equally many rows of tiles, and blocks.
void TileConvolution::State::divide() {
  constexpr int64_t kSecondCache = 1 << 20, kKept = 1 << 15;
  const int64_t *plane = isTurned ? conv.input : conv.output;
  int64_t size = conv.layout == PENSTOCK_CONV_TILES_4X4 ? 4 : 2;
  int64_t rows = (plane[0] + size - 1) / size;
  strip = {size, conv.batch, (plane[1] + size - 1) / size, 0, rows};
  int64_t point = strip.points() * sizeof(float);
  // Where all transformed windows take too much, they are made once for all
  // tiles, block by block.
  if (sources * results <= kKept)
    while (strip.rows > 1 && (rows % strip.rows != 0 ||
                              point * sources * strip.tiles() > kSecondCache))
      --strip.rows;
  strips = rows / strip.rows;
  block = 64;
  while (block > 16 &&
         point * block * (sources + strip.tiles()) > 2 * kSecondCache)
    block /= 2;
  // Equal ones, of whole vectors.
  block = ((results + blocks() - 1) / blocks() + 15) / 16 * 16;
}

/// For every point, products = windows x inputs, or windows = products x
/// inputs, with the windows' gradients for windows.
bool TileConvolution::State::createProduct(Part &part) {
  const OneDnn &dnnl = oneDnn();
  int64_t batch = strip.points();
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
  dnnl_primitive_attr_t attributes =
      makeAttributes(isWeightGrad && strips != 1);
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
  uint64_t own = part.spread + aligned(strip.spread() * sizeof(float));
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

/// What lies around the planes stays zero from channel to channel of a strip.
void TileConvolution::State::clearSpreads() {
  for (const Part &part : parts)
    std::fill_n(at(part.spread), strip.spread(), 0.0f);
}

void TileConvolution::State::transformSource(int64_t channel, Part &part) {
  Planes planes = planesOf(isTurned ? output : input, !isTurned, channel);
  planes.top = isTurned ? 2 - conv.pad_before[0] : conv.pad_before[0];
  planes.left = isTurned ? 2 - conv.pad_before[1] : conv.pad_before[1];
  transformInputs(strip, planes, at(part.spread),
                  at(inputs.offset) + channel * inputs.columns,
                  inputs.stride());
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

void TileConvolution::State::clearBlock(int64_t index, Part &part) {
  std::fill_n(windowsOf(index, part),
              part.windows.count * part.windows.stride(), 0.0f);
}

void TileConvolution::State::addBlock(int64_t index, Part &part) {
  int64_t begin = index * block, count = std::min(block, results - begin);
  for (int64_t m = 0; m < count; ++m)
    addWindows(strip.size, windowsOf(index, part) + m * sources,
               part.windows.stride(), sources,
               const_cast<float *>(weights) + (begin + m) * sources * kWindow);
}

void TileConvolution::State::computeBlock(int64_t index, Part &part) {
  int64_t begin = index * block, count = std::min(block, results - begin);
  float *products = at(part.products.offset);
  int64_t stride = part.products.stride(), tiles = strip.tiles();
  if (isWeightGrad) {
    for (int64_t m = 0; m < count; ++m)
      transformCotangents(strip, planesOf(output, false, begin + m),
                          at(part.spread), products + m * tiles, stride);
  } else if (strips == 1) {
    transformBlock(index, part);
  }
  if (oneDnn().dnnl_memory_set_data_handle(part.operands[isWeightGrad ? 2 : 0],
                                           windowsOf(index, part)) !=
          dnnl_success ||
      !part.product.run(part.stream))
    hasFailed = true;
  if (isWeightGrad) {
    if (strips == 1)
      addBlock(index, part);
    return;
  }
  for (int64_t m = 0; m < count; ++m)
    transformOutputs(strip, products + m * tiles, stride, at(part.spread),
                     planesOf(isTurned ? input : output, isTurned, begin + m));
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

bool TileConvolution::run(const float *input, const float *weights,
                          const float *output) {
  state->input = input;
  state->weights = weights;
  state->output = output;
  state->hasFailed = false;
  bool keepsWindows = state->strips != 1;
  if (keepsWindows)
    state->run(state->blocks(), state->isWeightGrad ? &State::clearBlock
                                                    : &State::transformBlock);
  for (int64_t i = 0; i < state->strips; ++i) {
    state->strip.firstRow = i * state->strip.rows;
    state->clearSpreads();
    state->run(state->sources, &State::transformSource);
    if (state->isWeightGrad)
      state->clearSpreads();
    state->run(state->blocks(), &State::computeBlock);
  }
  if (keepsWindows && state->isWeightGrad)
    state->run(state->blocks(), &State::addBlock);
  return !state->hasFailed;
}
