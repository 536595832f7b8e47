//===- ExpandIndexing.cpp - Gathers and scatters become loops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Axes of the data that are taken whole form rows, which are copied or combined
// as vectors; a loop runs over the others. Without rows, or where the target
// prefers parallel loops, a gather is one generic. A scatter, whose updates
// must stay in order, is a loop over all of them.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/Composites.h"
#include "passes/Kernels/IndexWalker.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// What stands where an index was out of range.
TypedAttr getMark(Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type, APFloat::getNaN(type.getFloatSemantics()));
  unsigned width = element.getIntOrFloatBitWidth();
  APInt value = element.isInteger(1) || element.isUnsignedInteger()
                    ? APInt::getZero(width)
                    : APInt::getSignedMinValue(width);
  return IntegerAttr::get(element, value);
}

//===--- Gather ---===//

struct ExpandGather : OpRewritePattern<nn::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getResult().getType();
    IndexWalker walker(rewriter, op.getLoc(), type, op.getData().getType(),
                       op.getIndices(), op.getAt(), op.getIndexMaps());
    Value mark = walker.make<arith::ConstantOp>(getMark(type.getElementType()));
    if (walker.hasNoPositions()) {
      rewriter.replaceOp(op, walker.filled(type, mark));
      return success();
    }
    bool byRows = walker.hasRows() && !prefersParallelLoops(op);
    Value empty = walker.empty(type);
    rewriter.replaceOp(op, byRows ? rows(walker, op, mark, empty)
                                  : elements(walker, op, mark, empty));
    return success();
  }

  static Value rows(IndexWalker &walker, nn::GatherOp op, Value mark,
                    Value empty) {
    return walker.loop(walker.outerRank(), empty,
                       [&](Structured &s, ValueRange iteration, Value carried) {
                         IndexWalker::Position from =
                             walker.find(s, iteration, IndexWalker::Unit::Row);
                         return walker.combineRows(
                             s, op.getData(), from.at, carried, iteration,
                             [&](Scalars &s, ValueRange in) {
                               return from.valid
                                          ? s.select(from.valid, in[0], mark)
                                          : in[0];
                             });
                       });
  }

  static Value elements(IndexWalker &walker, nn::GatherOp op, Value mark,
                        Value empty) {
    int64_t rank = walker.space.getRank();
    SmallVector<AffineMap> maps = walker.indexMaps;
    maps.push_back(walker.identity(rank));
    return walker.generic(
        op.getIndices(), empty, maps, Structured::parallel(rank),
        [&](Scalars &s, ValueRange in) {
          SmallVector<Value> iteration;
          for (int64_t d = 0; d < rank; ++d)
            iteration.push_back(s.make<linalg::IndexOp>(d));
          IndexWalker::Position from = walker.find(s, iteration, in.drop_back(),
                                                   IndexWalker::Unit::Element);
          Value value = s.make<tensor::ExtractOp>(op.getData(), from.at);
          return from.valid ? s.select(from.valid, value, mark) : value;
        });
  }
};

//===--- Scatter ---===//

Value combine(Scalars &s, nn::ScatterKind kind, Value old, Value update) {
  switch (kind) {
  case nn::ScatterKind::None:
    return update;
  case nn::ScatterKind::Add:
    return s.add(old, update);
  case nn::ScatterKind::Mul:
    return s.mul(old, update);
  case nn::ScatterKind::Max:
    return s.max(old, update);
  case nn::ScatterKind::Min:
    return s.min(old, update);
  }
  return update;
}

/// What the updates go into. An argument that must stay is copied to where the
/// result will be; bufferization would make room for it in between.
Value getStart(OpBuilder &builder, nn::ScatterOp op) {
  auto argument = dyn_cast<BlockArgument>(op.getInit());
  auto function = op->getParentOfType<func::FuncOp>();
  if (!argument || !function || argument.getOwner() != &function.front() ||
      function.getArgAttr(argument.getArgNumber(), pipeline::kIntoAttr))
    return op.getInit();
  Value empty = tensor::EmptyOp::create(builder, op.getLoc(),
                                        op.getInit().getType(), ValueRange());
  return linalg::CopyOp::create(builder, op.getLoc(), argument, empty)
      .getResult(0);
}

struct ExpandScatter : OpRewritePattern<nn::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    IndexWalker walker(rewriter, op.getLoc(), op.getUpdates().getType(),
                       op.getInit().getType(), op.getIndices(), op.getAt(),
                       op.getIndexMaps());
    if (walker.hasNoPositions()) {
      rewriter.replaceOp(op, op.getInit());
      return success();
    }
    Value mark =
        walker.make<arith::ConstantOp>(getMark(walker.space.getElementType()));
    auto join = [&](Scalars &s, Value old, Value update, Value valid) {
      Value value = combine(s, op.getKind(), old, update);
      return valid ? s.select(valid, value, mark) : value;
    };
    auto scatterRow = [&](Structured &s, ValueRange iteration, Value carried) {
      IndexWalker::Position to =
          walker.find(s, iteration, IndexWalker::Unit::Row);
      return walker.combineRows(s, op.getUpdates(), iteration, carried, to.at,
                                [&](Scalars &s, ValueRange in) {
                                  return join(s, in[1], in[0], to.valid);
                                });
    };
    auto scatterElement = [&](Structured &s, ValueRange iteration,
                              Value carried) {
      IndexWalker::Position to =
          walker.find(s, iteration, IndexWalker::Unit::Element);
      Value update = s.make<tensor::ExtractOp>(op.getUpdates(), iteration);
      Value old = s.make<tensor::ExtractOp>(carried, to.at);
      return s.make<tensor::InsertOp>(join(s, old, update, to.valid), carried,
                                      to.at);
    };
    Value start = getStart(rewriter, op);
    rewriter.replaceOp(
        op, walker.hasRows()
                ? walker.loop(walker.outerRank(), start, scatterRow)
                : walker.loop(walker.space.getRank(), start, scatterElement));
    return success();
  }
};

} // namespace

void penstock::populateExpandIndexing(RewritePatternSet &patterns) {
  patterns.add<ExpandGather, ExpandScatter>(patterns.getContext());
}
