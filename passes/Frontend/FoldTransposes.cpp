//===- FoldTransposes.cpp - Transposes into the ops that use them ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product reads and writes its matrices by strides, so a transpose around one
// is a pass over memory for nothing; in the backward it would be two more. It
// happens before the model is cut: how a product is computed must not depend on
// where the cut is.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"
#include "penstock/Target/MatrixProduct.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace penstock {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

linalg::TransposeOp findTranspose(Value value) {
  return value.getDefiningOp<linalg::TransposeOp>();
}

/// The node of a transpose that disappears is still one after which a model can
/// be cut: what computes its operand takes its name along.
void keepName(linalg::TransposeOp transpose) {
  Operation *producer = transpose.getInput().getDefiningOp();
  while (
      isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(producer))
    producer = producer->getOperand(0).getDefiningOp();
  if (producer && transpose->hasOneUse())
    producer->setLoc(FusedLoc::get(transpose.getContext(),
                                   {producer->getLoc(), transpose.getLoc()}));
}

/// Returns true for the product of operands with these shapes, and for both of
/// its derivatives, where the library computes it.
SmallVector<bool> isProduct(ArrayRef<int64_t> sizes, ArrayRef<AffineMap> maps,
                            ArrayRef<ArrayRef<int64_t>> shapes) {
  SmallVector<bool> result;
  for (unsigned output : {2, 0, 1}) {
    SmallVector<AffineMap> permuted;
    SmallVector<SmallVector<int64_t>> strides;
    for (unsigned i : {(output + 1) % 3, (output + 2) % 3, output}) {
      permuted.push_back(maps[i]);
      strides.push_back(computeSuffixProduct(shapes[i]));
    }
    result.push_back(succeeded(readMatrixProduct(sizes, permuted, strides)));
  }
  return result;
}

/// Returns true if `contract` loses nothing when operand `number` has this map
/// and shape instead.
bool staysProduct(linalg::ContractOp contract, unsigned number, AffineMap map,
                  ArrayRef<int64_t> shape) {
  auto op = cast<linalg::LinalgOp>(contract.getOperation());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isF32())
      return false;
    shapes.push_back(type.getShape());
  }
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<bool> before = isProduct(sizes, maps, shapes);
  maps[number] = map;
  shapes[number] = shape;
  SmallVector<bool> after = isProduct(sizes, maps, shapes);
  for (auto [was, is] : llvm::zip_equal(before, after))
    if (was && !is)
      return false;
  return true;
}

void setMap(linalg::ContractOp contract, unsigned number, AffineMap map) {
  SmallVector<AffineMap> maps = contract.getIndexingMapsArray();
  maps[number] = map;
  contract.setIndexingMapsAttr(
      Builder(contract.getContext()).getAffineMapArrayAttr(maps));
}

/// contract(transpose(x), y) reads x by its own strides.
struct FoldOperand : OpRewritePattern<linalg::ContractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::ContractOp contract,
                                PatternRewriter &rewriter) const override {
    for (unsigned number : {0u, 1u}) {
      auto transpose = findTranspose(contract.getInputs()[number]);
      if (!transpose)
        continue;
      AffineMap old = contract.getIndexingMapsArray()[number];
      SmallVector<AffineExpr> results(old.getNumResults());
      for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        results[from] = old.getResult(to);
      AffineMap map =
          AffineMap::get(old.getNumDims(), 0, results, contract.getContext());
      auto type = cast<RankedTensorType>(transpose.getInput().getType());
      if (!staysProduct(contract, number, map, type.getShape()))
        continue;
      keepName(transpose);
      rewriter.modifyOpInPlace(contract, [&] {
        contract->setOperand(number, transpose.getInput());
        setMap(contract, number, map);
      });
      return success();
    }
    return failure();
  }
};

/// transpose(contract(...)) is written where the transposed result belongs.
struct FoldResult : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp transpose,
                                PatternRewriter &rewriter) const override {
    auto contract = transpose.getInput().getDefiningOp<linalg::ContractOp>();
    if (!contract || !contract->hasOneUse())
      return failure();
    auto fill = contract.getDpsInits().front().getDefiningOp<linalg::FillOp>();
    auto type = cast<RankedTensorType>(transpose->getResult(0).getType());
    if (!fill || !type.hasStaticShape())
      return failure();
    AffineMap old = contract.getIndexingMapsArray()[2];
    SmallVector<AffineExpr> results;
    for (int64_t from : transpose.getPermutation())
      results.push_back(old.getResult(from));
    AffineMap map =
        AffineMap::get(old.getNumDims(), 0, results, contract.getContext());
    if (!staysProduct(contract, 2, map, type.getShape()))
      return failure();

    Location loc =
        FusedLoc::get(getContext(), {contract.getLoc(), transpose.getLoc()});
    rewriter.setInsertionPoint(contract);
    Value empty = tensor::EmptyOp::create(
        rewriter, contract.getLoc(), type.getShape(), type.getElementType());
    Value zeros = linalg::FillOp::create(rewriter, contract.getLoc(),
                                         fill.getInputs().front(), empty)
                      .getResult(0);
    SmallVector<AffineMap> maps = contract.getIndexingMapsArray();
    maps[2] = map;
    auto result = linalg::ContractOp::create(
        rewriter, loc, TypeRange(type), contract.getInputs(), ValueRange(zeros),
        rewriter.getAffineMapArrayAttr(maps));
    rewriter.replaceOp(transpose, result->getResults());
    rewriter.eraseOp(contract);
    return success();
  }
};

