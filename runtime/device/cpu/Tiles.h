//===- Tiles.h - Transformations of Winograd's algorithm --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// F(2x2, 3x3) and F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2015): 2x2 outputs of a 3x3 window take 16
// products instead of 36, 4x4 outputs 36 instead of 144. At each of these
// points there is a matrix over channels and tiles; tiles are numbered with the
// sample innermost, so that small planes fill vectors, too.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TILES_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TILES_H

#include <algorithm>
#include <cstdint>

namespace penstock::runtime {

/// Some rows of tiles of some samples' planes.
struct TileStrip {
  int64_t size; ///< A tile has 2x2 or 4x4 outputs.
  int64_t batch, columns;
  int64_t firstRow, rows;
  int64_t firstSample = 0;

  int64_t points() const { return (size + 2) * (size + 2); }
  /// Tiles of a row, and what is left of their last vector.
  int64_t lanes() const { return columns * batch; }
  int64_t line() const { return (lanes() + 15) / 16 * 16; }
  int64_t tiles() const { return rows * line(); }
  /// Floats that one channel is spread out in, and what a vector reads too
  /// much; or sixteen channels of a sample.
  int64_t spread() const {
    int64_t all = size * (columns + 1) * batch;
    return (size * rows + 2) * std::max(all, 16 * (size * columns + 2)) + 16;
  }
};

/// One channel of all samples in a tensor of planes.
struct Planes {
  float *data;
  int64_t sampleStride, height, width;
  /// Where the plane begins in what the tiles cover.
  int64_t top, left;
};

/// Up to sixteen channels of one sample.
struct ChannelPlanes {
  const float *data;
  int64_t channels, sample, height, width, top, left;
};

/// The inputs of each tile, for point p at result[p * pointStride + tile]. What
/// is left of a row's last vector is zero.
/// `spread` is zero before the first channel, and is left for the next.
void transformInputs(const TileStrip &strip, const Planes &from, float *spread,
                     float *result, int64_t pointStride);

/// The same for up to sixteen channels of one sample, for point p and channel c
/// at result[p * pointStride + tile * tileStride + c]: transposed. The rest of
/// a row's last vector is not written.
void transformChannels(const TileStrip &strip, const ChannelPlanes &from,
                       float *spread, float *result, int64_t pointStride,
                       int64_t tileStride);

/// As transformInputs, of the cotangents of outputs.
void transformCotangents(const TileStrip &strip, const Planes &from,
                         float *spread, float *result, int64_t pointStride);

/// The outputs of each tile.
void transformOutputs(const TileStrip &strip, const float *products,
                      int64_t pointStride, float *spread, const Planes &to);

/// `count` windows of 3x3 for tiles of this size; `isTurned`: by 180 degrees.
void transformWindows(int64_t size, const float *windows, int64_t count,
                      bool isTurned, float *result, int64_t pointStride);

/// Adds the gradients of `count` windows.
void addWindows(int64_t size, const float *products, int64_t pointStride,
                int64_t count, float *windows);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TILES_H
