//===- MatrixProduct.cpp - Contractions as matrix products ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See MatrixProduct.h. Transposes and batches are strides.
//===----------------------------------------------------------------------===//

#include "penstock/Target/MatrixProduct.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock;

using Operand = MatrixProduct::Operand;
using Dimension = MatrixProduct::Dimension;
using Dimensions = llvm::SmallVector<Dimension>;

/// As the runtime's descriptor has it.
static constexpr size_t maxBatchRank = 4;

/// Joins neighbors that are one dimension in memory for every operand, and
/// drops those of one element.
static Dimensions merged(llvm::ArrayRef<Dimension> dimensions) {
  Dimensions result;
  for (const Dimension &inner : dimensions) {
    if (inner.size == 1)
      continue;
    auto joins = [&](unsigned operand) {
      return result.back().strides[operand] ==
             inner.strides[operand] * inner.size;
    };
    if (!result.empty() && joins(MatrixProduct::A) && joins(MatrixProduct::B) &&
        joins(MatrixProduct::C)) {
      int64_t size = result.back().size * inner.size;
      result.back() = inner;
      result.back().size = size;
      continue;
    }
    result.push_back(inner);
  }
  return result;
}

/// Several m (or n) dimensions: the last stays, the others repeat the operand
/// that lacks them.
static Dimension takeLast(Dimensions &dimensions, Dimensions &batch) {
  if (dimensions.empty())
    return {1, {0, 0, 0}};
  Dimension last = dimensions.pop_back_val();
  batch.append(dimensions);
  return last;
}

static bool hasUnitStride(const Dimension &x, const Dimension &y,
                          Operand operand) {
  return x.size == 1 || y.size == 1 || x.strides[operand] == 1 ||
         y.strides[operand] == 1;
}

llvm::FailureOr<MatrixProduct> penstock::readMatrixProduct(
    llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<AffineMap> maps,
    llvm::ArrayRef<llvm::SmallVector<int64_t>> strides, std::string *reason) {
  auto fail = [&](const char *text) {
    if (reason)
      *reason = text;
    return llvm::failure();
  };
  const char *notStrided = "not an f32 product of strided matrices";

  // 1. Strides and kind of every loop.
  Dimensions all;
  for (int64_t size : sizes)
    all.push_back({size, {0, 0, 0}});
  for (auto [operand, map] : llvm::enumerate(maps))
    for (auto [expr, stride] :
         llvm::zip_equal(map.getResults(), strides[operand])) {
      auto dim = llvm::dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        return fail(notStrided);
      all[dim.getPosition()].strides[operand] += stride;
    }
  Dimensions batch, m, n, k;
  for (auto [number, dimension] : llvm::enumerate(all)) {
    bool inA = maps[0].isFunctionOfDim(number),
         inB = maps[1].isFunctionOfDim(number),
         inC = maps[2].isFunctionOfDim(number);
    if (dimension.size == 0 || inA + inB + inC < 2)
      return fail(notStrided);
    (inA && inB && inC ? batch : !inB ? m : !inA ? n : k).push_back(dimension);
  }
  batch = merged(batch), m = merged(m), n = merged(n), k = merged(k);
  if (k.size() > 1)
    return fail(notStrided);

  // 2. One of each, and the rest repeats.
  MatrixProduct product;
  product.k = k.empty() ? Dimension{1, {0, 0, 0}} : k.front();
  product.m = takeLast(m, batch);
  product.n = takeLast(n, batch);
  product.batch = merged(batch);
  if (product.batch.size() > maxBatchRank)
    return fail(notStrided);
  // A product whose result lies by columns is the transposed one by rows.
  if (product.n.size != 1 && product.n.strides[MatrixProduct::C] != 1) {
    std::swap(product.m, product.n);
    std::swap(product.left, product.right);
  }
  if (!hasUnitStride(product.m, product.k, product.left) ||
      !hasUnitStride(product.k, product.n, product.right) ||
      !hasUnitStride(product.m, product.n, MatrixProduct::C))
    return fail("a matrix has no unit stride");
  return product;
}