/// An elementwise op of one result, computed from its inputs alone.
bool isElementwise(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() || op.hasDynamicShape() ||
      !op.getBody()->getArguments().back().use_empty() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
      !op.getBody()->getOps<linalg::IndexOp>().empty())
    return false;
  return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return map.isProjectedPermutation();
  });
}

/// The same op over other inputs.
linalg::GenericOp withInputs(PatternRewriter &rewriter, linalg::GenericOp op,
                             ArrayRef<int64_t> shape, ValueRange inputs,
                             ArrayRef<AffineMap> inputMaps) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), shape, element);
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(rewriter.getMultiDimIdentityMap(shape.size()));
  auto result = linalg::GenericOp::create(
      rewriter, op.getLoc(), TypeRange(empty.getType()), inputs,
      ValueRange(empty), maps,
      SmallVector<utils::IteratorType>(shape.size(),
                                       utils::IteratorType::parallel));
  rewriter.inlineRegionBefore(op.getRegion(), result.getRegion(),
                              result.getRegion().end());
  return result;
}

/// f(transpose(x)) becomes transpose(f(x)), nearer to the product.
struct SinkBelowElementwise : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    // 1. All inputs of full size are transposed, and alike.
    linalg::TransposeOp first;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      if (map.getNumResults() < map.getNumDims())
        continue;
      auto transpose = findTranspose(input->get());
      if (!transpose || !map.isIdentity() || !transpose->hasOneUse() ||
          (first && first.getPermutation() != transpose.getPermutation()))
        return failure();
      first = transpose;
    }
    if (!first)
      return failure();
    // 2. Loop d of the old op runs over dimension order[d] of x.
    ArrayRef<int64_t> order = first.getPermutation();
    SmallVector<AffineExpr> dims;
    for (int64_t dim : order)
      dims.push_back(rewriter.getAffineDimExpr(dim));
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      Value value = input->get();
      if (map.getNumResults() < map.getNumDims()) {
        map = map.replaceDimsAndSymbols(dims, {}, order.size(), 0);
      } else {
        keepName(findTranspose(value));
        value = findTranspose(value).getInput();
        map = rewriter.getMultiDimIdentityMap(order.size());
      }
      inputs.push_back(value);
      maps.push_back(map);
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto from = cast<RankedTensorType>(first.getInput().getType());
    auto moved = withInputs(rewriter, op, from.getShape(), inputs, maps);
    Value empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(), type.getShape(), type.getElementType());
    rewriter.replaceOpWithNewOp<linalg::TransposeOp>(op, moved.getResult(0),
                                                     empty, order);
    return success();
  }
};

/// f(expand(g(x))) with f of one tensor and scalars becomes expand(f(g(x))),
/// one loop.
struct SinkShapeBelowElementwise : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    tensor::ExpandShapeOp expand;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      if (map.getNumResults() == 0)
        continue;
      if (expand || !map.isIdentity())
        return failure();
      expand = input->get().getDefiningOp<tensor::ExpandShapeOp>();
      if (!expand || !expand->hasOneUse())
        return failure();
    }
    if (!expand)
      return failure();
    auto producer = expand.getSrc().getDefiningOp<linalg::GenericOp>();
    if (!producer || !isElementwise(producer) || !producer->hasOneUse())
      return failure();
    RankedTensorType from = expand.getSrcType();
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (Value input : op.getInputs()) {
      bool isTensor = input == expand.getResult();
      inputs.push_back(isTensor ? expand.getSrc() : input);
      maps.push_back(isTensor
                         ? rewriter.getMultiDimIdentityMap(from.getRank())
                         : AffineMap::get(from.getRank(), 0, getContext()));
    }
    auto moved = withInputs(rewriter, op, from.getShape(), inputs, maps);
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, op->getResult(0).getType(), moved.getResult(0),
        expand.getReassociationIndices());
    return success();
  }
};

/// transpose(collapse(transpose(x))) becomes collapse(transpose(transpose(x))),
/// whose transposes are one.
struct RaiseAboveCollapse : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp transpose,
                                PatternRewriter &rewriter) const override {
    auto collapse =
        transpose.getInput().getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || !collapse->hasOneUse() ||
        !findTranspose(collapse.getSrc()))
      return failure();
    SmallVector<ReassociationIndices> groups =
                                          collapse.getReassociationIndices(),
                                      newGroups;
    SmallVector<int64_t> order, shape;
    for (int64_t group : transpose.getPermutation()) {
      newGroups.emplace_back();
      for (int64_t dim : groups[group]) {
        newGroups.back().push_back(static_cast<int64_t>(order.size()));
        order.push_back(dim);
        shape.push_back(collapse.getSrcType().getDimSize(dim));
      }
    }
    auto type = cast<RankedTensorType>(transpose->getResult(0).getType());
    Value empty = tensor::EmptyOp::create(rewriter, transpose.getLoc(), shape,
                                          type.getElementType());
    Value moved = linalg::TransposeOp::create(rewriter, transpose.getLoc(),
                                              collapse.getSrc(), empty, order)
                      ->getResult(0);
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(transpose, type, moved,
                                                         newGroups);
    return success();
  }
};

struct FoldTransposesPass
    : penstock::impl::FoldTransposesBase<FoldTransposesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldOperand, FoldResult, SinkBelowElementwise,
                 SinkShapeBelowElementwise, RaiseAboveCollapse>(&getContext());
    linalg::TransposeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
