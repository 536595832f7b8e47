//===- SelectLibrary.cpp - Contractions become library calls --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a matrix product out of the maps and strides of a contraction.
// Transposes and batches are strides, so nothing is ever rearranged; a product
// into a buffer that was just set to zero need not read it. What the library
// cannot do, or only slowly, stays a contraction and becomes loops.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Lowering/Passes.h"
#include "penstock/Codegen/LibraryScratch.h"

#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESELECTLIBRARY
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

enum Operand { A, B, C };

/// A loop dimension, or several that one counter can run over.
struct Dimension {
  int64_t size;
  int64_t strides[3]; // per operand, zero where it does not occur
};

/// As the runtime's descriptor has it.
constexpr size_t maxBatchRank = 4;

using Dimensions = SmallVector<Dimension>;

struct Product {
  Dimensions batch;
  Dimension m, n, k;
};

/// Joins neighbours that are one dimension in memory for every operand, and
/// drops those of one element.
Dimensions merged(ArrayRef<Dimension> dimensions) {
  Dimensions result;
  for (const Dimension &inner : dimensions) {
    if (inner.size == 1)
      continue;
    auto joins = [&](int operand) {
      return result.back().strides[operand] ==
             inner.strides[operand] * inner.size;
    };
    if (!result.empty() && joins(A) && joins(B) && joins(C)) {
      result.back() = {result.back().size * inner.size,
                       {inner.strides[A], inner.strides[B], inner.strides[C]}};
      continue;
    }
    result.push_back(inner);
  }
  return result;
}

/// The strides of `contract`, by loop dimension.
FailureOr<Dimensions> readDimensions(linalg::ContractOp contract) {
  Dimensions dimensions;
  auto op = cast<linalg::LinalgOp>(contract.getOperation());
  for (int64_t size : op.getStaticLoopRanges())
    dimensions.push_back({size, {0, 0, 0}});
  for (auto [operand, map] :
       llvm::zip_equal(op->getOpOperands(), op.getIndexingMapsArray())) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type || !type.getElementType().isF32() ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        llvm::is_contained(strides, ShapedType::kDynamic))
      return failure();
    for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides)) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        return failure();
      dimensions[dim.getPosition()].strides[operand.getOperandNumber()] +=
          stride;
    }
  }
  return dimensions;
}

/// Several m (or n) dimensions: the last stays, the others repeat the operand
/// that lacks them.
Dimension takeLast(Dimensions &dimensions, Dimensions &batch) {
  if (dimensions.empty())
    return {1, {0, 0, 0}};
  Dimension last = dimensions.pop_back_val();
  batch.append(dimensions);
  return last;
}

bool hasUnitStride(const Dimension &x, const Dimension &y, Operand operand) {
  return x.size == 1 || y.size == 1 || x.strides[operand] == 1 ||
         y.strides[operand] == 1;
}

FailureOr<Product> readProduct(linalg::ContractOp contract) {
  FailureOr<Dimensions> all = readDimensions(contract);
  FailureOr<linalg::ContractionDimensions> kinds = linalg::inferContractionDims(
      cast<linalg::LinalgOp>(contract.getOperation()));
  if (failed(all) || failed(kinds))
    return failure();
  auto pick = [&](ArrayRef<unsigned> numbers) {
    SmallVector<unsigned> order(numbers);
    llvm::sort(order);
    Dimensions result;
    for (unsigned number : order)
      result.push_back((*all)[number]);
    return merged(result);
  };
  Dimensions batch = pick(kinds->batch), m = pick(kinds->m), n = pick(kinds->n),
             k = pick(kinds->k);
  if (k.size() > 1)
    return failure();
  Product product;
  product.k = k.empty() ? Dimension{1, {0, 0, 0}} : k.front();
  product.m = takeLast(m, batch);
  product.n = takeLast(n, batch);
  product.batch = merged(batch);
  if (product.batch.size() > maxBatchRank)
    return failure();
  if (llvm::any_of(*all, [](const Dimension &d) { return d.size == 0; }))
    return failure();
  return product;
}

/// The buffer that `value` is a view of.
Value rootOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// The fill with zero that `contract` adds to, when nothing lies between.
linalg::FillOp findZeroFill(linalg::ContractOp contract) {
  Value output = contract.getDpsInits().front();
  Value root = rootOf(output);
  for (Operation *op = contract->getPrevNode(); op; op = op->getPrevNode()) {
    bool touches = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        touches |=
            isa<MemRefType>(operand.getType()) && rootOf(operand) == root;
    });
    if (!touches || isa<ViewLikeOpInterface>(op))
      continue;
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (!fill || fill.getDpsInits().front() != output ||
        !matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
      return {};
    return fill;
  }
  return {};
}

struct SelectLibraryPass
    : penstock::impl::PipelineSelectLibraryBase<SelectLibraryPass> {
  using PipelineSelectLibraryBase::PipelineSelectLibraryBase;

  void select(linalg::ContractOp contract) {
    FailureOr<Product> product = readProduct(contract);
    if (failed(product))
      return (void)(contract.emitRemark("becomes loops: not an f32 product of "
                                        "strided matrices"));
    Value a = contract.getInputs()[0], b = contract.getInputs()[1],
          c = contract.getDpsInits().front();
    // A product whose result lies by columns is the transposed one by rows.
    Operand left = A, right = B;
    if (product->n.size != 1 && product->n.strides[C] != 1) {
      std::swap(product->m, product->n);
      std::swap(a, b);
      std::swap(left, right);
    }
    Dimension &m = product->m, &n = product->n, &k = product->k;
    if (!hasUnitStride(m, k, left) || !hasUnitStride(k, n, right) ||
        !hasUnitStride(m, n, C))
      return (void)(contract.emitRemark(
          "becomes loops: a matrix has no unit stride"));

    OpBuilder builder(contract);
    auto strides = [&](Operand operand, const Dimension &row,
                       const Dimension &column) {
      SmallVector<int64_t> result;
      for (const Dimension &dimension : product->batch)
        result.push_back(dimension.strides[operand]);
      result.push_back(row.strides[operand]);
      result.push_back(column.strides[operand]);
      return result;
    };
    SmallVector<int64_t> sizes;
    for (const Dimension &dimension : product->batch)
      sizes.push_back(dimension.size);
    sizes.append({m.size, n.size, k.size});
    linalg::FillOp fill = findZeroFill(contract);
    auto gemm = pipeline::GemmOp::create(
        builder, contract.getLoc(), a, b, c, sizes, strides(left, m, k),
        strides(right, k, n), strides(C, m, n), /*accumulate=*/!fill);

    std::string reason;
    if (failed(gemmScratchBytes(gemm, threads, &reason))) {
      contract.emitRemark("becomes loops: ") << reason;
      gemm.erase();
      return;
    }
    if (fill)
      fill.erase();
    contract.erase();
  }

  void runOnOperation() override {
    SmallVector<linalg::ContractOp> contracts;
    getOperation().walk([&](linalg::ContractOp contract) {
      if (contract.hasPureBufferSemantics())
        contracts.push_back(contract);
    });
    for (linalg::ContractOp contract : contracts)
      select(contract);
  }
};

} // namespace
