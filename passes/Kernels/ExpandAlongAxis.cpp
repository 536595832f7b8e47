//===- ExpandAlongAxis.cpp - Sums, ranks and exponentials of an axis ------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nn.cumulative_sum, nn.top_k and nn.log_sum_exp. The first two are loops over
// the axis, as each step needs the one before: around vectors of lines, or,
// where the target prefers parallel loops, within each line. Few long lines are
// divided there (FewLines.h).
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Kernels/Composites.h"
#include "passes/Kernels/FewLines.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value createEmpty(OpBuilder &builder, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                 type.getElementType());
}

Value createFilled(OpBuilder &builder, Location loc, RankedTensorType type,
                   TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  return linalg::FillOp::create(builder, loc, scalar,
                                createEmpty(builder, loc, type))
      .getResult(0);
}

//===--- Cumulative sum ---===//

/// A step adds one slice of the input to the sum so far and copies the sum, in
/// the other order when it is exclusive.
struct ExpandCumulativeSum : OpRewritePattern<nn::CumulativeSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CumulativeSumOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto dim = static_cast<int64_t>(op.getDim());
    int64_t size = type.getDimSize(dim);
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dim);
    auto sliceType = RankedTensorType::get(shape, type.getElementType());
    Value zeros = createFilled(rewriter, loc, sliceType,
                               rewriter.getZeroAttr(type.getElementType()));
    if (prefersParallelLoops(op)) {
      rewriter.replaceOp(op, hasLongSums(op)
                                 ? expandInParts(rewriter, op)
                                 : expandLines(rewriter, op, zeros));
      return success();
    }
    auto loop = scf::ForOp::create(
        rewriter, loc, createIndex(rewriter, loc, 0),
        createIndex(rewriter, loc, size), createIndex(rewriter, loc, 1),
        ValueRange{createEmpty(rewriter, loc, type), zeros},
        [&](OpBuilder &b, Location, Value step, ValueRange carried) {
          Value at = step;
          if (op.getReverse())
            at = arith::SubIOp::create(b, loc, createIndex(b, loc, size - 1),
                                       step);
          SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
          SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
          SmallVector<OpFoldResult> sizes;
          for (int64_t extent : type.getShape())
            sizes.push_back(b.getIndexAttr(extent));
          offsets[dim] = at;
          sizes[dim] = b.getIndexAttr(1);
          Value slice = tensor::ExtractSliceOp::create(
              b, loc, sliceType, op.getInput(), offsets, sizes, strides);
          Value place = tensor::ExtractSliceOp::create(
              b, loc, sliceType, carried[0], offsets, sizes, strides);
          int64_t rank = sliceType.getRank();
          SmallVector<AffineMap> maps(3, b.getMultiDimIdentityMap(rank));
          auto sums = linalg::GenericOp::create(
              b, loc, TypeRange{sliceType, sliceType}, slice,
              ValueRange{place, carried[1]}, maps,
              SmallVector<IteratorType>(rank, IteratorType::parallel),
              [&](OpBuilder &inside, Location, ValueRange elements) {
                yieldSums(inside, op, elements[0], elements[2]);
              });
          Value result = tensor::InsertSliceOp::create(
              b, loc, sums.getResult(0), carried[0], offsets, sizes, strides);
          scf::YieldOp::create(b, loc, ValueRange{result, sums.getResult(1)});
        });
    rewriter.replaceOp(op, loop.getResult(0));
    return success();
  }

  /// The result of an element, and the sum that the next one starts with.
  static void yieldSums(OpBuilder &b, nn::CumulativeSumOp op, Value element,
                        Value before) {
    Location loc = op.getLoc();
    Value sum = isa<FloatType>(element.getType())
                    ? Value(arith::AddFOp::create(b, loc, before, element))
                    : Value(arith::AddIOp::create(b, loc, before, element));
    linalg::YieldOp::create(b, loc,
                            ValueRange{op.getExclusive() ? before : sum, sum});
  }

  /// One op over all lines, of which each carries its sum.
  static Value expandLines(OpBuilder &builder, nn::CumulativeSumOp op,
                           Value zeros) {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto dim = static_cast<unsigned>(op.getDim());
    int64_t size = type.getDimSize(dim);
    AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
    AffineExpr along = all.getResult(dim);
    AffineMap line = all.dropResult(dim);
    AffineMap axis = AffineMap::get(type.getRank(), 0, along);
    if (op.getReverse())
      all = all.replace(along, size - 1 - along, type.getRank(), 0);
    SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
    iterators[dim] = IteratorType::reduction;
    // Says how long the loop is, which a reversed index does not.
    Value extent =
        tensor::EmptyOp::create(builder, loc, {size}, type.getElementType());
    return linalg::GenericOp::create(
               builder, loc, TypeRange{type, zeros.getType()},
               ValueRange{op.getInput(), extent},
               ValueRange{createEmpty(builder, loc, type), zeros},
               ArrayRef<AffineMap>{all, axis, all, line}, iterators,
               [&](OpBuilder &inside, Location, ValueRange elements) {
                 yieldSums(inside, op, elements[0], elements[3]);
               })
        .getResult(0);
  }
};

