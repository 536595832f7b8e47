//===- TileState.h - How a convolution in tiles is divided ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What TilePlan.cpp plans and prepares and TileConvolution.cpp runs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TILESTATE_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TILESTATE_H

#include "runtime/device/cpu/ConvolutionMethod.h"
#include "runtime/device/cpu/Step.h"
#include "runtime/device/cpu/Tiles.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace penstock::runtime {

/// Matrices of all points of a tile, one after the other.
struct TilePoints {
  int64_t count = 0, rows = 0, columns = 0;
  uint64_t offset = 0; // in the scratch

  /// Not a power of two: points at one place of a cache would fight for it.
  int64_t stride() const { return (rows * columns + 15) / 16 * 16 + 16; }
  uint64_t bytes() const { return aligned(count * stride() * sizeof(float)); }
};

constexpr int64_t kWindow = 9;

/// The division of the work among threads.
enum class TileDivision {
  Blocks, ///< Channels of the result, for all tiles.
  Strips, ///< Rows of tiles, for all channels.
  Points, ///< Of all strips: the gradients of few weights are their sums.
};

/// Buffers of one thread.
struct TilePart {
  TilePoints inputs, windows, products;
  uint64_t spread = 0, scratch = 0;
  Step product;
  dnnl_memory_t operands[3] = {};
  dnnl_stream_t stream = nullptr;
};

class TileConvolution : public ConvolutionMethod {
public:
  ~TileConvolution() override;

  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override { return "tiles"; }
  uint64_t getScratchBytes() const override { return bytes; }
  bool prepare(char *scratch) override;
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  ConvolutionCall conv;
  bool isWeightGrad, isTurned;
  TileDivision division;
  TileStrip strip; // The first, or the one that threads compute together.
  int64_t strips, rowStrips; // all, and of the same samples
  /// Channels that are transformed first, channels that are computed in blocks,
  /// and those of a block.
  int64_t sources, results, block;
  /// Offset of the windows of all blocks, where several strips have them in
  /// common.
  uint64_t windowsOffset = 0;
  std::vector<TilePart> parts;
  uint64_t bytes = 0;
  char *scratch = nullptr;
  /// Tensors of the call that runs.
  const float *input, *weights, *output;
  std::atomic<bool> hasFailed{false};

  bool planTiles();
  void divide();
  void planParts();
  bool createProduct(TilePart &part);
  bool prepare(TilePart &part);
  void compute();
  float *at(uint64_t offset) const {
    return reinterpret_cast<float *>(scratch + offset);
  }
  Planes getPlanes(const float *tensor, bool isInput, int64_t channel,
                   const TileStrip &strip) const;
  /// Strip `index` of all of them: rows, and then samples.
  TileStrip getStrip(int64_t index) const {
    TileStrip result = strip;
    result.firstRow = index % rowStrips * strip.rows;
    result.firstSample = index / rowStrips * strip.batch;
    return result;
  }
  int64_t blocks() const { return (results + block - 1) / block; }
  /// Returns the number of points that a product takes at once.
  int64_t group() const {
    return strip.points() / (division == TileDivision::Points ? 4 : 1);
  }
  float *getWindows(int64_t index, const TilePart &part) const {
    return at(division == TileDivision::Strips
                  ? windowsOffset + index * part.windows.bytes()
                  : part.windows.offset);
  }
  void clearSpread(const TilePart &part) const {
    std::fill_n(at(part.spread), strip.spread(), 0.0f);
  }
  void multiply(float *a, float *b, float *c, TilePart &part);
  void transformChannels(int64_t index, TilePart &part);
  void transformCotangent(int64_t channel, TilePart &part);
  void transformSource(const TileStrip &strip, int64_t channel, TilePart &part);
  void computeBlock(const TileStrip &strip, int64_t index, TilePart &part);

  // What the threads do, by number.
  void transformShare(int64_t index, TilePart &part);
  void transformBlock(int64_t index, TilePart &part);
  void computeOutputs(int64_t index, TilePart &part) {
    computeBlock(strip, index, part);
  }
  void computeGradients(int64_t index, TilePart &part);
  void computeStrip(int64_t index, TilePart &part);
  void addPoints(int64_t index, TilePart &part);
  void addGradients(int64_t channel, TilePart &part);
  void run(int64_t count, void (TileConvolution::*step)(int64_t, TilePart &));
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TILESTATE_H
