//===- TilePlan.cpp - How a convolution in tiles is divided ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// So that what a product reads and writes is in a cache, tiles are computed in
// strips where there are few weights, and channels of the result in blocks
// where there are many. How is the same for any number of threads: the bits do
// not depend on it.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/TileState.h"

#include "penstock/convolution.h"

using namespace penstock::runtime;

TileConvolution::~TileConvolution() {
  const OneDnn &dnnl = oneDnn();
  for (TilePart &part : parts) {
    part.product.destroy();
    for (dnnl_memory_t memory : part.operands)
      if (memory)
        dnnl.dnnl_memory_destroy(memory);
    if (part.stream)
      dnnl.dnnl_stream_destroy(part.stream);
  }
}

std::string TileConvolution::plan(const ConvolutionCall &descriptor) {
  conv = descriptor;
  return planTiles() ? "" : "oneDNN cannot compute the " + describe(descriptor);
}

bool TileConvolution::planTiles() {
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
  for (TilePart &part : parts) {
    // It is one thread's, whatever the number of threads.
    WithThreads alone(1);
    if (!createProduct(part))
      return false;
    part.scratch = bytes;
    bytes += aligned(part.product.getScratchBytes());
  }
  return true;
}

void TileConvolution::divide() {
  constexpr int64_t kStrip = 1 << 21, kKept = 1 << 15, kBlock = 64;
  const int64_t *plane = isTurned ? conv.input : conv.output;
  int64_t size = conv.layout == PENSTOCK_CPU_CONV_TILES_4X4 ? 4 : 2;
  int64_t rows = (plane[0] + size - 1) / size;
  strip = {size, conv.batch, (plane[1] + size - 1) / size, 0, rows};
  int64_t point = strip.points() * sizeof(float);
  // Into strips of equally many rows and samples. Where all transformed windows
  // take too much, they are made once for all tiles, block by block.
  if (sources * results <= kKept) {
    int64_t channels = isWeightGrad ? std::max(sources, results) : sources;
    bool isOneBlock = results <= kBlock && !isWeightGrad;
    // Planes of four samples are spread out faster than those of sixteen.
    if (conv.batch % 4 == 0 && strip.columns % 4 == 0)
      strip.batch = 4;
    bool isWhole = isOneBlock && strip.batch == conv.batch;
    while (strip.rows > 1 &&
           (rows % strip.rows != 0 || (isWhole && strip.rows == rows) ||
            point * channels * strip.tiles() > kStrip))
      --strip.rows;
  }
  rowStrips = rows / strip.rows;
  strips = rowStrips * (conv.batch / strip.batch);
  division = strips == 1    ? TileDivision::Blocks
             : isWeightGrad ? TileDivision::Points
                            : TileDivision::Strips;
  if (division == TileDivision::Points) {
    block = results;
    return;
  }
  block = kBlock;
  while (block > 16 && point * block * (sources + strip.tiles()) > kStrip)
    block /= 2;
  // Equal ones, of whole vectors, and as many for each of two threads.
  int64_t count = blocks();
  if (division == TileDivision::Blocks)
    count = (count + 1) / 2 * 2;
  block = ((results + count - 1) / count + 15) / 16 * 16;
}

void TileConvolution::planParts() {
  auto place = [&](TilePoints &points) {
    points.offset = bytes;
    bytes += points.bytes();
  };
  TilePart common;
  // Products with transposed inputs are slow. Their channels are padded.
  int64_t columns = isWeightGrad ? (sources + 15) / 16 * 16 : sources;
  common.inputs = {strip.points(), sources, strip.tiles()};
  if (isWeightGrad)
    common.inputs = {strip.points(), strip.tiles(), columns};
  common.windows = {strip.points(), isTurned ? sources : block,
                    isTurned ? block : columns};
  common.products = {strip.points(), block, strip.tiles()};
  if (division != TileDivision::Strips)
    place(common.inputs);
  if (division == TileDivision::Points) {
    place(common.windows);
    place(common.products);
  }
  for (int i = 0, threads = oneDnn().getThreads(); i < threads; ++i) {
    TilePart &part = parts.emplace_back(common);
    if (division == TileDivision::Strips)
      place(part.inputs);
    if (division == TileDivision::Blocks)
      place(part.windows);
    if (division != TileDivision::Points)
      place(part.products);
    part.spread = bytes;
    bytes += aligned(strip.spread() * sizeof(float));
  }
  windowsOffset = bytes;
  if (division == TileDivision::Strips)
    bytes += blocks() * common.windows.bytes();
}

/// For every point, products = windows x inputs, or windows = products x
/// inputs, with the windows' gradients for windows.
bool TileConvolution::createProduct(TilePart &part) {
  const OneDnn &dnnl = oneDnn();
  int64_t batch = group();
  auto describe = [&](const TilePoints &points, bool isTransposed,
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
  if (!describe(isWeightGrad ? part.products : part.windows, isTurned, a) ||
      !describe(part.inputs, false, b) ||
      !describe(isWeightGrad ? part.windows : part.products, false, c) ||
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) !=
          dnnl_success)
    return false;
  dnnl_primitive_attr_t attributes =
      makeAttributes(division == TileDivision::Points);
  bool done = dnnl.dnnl_primitive_desc_create(&part.product.type, &operation,
                                              attributes, dnnl.engine,
                                              nullptr) == dnnl_success &&
              slowImplementation(part.product.type).empty();
  dnnl.dnnl_primitive_attr_destroy(attributes);
  return done;
}

bool TileConvolution::prepare(char *scratch) {
  this->scratch = scratch;
  WithThreads alone(1);
  for (TilePart &part : parts)
    if (!prepare(part))
      return false;
  return true;
}

bool TileConvolution::prepare(TilePart &part) {
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
