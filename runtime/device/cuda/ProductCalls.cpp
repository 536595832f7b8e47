//===- ProductCalls.cpp - Matrix products as calls of cuBLASLt ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuBLASLt has matrices by columns, and one batch dimension. A result by rows
// is its transpose by columns, (A.B)^T = B^T.A^T, so then the operands change
// places. Batch dimensions that are one in memory, for all three operands,
// become one; the longest is that of the calls, the others repeat them.
//===----------------------------------------------------------------------===//

#include "penstock/cuda_product.h"

#include <algorithm>
#include <cstdint>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

struct BatchDimension {
  int64_t size, a, b, c;

  /// Returns true if a step of this dimension follows the last one of `inner`.
  bool continues(const BatchDimension &inner) const {
    return a == inner.a * inner.size && b == inner.b * inner.size &&
           c == inner.c * inner.size;
  }
};

/// Sizes and strides of a matrix.
struct StridedMatrix {
  int64_t rows, columns, rowStride, columnStride;

  StridedMatrix transpose() const {
    return {columns, rows, columnStride, rowStride};
  }

  /// Returns true if it lies by columns that do not overlap. The stride of a
  /// dimension of one element says nothing.
  bool liesByColumns() const {
    return (rows == 1 || rowStride == 1) &&
           (columns == 1 || columnStride >= rows);
  }
  ColumnMatrix asColumns() const {
    return {rows, columns, columns == 1 ? rows : columnStride};
  }
};

} // namespace

static bool describe(const StridedMatrix &matrix, ColumnMatrix &result) {
  bool isTransposed = !matrix.liesByColumns();
  StridedMatrix memory = isTransposed ? matrix.transpose() : matrix;
  if (!memory.liesByColumns())
    return false;
  result = memory.asColumns();
  result.isTransposed = isTransposed;
  return true;
}

/// Joins batch dimensions; those of one element go.
static std::vector<BatchDimension>
joinBatch(const penstock_gemm_descriptor &gemm) {
  std::vector<BatchDimension> joined;
  for (uint32_t i = 0; i < gemm.batch_rank; ++i) {
    BatchDimension next = {gemm.batch[i], gemm.stride_a[i], gemm.stride_b[i],
                           gemm.stride_c[i]};
    if (next.size == 1)
      continue;
    // The order of batch dimensions is of no account, so any two may join, and
    // then perhaps a third.
    for (bool hasJoined = true; hasJoined;) {
      hasJoined = false;
      for (auto it = joined.begin(); it != joined.end(); ++it) {
        bool isOuter = next.continues(*it);
        if (!isOuter && !it->continues(next))
          continue;
        int64_t size = next.size * it->size;
        if (isOuter)
          next = *it;
        next.size = size;
        joined.erase(it);
        hasJoined = true;
        break;
      }
    }
    joined.push_back(next);
  }
  return joined;
}

static bool fitsInt32(const ColumnMatrix &matrix) {
  return std::max({matrix.rows, matrix.columns, matrix.leading}) <= INT32_MAX;
}

std::string cuda::planProductCalls(const penstock_gemm_descriptor &gemm,
                                   ProductCalls &calls) {
  uint32_t result = gemm.result_element ? gemm.result_element : gemm.element;
  bool isBf16 = gemm.element == PENSTOCK_BF16;
  if ((gemm.element != PENSTOCK_F32 && !isBf16) ||
      (result != PENSTOCK_F32 && !(isBf16 && result == PENSTOCK_BF16)))
    return "it is neither f32 nor bf16";
  if (gemm.batch_rank > PENSTOCK_MAX_BATCH_RANK)
    return "it has too many batch dimensions";

  // 1. The matrices, so that the result lies by columns.
  uint32_t r = gemm.batch_rank;
  StridedMatrix a = {gemm.m, gemm.k, gemm.stride_a[r], gemm.stride_a[r + 1]};
  StridedMatrix b = {gemm.k, gemm.n, gemm.stride_b[r], gemm.stride_b[r + 1]};
  StridedMatrix c = {gemm.m, gemm.n, gemm.stride_c[r], gemm.stride_c[r + 1]};
  calls = {};
  calls.isExchanged = !c.liesByColumns();
  StridedMatrix left = a, right = b;
  if (calls.isExchanged) {
    left = b.transpose();
    right = a.transpose();
    c = c.transpose();
  }
  if (!c.liesByColumns() || !describe(left, calls.left) ||
      !describe(right, calls.right))
    return "a matrix has no unit stride, or its rows overlap";
  calls.result = c.asColumns();
  if (!fitsInt32(calls.left) || !fitsInt32(calls.right) ||
      !fitsInt32(calls.result))
    return "a matrix has more than 2^31 rows or columns";

  // 2. One batch dimension in the calls.
  std::vector<BatchDimension> batch = joinBatch(gemm);
  if (std::any_of(batch.begin(), batch.end(),
                  [](const BatchDimension &each) { return each.c == 0; }))
    return "its results overlap";
  auto longest =
      std::max_element(batch.begin(), batch.end(),
                       [](const BatchDimension &x, const BatchDimension &y) {
                         return x.size < y.size;
                       });
  if (longest != batch.end()) {
    if (longest->size > INT32_MAX)
      return "its batch has more than 2^31 products";
    calls.batch = longest->size;
    calls.left.batchStride = calls.isExchanged ? longest->b : longest->a;
    calls.right.batchStride = calls.isExchanged ? longest->a : longest->b;
    calls.result.batchStride = longest->c;
    batch.erase(longest);
  }

  // 3. The others, as calls.
  int64_t count = 1;
  for (const BatchDimension &each : batch) {
    if (each.size > kMaximumCalls / count)
      return "its batch takes more than " + std::to_string(kMaximumCalls) +
             " calls";
    count *= each.size;
  }
  calls.offsets = {{}};
  for (const BatchDimension &each : batch) {
    std::vector<ProductCalls::Offsets> outer = std::move(calls.offsets);
    calls.offsets.clear();
    for (const ProductCalls::Offsets &start : outer)
      for (int64_t i = 0; i < each.size; ++i)
        calls.offsets.push_back(
            {start.a + i * each.a, start.b + i * each.b, start.c + i * each.c});
  }
  return "";
}