//===--- Top k ---===//

/// For each place, the first element of those that come behind the one before:
/// no memory beyond the result.
struct ExpandTopK : OpRewritePattern<nn::TopKOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::TopKOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getInput().getType());
    RankedTensorType resultType = op.getResult().getType();
    auto dim = static_cast<int64_t>(op.getDim());
    Value start = createEmpty(rewriter, loc, resultType);
    if (resultType.getNumElements() == 0) {
      rewriter.replaceOp(op, start);
      return success();
    }
    if (prefersParallelLoops(op) && ranksFaster(op)) {
      rewriter.replaceOp(op, expandByRank(rewriter, op));
      return success();
    }
    SmallVector<Value> iteration(type.getRank());
    std::function<Value(OpBuilder &, int64_t, Value)> nest =
        [&](OpBuilder &b, int64_t d, Value carried) -> Value {
      if (d == dim)
        ++d;
      if (d >= type.getRank())
        return selectRow(b, op, iteration, carried);
      auto loop = scf::ForOp::create(
          b, loc, createIndex(b, loc, 0),
          createIndex(b, loc, type.getDimSize(d)), createIndex(b, loc, 1),
          carried,
          [&](OpBuilder &inside, Location, Value counter, ValueRange values) {
            iteration[d] = counter;
            scf::YieldOp::create(inside, loc,
                                 nest(inside, d + 1, values.front()));
          });
      return loop.getResult(0);
    };
    rewriter.replaceOp(op, nest(rewriter, 0, start));
    return success();
  }

  static Value selectRow(OpBuilder &builder, nn::TopKOp op,
                         ArrayRef<Value> iteration, Value carried) {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto dim = static_cast<int64_t>(op.getDim());
    bool smallest = op.getSmallest();
    auto at = [&](Value i) {
      SmallVector<Value> indices(iteration);
      indices[dim] = i;
      return indices;
    };
    auto load = [&](OpBuilder &b, Value i) -> Value {
      return tensor::ExtractOp::create(b, loc, op.getInput(), at(i));
    };
    Value zero = createIndex(builder, loc, 0),
          one = createIndex(builder, loc, 1);
    Value size = createIndex(builder, loc, type.getDimSize(dim));
    Value count =
        createIndex(builder, loc, op.getResult().getType().getDimSize(dim));
    Value none = createIndex(builder, loc, -1);
    // Carried: the result, and the position of the element before.
    auto places = scf::ForOp::create(
        builder, loc, zero, count, one, ValueRange{carried, none},
        [&](OpBuilder &b, Location, Value place, ValueRange state) {
          Value last = arith::MaxSIOp::create(b, loc, state[1], zero);
          Value isFirst = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::eq, state[1], none);
          Value lastValue = load(b, last);
          auto search = scf::ForOp::create(
              b, loc, zero, size, one, ValueRange{none},
              [&](OpBuilder &inside, Location, Value i, ValueRange best) {
                Value value = load(inside, i);
                Value held = arith::MaxSIOp::create(inside, loc, best[0], zero);
                Value behind = arith::OrIOp::create(
                    inside, loc, isFirst,
                    comesBefore(inside, loc, smallest, lastValue, last, value,
                                i));
                Value isBest = arith::OrIOp::create(
                    inside, loc,
                    arith::CmpIOp::create(inside, loc, arith::CmpIPredicate::eq,
                                          best[0], none),
                    comesBefore(inside, loc, smallest, value, i,
                                load(inside, held), held));
                Value taken =
                    arith::AndIOp::create(inside, loc, behind, isBest);
                scf::YieldOp::create(
                    inside, loc,
                    arith::SelectOp::create(inside, loc, taken, i, best[0])
                        .getResult());
              });
          Value found = search.getResult(0);
          Value number =
              arith::IndexCastOp::create(b, loc, b.getI64Type(), found);
          Value next =
              tensor::InsertOp::create(b, loc, number, state[0], at(place));
          scf::YieldOp::create(b, loc, ValueRange{next, found});
        });
    return places.getResult(0);
  }
};

