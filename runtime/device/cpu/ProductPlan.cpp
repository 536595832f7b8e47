//===- ProductPlan.cpp - How a matrix product is divided ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/measurements/performance.md has the measurements behind the numbers
// here.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/ProductPlan.h"

#include "penstock/onednn.h"

#include <algorithm>

using namespace penstock::runtime;

namespace {

/// Below so many multiplications per part, threads cost more than they gain.
constexpr double kFewMultiplications = 1 << 18;
/// Parts begin at multiples of these.
constexpr int64_t kRows = 8, kColumns = 16;
/// Without AVX-512, sums are in one order in full tiles, if both operands lie
/// by rows, and there are at most so many rows.
constexpr int64_t kPaddedRows = 48, kPaddedSum = 192;
constexpr int64_t kUnpaddedSum = 384;
/// Rows of a transposed A that is turned at a time, and columns of B that are
/// turned or copied. The copies stay in the second cache.
constexpr int64_t kTurnedRows = 256, kTurnedColumns = 384, kCopiedColumns = 512;
/// With more rows of A, turning B does not pay.
constexpr int64_t kManyRows = 1024;
/// Matrices from this size on are worth turning.
constexpr int64_t kManyElements = 128;
/// Shorter sums do not pay for the library's packing.
constexpr int64_t kShortSum = 128;
/// Longer ones, over rows so many floats (or a multiple) apart, which share
/// few sets of the first cache, pay for a copy of B.
constexpr int64_t kLongSum = 256, kSharedSets = 1024, kRowsForCopy = 64;

/// The library packs both operands, unless it has few rows or columns. It
/// also does where A is transposed and B's rows share sets of the cache.
bool packsItself(int64_t m, int64_t n, bool isTurnedA, int64_t rowB) {
  return 1.0 / double(m) + 1.0 / double(n) < 0.00196 ||
         (isTurnedA && rowB % kSharedSets == 0);
}

/// A matrix of so many rows and columns lies by columns.
bool isTurned(int64_t rows, int64_t columns, const int64_t *strides) {
  return strides[0] == 1 && strides[1] != 1 && rows > 1 && columns > 1;
}

} // namespace

std::vector<DimensionRange>
penstock::runtime::divideProduct(const ProductCall &gemm, int64_t threads) {
  uint32_t rank = gemm.batch_rank, dimension = rank;
  double count = double(gemm.m) * double(gemm.n) * double(gemm.k);
  int64_t size = 0, unit = 1;
  for (uint32_t i = rank; i-- > 0;) {
    count *= double(gemm.batch[i]);
    if (gemm.batch[i] >= threads)
      dimension = i, size = gemm.batch[i];
  }
  bool areRows = gemm.m >= gemm.n && gemm.m > threads * (kFewRows + kRows);
  if (size == 0) {
    dimension = areRows ? rank : rank + 1;
    size = areRows ? gemm.m : gemm.n;
    unit = areRows ? kRows : kColumns;
  }
  // The last part takes what is left over.
  int64_t units = std::max<int64_t>(size / unit, 1);
  int64_t parts = std::min(threads, units);
  if (count < kFewMultiplications * double(parts))
    parts = 1;
  std::vector<DimensionRange> ranges;
  ranges.reserve(parts);
  for (int64_t i = 0; i < parts; ++i)
    ranges.push_back({dimension, units * i / parts * unit,
                      i + 1 < parts ? units * (i + 1) / parts * unit : size});
  return ranges;
}

int64_t penstock::runtime::getSumOfCall() {
  return oneDnn().roundsAlike() ? kUnpaddedSum : kPaddedSum;
}

Blocks penstock::runtime::chooseBlocks(int64_t m, int64_t n, int64_t k,
                                       const int64_t *strideA,
                                       const int64_t *strideB) {
  if (!oneDnn().roundsAlike())
    return {kPaddedRows, kTurnedColumns, true, true, true};
  bool isTurnedA = isTurned(m, k, strideA);
  if (isTurned(k, n, strideB)) {
    if (m > kFewRows && m <= kManyRows)
      return {m, kTurnedColumns, false, true};
    return {m, n};
  }
  bool isPacked = packsItself(m, n, isTurnedA, strideB[0]);
  bool isLarge = m >= kManyElements && n >= kManyElements;
  if (k < kShortSum) {
    // In blocks of rows, the library multiplies what lies in memory.
    if (!isPacked || !isLarge)
      return {m, n};
    return {kTurnedRows, n, isTurnedA};
  }
  if (isTurnedA && !isPacked && isLarge)
    return {kTurnedRows, n, true};
  if (!isTurnedA && !isPacked && m >= kRowsForCopy && n >= kManyElements &&
      k > kLongSum && strideB[0] % kSharedSets == 0)
    return {m, kCopiedColumns, false, true};
  return {m, n};
}

/// Returns the end of a block. A rest too small for a block belongs to the one
/// before it.
static int64_t endOfBlock(int64_t begin, int64_t size, int64_t step) {
  return size - begin < step + kFewRows ? size : begin + step;
}

/// The same in whole tiles. What fills none is a block of its own: it alone is
/// copied.
static int64_t endOfTiles(int64_t begin, int64_t size, int64_t step,
                          int64_t tile) {
  int64_t tiles = std::min(size - begin, step) / tile;
  return tiles == 0 ? size : begin + tiles * tile;
}

int64_t Blocks::endOfRows(int64_t begin, int64_t size) const {
  return pads ? endOfTiles(begin, size, rows, kTileRows)
              : endOfBlock(begin, size, rows);
}

int64_t Blocks::endOfColumns(int64_t begin, int64_t size) const {
  return pads ? endOfTiles(begin, size, columns, kTileColumns)
              : endOfBlock(begin, size, columns);
}

bool penstock::runtime::canPrepack(const ProductCall &gemm) {
  bool isAlike = !isTurned(gemm.k, gemm.n, gemm.stride_b) ||
                 gemm.m <= kManyRows; // The library would turn it itself.
  return gemm.batch_rank == 0 &&
         gemm.weights == PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE &&
         gemm.m > kFewRows && gemm.n >= kFewRows && isAlike;
}

bool penstock::runtime::gainsByPanels(const ProductCall &gemm) {
  bool sharesSets = gemm.stride_b[0] % kSharedSets == 0 && gemm.k > kLongSum;
  return gemm.n >= kManyElements &&
         (isTurned(gemm.k, gemm.n, gemm.stride_b) || sharesSets);
}
