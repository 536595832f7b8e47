//===- TurnTest.cpp - Rows become columns ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Odd sizes against the definition, and nothing is written behind the end.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Turn.h"

#include <gtest/gtest.h>
#include <vector>

using namespace penstock::runtime;

TEST(TurnTest, OddSizes) {
  for (int64_t rows : {1, 15, 16, 17, 50})
    for (int64_t columns : {1, 2, 16, 31, 48, 71}) {
      int64_t stride = rows + 3, odd = turnedStride(columns);
      EXPECT_GE(odd, columns);
      EXPECT_EQ(odd / 16 % 2, 1) << columns;
      // Wider rows keep what is behind their columns.
      int64_t width = odd + rows % 2 * 32, end = (columns + 15) / 16 * 16;
      std::vector<float> from(stride * columns), to(rows * width + 64, -1.0f);
      for (size_t i = 0; i < from.size(); ++i)
        from[i] = float(i);
      turn(from.data(), stride, rows, columns, to.data(), width);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j)
          ASSERT_EQ(to[i * width + j], j < columns ? from[j * stride + i]
                                       : j < end   ? 0.0f
                                                   : -1.0f)
              << rows << " x " << columns << ": " << i << ", " << j;
      for (size_t i = rows * width; i < to.size(); ++i)
        ASSERT_EQ(to[i], -1.0f);
    }
}