//===--- Log-sum-exp ---===//

struct ExpandLogSumExp : OpRewritePattern<nn::LogSumExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::LogSumExpOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType from = op.getInput().getType();
    RankedTensorType to = op.getResult().getType();
    auto element = cast<FloatType>(from.getElementType());
    AffineMap identity = rewriter.getMultiDimIdentityMap(from.getRank());
    AffineMap reduced = identity;
    SmallVector<IteratorType> iterators(from.getRank(), IteratorType::parallel);
    for (int64_t dim : llvm::reverse(op.getDims())) {
      reduced = reduced.dropResult(dim);
      iterators[dim] = IteratorType::reduction;
    }
    const llvm::fltSemantics &semantics = element.getFloatSemantics();
    auto infinity = FloatAttr::get(element, APFloat::getInf(semantics));
    auto lowest = FloatAttr::get(element, APFloat::getInf(semantics, true));
    auto zero = rewriter.getFloatAttr(element, 0);

    Value maximum = linalg::GenericOp::create(
                        rewriter, loc, TypeRange(to), op.getInput(),
                        createFilled(rewriter, loc, to, lowest),
                        ArrayRef<AffineMap>{identity, reduced}, iterators,
                        [&](OpBuilder &b, Location, ValueRange elements) {
                          Value larger = arith::MaximumFOp::create(
                              b, loc, elements[1], elements[0]);
                          linalg::YieldOp::create(b, loc, larger);
                        })
                        .getResult(0);
    // An infinite maximum is not subtracted.
    auto shift = [&](OpBuilder &b, Value maximum) -> Value {
      Value size = math::AbsFOp::create(b, loc, maximum);
      Value limit = arith::ConstantOp::create(b, loc, infinity);
      Value isInfinite =
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, size, limit);
      return arith::SelectOp::create(
          b, loc, isInfinite, arith::ConstantOp::create(b, loc, zero), maximum);
    };
    Value sum =
        linalg::GenericOp::create(
            rewriter, loc, TypeRange(to), ValueRange{op.getInput(), maximum},
            createFilled(rewriter, loc, to, zero),
            ArrayRef<AffineMap>{identity, reduced, reduced}, iterators,
            [&](OpBuilder &b, Location, ValueRange elements) {
              Value less = arith::SubFOp::create(b, loc, elements[0],
                                                 shift(b, elements[1]));
              Value power = math::ExpOp::create(b, loc, less);
              Value next = arith::AddFOp::create(b, loc, elements[2], power);
              linalg::YieldOp::create(b, loc, next);
            })
            .getResult(0);
    SmallVector<AffineMap> maps(3,
                                rewriter.getMultiDimIdentityMap(to.getRank()));
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(
        op, TypeRange(to), ValueRange{sum, maximum},
        createEmpty(rewriter, loc, to), maps,
        SmallVector<IteratorType>(to.getRank(), IteratorType::parallel),
        [&](OpBuilder &b, Location, ValueRange elements) {
          Value logarithm = math::LogOp::create(b, loc, elements[0]);
          Value result =
              arith::AddFOp::create(b, loc, logarithm, shift(b, elements[1]));
          linalg::YieldOp::create(b, loc, result);
        });
    return success();
  }
};

} // namespace

void penstock::populateExpandAlongAxis(RewritePatternSet &patterns) {
  patterns.add<ExpandCumulativeSum, ExpandTopK, ExpandLogSumExp>(
      patterns.getContext());
}
