//===- CollapseLoops.cpp - Adjacent loops become one ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Upstream's collapsing of buffers wants all operands to have
// the shape of the loops; here they may lack some, as a bias does.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/CollapseLoops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

/// Returns true if `operand` is indexed by loops `dim` and `dim` + 1 next to
/// each other with nothing between the rows of the latter, or by neither.
static bool joins(linalg::GenericOp op, OpOperand &operand, unsigned dim) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isFunctionOfDim(dim) && !map.isFunctionOfDim(dim + 1))
    return true;
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type || failed(type.getStridesAndOffset(strides, offset)))
    return false;
  AffineExpr first = getAffineDimExpr(dim, map.getContext());
  AffineExpr second = getAffineDimExpr(dim + 1, map.getContext());
  ArrayRef<AffineExpr> results = map.getResults();
  const auto *at = llvm::find(results, first);
  unsigned position = at - results.begin();
  if (position + 1 >= results.size() || results[position + 1] != second ||
      ShapedType::isDynamic(strides[position]) ||
      ShapedType::isDynamic(strides[position + 1]) ||
      strides[position] !=
          strides[position + 1] * type.getDimSize(position + 1))
    return false;
  for (auto [index, result] : llvm::enumerate(results))
    if (index != position && index != position + 1 &&
        (result.isFunctionOfDim(dim) || result.isFunctionOfDim(dim + 1)))
      return false;
  return true;
}

static bool joins(linalg::GenericOp op, unsigned dim) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  if (iterators[dim] != utils::IteratorType::parallel ||
      iterators[dim + 1] != utils::IteratorType::parallel)
    return false;
  WalkResult usesNumber = op.getBody()->walk([&](linalg::IndexOp index) {
    bool isUsed = index.getDim() == dim || index.getDim() == dim + 1;
    return isUsed ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !usesNumber.wasInterrupted() &&
         llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           return joins(op, operand, dim);
         });
}

linalg::GenericOp penstock::collapseParallelLoops(RewriterBase &rewriter,
                                                  linalg::GenericOp op) {
  // 1. The loop that each one becomes.
  SmallVector<unsigned> target;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    bool isJoined = dim > 0 && joins(op, dim - 1);
    target.push_back(dim == 0 ? 0 : target.back() + (isJoined ? 0 : 1));
  }
  unsigned loops = target.empty() ? 0 : target.back() + 1;
  if (loops == op.getNumLoops())
    return op;

  // 2. Operands and maps, in which joined loops are neighbors.
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  MLIRContext *context = rewriter.getContext();
  SmallVector<AffineExpr> renamed;
  for (unsigned dim : target)
    renamed.push_back(getAffineDimExpr(dim, context));
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    SmallVector<AffineExpr> results;
    SmallVector<ReassociationIndices> groups;
    ArrayRef<AffineExpr> old = op.getMatchingIndexingMap(&operand).getResults();
    for (auto [position, result] : llvm::enumerate(old)) {
      AffineExpr expr = result.replaceDims(renamed);
      // A diagonal has the same loop twice, and stays.
      if (position > 0 && result != old[position - 1] &&
          expr == results.back()) {
        groups.back().push_back(position);
        continue;
      }
      groups.push_back({static_cast<int64_t>(position)});
      results.push_back(expr);
    }
    Value value = operand.get();
    if (results.size() < old.size())
      value =
          memref::CollapseShapeOp::create(rewriter, op.getLoc(), value, groups);
    operands.push_back(value);
    maps.push_back(AffineMap::get(loops, 0, results, context));
  }

  // 3. The op, with the same body.
  SmallVector<utils::IteratorType> iterators(loops);
  for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    iterators[target[dim]] = iterator;
  ValueRange range(operands);
  unsigned inputs = op.getNumDpsInputs();
  auto result = linalg::GenericOp::create(
      rewriter, op.getLoc(), TypeRange(), range.take_front(inputs),
      range.drop_front(inputs), maps, iterators);
  rewriter.inlineRegionBefore(op.getRegion(), result.getRegion(),
                              result.getRegion().end());
  result.getBody()->walk(
      [&](linalg::IndexOp index) { index.setDim(target[index.getDim()]); });
  rewriter.eraseOp(op);
  return result;
}
