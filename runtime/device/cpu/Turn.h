//===- Turn.h - Rows become columns -----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy for products, which oneDNN multiplies faster in one order than in the
// other. Its own reordering takes several times as long.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TURN_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TURN_H

#include <cstdint>

namespace penstock::runtime {

/// Floats in a row of a turned matrix of so many columns: an odd number of
/// cache lines, so that rows fall into different sets of a cache.
inline int64_t turnedStride(int64_t columns) {
  return ((columns + 15) / 16 | 1) * 16;
}

/// to[i * width + j] = from[j * stride + i] for i below `rows` and j below
/// `columns`; up to the next multiple of 16 columns, rows get zeros.
void turn(const float *from, int64_t stride, int64_t rows, int64_t columns,
          float *to, int64_t width);

/// to[i * width + j] = from[i * strides[0] + j * strides[1]]; up to the next
/// multiple of 16 columns, rows get zeros.
void copyByRows(const float *from, const int64_t *strides, int64_t rows,
                int64_t columns, float *to, int64_t width);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TURN_H
