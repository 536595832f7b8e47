//===- Tiles.h - Transformations of Winograd's algorithm --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2015): 2x2 outputs of a 3x3 window take 16 products instead of 36.
// Each of the 16 is a matrix over channels and tiles; tiles are numbered with
// the sample innermost, so that small planes fill vectors, too.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TILES_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TILES_H

#include <cstdint>

namespace penstock::runtime {

constexpr int kTilePoints = 16;

/// The tiles of a batch of planes: `rows` x `columns` of outputs are computed
/// of planes with some zeros around.
struct TileGrid {
  int64_t batch, rows, columns;

  int64_t tileRows() const { return (rows + 1) / 2; }
  int64_t tileColumns() const { return (columns + 1) / 2; }
  int64_t tiles() const { return tileRows() * tileColumns() * batch; }
  /// Floats that one channel is spread out in, and what a vector reads too
  /// much.
  int64_t spread() const {
    return 2 * (tileRows() + 1) * 2 * (tileColumns() + 1) * batch + 16;
  }
};

/// One channel of all samples in a tensor of planes.
struct Planes {
  float *data;
  int64_t sampleStride, height, width;
  /// Where the plane begins in what the tiles cover.
  int64_t top, left;
};

/// 4x4 inputs of each tile, for point p at result[p * pointStride + tile].
/// `spread` is zero before the first channel, and is left for the next.
void transformInputs(const TileGrid &grid, const Planes &from, float *spread,
                     float *result, int64_t pointStride);

/// The same of 2x2 cotangents of outputs.
void transformCotangents(const TileGrid &grid, const Planes &from,
                         float *spread, float *result, int64_t pointStride);

/// 2x2 outputs of each tile.
void transformOutputs(const TileGrid &grid, const float *products,
                      int64_t pointStride, float *spread, const Planes &to);

/// `count` windows of 3x3; `isTurned`: by 180 degrees.
void transformWindows(const float *windows, int64_t count, bool isTurned,
                      float *result, int64_t pointStride);

/// Adds the gradients of `count` windows.
void addWindows(const float *products, int64_t pointStride, int64_t count,
                float *windows);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TILES_H
