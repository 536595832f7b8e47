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

/// One op on a row: `body` has the elements of `inputs` and the old one.
Value emitRow(OpBuilder &b, Location loc, ValueRange inputs, Value out,
              function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = cast<RankedTensorType>(out.getType());
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, TypeRange(type), inputs, ValueRange(out), maps, iterators,
             [&](OpBuilder &inside, Location, ValueRange elements) {
               linalg::YieldOp::create(inside, loc, body(inside, elements));
             })
      .getResult(0);
}

//===--- Gather ---===//

struct ExpandGather : OpRewritePattern<nn::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = op.getResult().getType();
    IndexWalker walker(rewriter, loc, type, op.getData().getType(),
                       op.getIndices(), op.getAt(), op.getIndexMaps());
    Value mark = arith::ConstantOp::create(rewriter, loc,
                                           getMark(type.getElementType()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    if (walker.hasNoPositions()) {
      rewriter.replaceOpWithNewOp<linalg::FillOp>(op, mark, empty);
      return success();
    }
    bool byRows = walker.hasRows() && !prefersParallelLoops(op);
    rewriter.replaceOp(op, byRows ? rows(walker, op, mark, empty)
                                  : elements(walker, op, mark, empty));
    return success();
  }

  static Value rows(IndexWalker &walker, nn::GatherOp op, Value mark,
                    Value empty) {
    Location loc = op.getLoc();
    return walker.loop(
        walker.outerRank(), empty,
        [&](OpBuilder &b, ValueRange iteration, Value carried) -> Value {
          IndexWalker::Position from =
              walker.find(b, iteration, walker.loadIndices(b, iteration),
                          IndexWalker::Unit::Row);
          IndexWalker::Slice source = walker.rowAt(from.at);
          IndexWalker::Slice target = walker.rowAt(iteration);
          RankedTensorType rowType = walker.rowType();
          Value row = tensor::ExtractSliceOp::create(
              b, loc, rowType, op.getData(), source.offsets, source.sizes,
              source.strides);
          Value place = tensor::ExtractSliceOp::create(
              b, loc, rowType, carried, target.offsets, target.sizes,
              target.strides);
          row = emitRow(b, loc, row, place,
                        [&](OpBuilder &inside, ValueRange elements) {
                          return from.valid ? walker.select(inside, from.valid,
                                                            elements[0], mark)
                                            : elements[0];
                        });
          return tensor::InsertSliceOp::create(b, loc, row, carried,
                                               target.offsets, target.sizes,
                                               target.strides);
        });
  }

  static Value elements(IndexWalker &walker, nn::GatherOp op, Value mark,
                        Value empty) {
    Location loc = op.getLoc();
    OpBuilder &builder = walker.builder;
    int64_t rank = walker.space.getRank();
    SmallVector<AffineMap> maps = walker.indexMaps;
    maps.push_back(builder.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               builder, loc, TypeRange(walker.space), op.getIndices(),
               ValueRange(empty), maps, iterators,
               [&](OpBuilder &b, Location, ValueRange scalars) {
                 SmallVector<Value> iteration;
                 for (int64_t d = 0; d < rank; ++d)
                   iteration.push_back(linalg::IndexOp::create(b, loc, d));
                 IndexWalker::Position from =
                     walker.find(b, iteration, scalars.drop_back(),
                                 IndexWalker::Unit::Element);
                 Value value =
                     tensor::ExtractOp::create(b, loc, op.getData(), from.at);
                 if (from.valid)
                   value = walker.select(b, from.valid, value, mark);
                 linalg::YieldOp::create(b, loc, value);
               })
        .getResult(0);
  }
};

//===--- Scatter ---===//

Value combine(OpBuilder &b, Location loc, nn::ScatterKind kind, Value old,
              Value update) {
  bool isFloat = isa<FloatType>(update.getType());
  switch (kind) {
  case nn::ScatterKind::None:
    return update;
  case nn::ScatterKind::Add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, old, update))
                   : Value(arith::AddIOp::create(b, loc, old, update));
  case nn::ScatterKind::Mul:
    return isFloat ? Value(arith::MulFOp::create(b, loc, old, update))
                   : Value(arith::MulIOp::create(b, loc, old, update));
  case nn::ScatterKind::Max:
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, old, update))
                   : Value(arith::MaxSIOp::create(b, loc, old, update));
  case nn::ScatterKind::Min:
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, old, update))
                   : Value(arith::MinSIOp::create(b, loc, old, update));
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
    Location loc = op.getLoc();
    IndexWalker walker(rewriter, loc, op.getUpdates().getType(),
                       op.getInit().getType(), op.getIndices(), op.getAt(),
                       op.getIndexMaps());
    if (walker.hasNoPositions()) {
      rewriter.replaceOp(op, op.getInit());
      return success();
    }
    Value mark = arith::ConstantOp::create(
        rewriter, loc, getMark(walker.space.getElementType()));
    auto join = [&](OpBuilder &b, Value old, Value update, Value valid) {
      Value value = combine(b, loc, op.getKind(), old, update);
      return valid ? walker.select(b, valid, value, mark) : value;
    };
    bool rows = walker.hasRows();
    rewriter.replaceOp(
        op,
        walker.loop(
            rows ? walker.outerRank() : walker.space.getRank(),
            getStart(rewriter, op),
            [&](OpBuilder &b, ValueRange iteration, Value carried) -> Value {
              IndexWalker::Position to = walker.find(
                  b, iteration, walker.loadIndices(b, iteration),
                  rows ? IndexWalker::Unit::Row : IndexWalker::Unit::Element);
              if (!rows) {
                Value update = tensor::ExtractOp::create(
                    b, loc, op.getUpdates(), iteration);
                Value old = tensor::ExtractOp::create(b, loc, carried, to.at);
                return tensor::InsertOp::create(
                    b, loc, join(b, old, update, to.valid), carried, to.at);
              }
              IndexWalker::Slice source = walker.rowAt(iteration);
              IndexWalker::Slice target = walker.rowAt(to.at);
              Value update = tensor::ExtractSliceOp::create(
                  b, loc, walker.rowType(), op.getUpdates(), source.offsets,
                  source.sizes, source.strides);
              Value place = tensor::ExtractSliceOp::create(
                  b, loc, walker.rowType(), carried, target.offsets,
                  target.sizes, target.strides);
              Value row = emitRow(b, loc, update, place,
                                  [&](OpBuilder &inside, ValueRange elements) {
                                    return join(inside, elements[1],
                                                elements[0], to.valid);
                                  });
              return tensor::InsertSliceOp::create(b, loc, row, carried,
                                                   target.offsets, target.sizes,
                                                   target.strides);
            }));
    return success();
  }
};

} // namespace

void penstock::populateExpandIndexing(RewritePatternSet &patterns) {
  patterns.add<ExpandGather, ExpandScatter>(patterns.getContext());
}
