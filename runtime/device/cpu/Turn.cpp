//===- Turn.cpp - Rows become columns -------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Squares of 16 x 16 in registers, compiled for several instruction sets.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Turn.h"

#include "runtime/device/cpu/Vectors.h"

#include <algorithm>

using namespace penstock::runtime;

namespace {

PENSTOCK_INLINE void turnBody(const float *from, int64_t stride, int64_t rows,
                              int64_t columns, float *to, int64_t width) {
  for (int64_t j = 0; j < columns; j += kLanes) {
    int64_t count = std::min<int64_t>(kLanes, columns - j);
    int64_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) {
      Vector square[kLanes];
      for (int l = 0; l < kLanes; ++l)
        if (l < count)
          load(from + (j + l) * stride + i, square[l]);
        else
          square[l] = Vector{};
      transpose(square);
      for (int l = 0; l < kLanes; ++l)
        store(square[l], to + (i + l) * width + j);
    }
    for (; i < rows; ++i)
      for (int64_t l = 0; l < kLanes; ++l)
        to[i * width + j + l] = l < count ? from[(j + l) * stride + i] : 0.0f;
  }
}

} // namespace

PENSTOCK_FOR_INSTRUCTION_SETS(void, turn,
                              (const float *from, int64_t stride, int64_t rows,
                               int64_t columns, float *to, int64_t width),
                              (from, stride, rows, columns, to, width),
                              turnBody(from, stride, rows, columns, to, width);)

void penstock::runtime::copyByRows(const float *from, const int64_t *strides,
                                   int64_t rows, int64_t columns, float *to,
                                   int64_t width) {
  if (strides[0] == 1)
    return turn(from, strides[1], rows, columns, to, width);
  int64_t end = (columns + kLanes - 1) / kLanes * kLanes;
  for (int64_t i = 0; i < rows; ++i, from += strides[0], to += width) {
    if (strides[1] == 1)
      std::copy_n(from, columns, to);
    else
      for (int64_t j = 0; j < columns; ++j)
        to[j] = from[j * strides[1]];
    std::fill(to + columns, to + end, 0.0f);
  }
}
