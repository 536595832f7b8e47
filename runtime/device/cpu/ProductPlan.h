//===- ProductPlan.h - How a matrix product is divided ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Into parts for threads, and blocks for calls of the library. What is chosen
// here decides about speed; the bits are the same (see Product.cpp).
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_PRODUCTPLAN_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_PRODUCTPLAN_H

#include "penstock/cpu.h"

#include <vector>

namespace penstock::runtime {

/// With fewer rows, or with one column, the library computes by algorithms
/// that round otherwise: no part or block is so small unless the product is.
inline constexpr int64_t kFewRows = 16;
/// The longest sum of one call. Up to here all algorithms of the library that
/// are in use add up in the same order.
int64_t getSumOfCall();
/// Columns of a panel of weights that are prepacked: their rows for one call
/// stay in the second cache.
inline constexpr int64_t kPanelColumns = 384;

/// A range of one dimension, 0 to rank - 1 of the batch, then rows and columns.
struct DimensionRange {
  uint32_t dimension;
  int64_t begin, end;
};

/// The parts of a product for at most so many threads. Divided is the first
/// dimension that can be: of the batch, or else the longer one of the matrix.
std::vector<DimensionRange> divideProduct(const ProductCall &gemm,
                                          int64_t threads);

/// The blocks of the matrices of a part. Operands can be copied to scratch, row
/// by row, before each call; then each matrix of a batch gets its own.
struct Blocks {
  int64_t rows, columns;
  bool packsA = false, packsB = false;
  /// Blocks are full tiles of the library, or less than one, which is filled up
  /// with zeros. Copied is only what is filled up, or does not lie by rows.
  bool pads = false;

  /// Where the block that begins at `begin` ends. Without padding, no block has
  /// few rows or columns unless the matrix does.
  int64_t endOfRows(int64_t begin, int64_t size) const;
  int64_t endOfColumns(int64_t begin, int64_t size) const;
};

/// The library's tiles.
inline constexpr int64_t kTileRows = 6, kTileColumns = 16;

/// For an m x k by k x n product; strides are of rows and of columns.
Blocks chooseBlocks(int64_t m, int64_t n, int64_t k, const int64_t *strideA,
                    const int64_t *strideB);

/// Returns true if a product with its right operand in panels has the bits that
/// it has without (canPrepack), and if it is faster (gainsByPanels).
bool canPrepack(const ProductCall &gemm);
bool gainsByPanels(const ProductCall &gemm);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_PRODUCTPLAN_H
