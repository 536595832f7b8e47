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
#include "penstock/Support/Structured.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

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
    Structured emit(rewriter, op.getLoc());
    RankedTensorType from = op.getInput().getType();
    RankedTensorType to = op.getResult().getType();
    AffineMap identity = emit.identity(from.getRank());
    AffineMap reduced = identity;
    Structured::Iterators iterators = Structured::parallel(from.getRank());
    for (int64_t dim : llvm::reverse(op.getDims())) {
      reduced = reduced.dropResult(dim);
      iterators[dim] = IteratorType::reduction;
    }
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Value maximum = emit.generic(
        op.getInput(), emit.filled(to, -infinity), {identity, reduced},
        iterators,
        [](Scalars &s, ValueRange in) { return s.max(in[1], in[0]); });
    // An infinite maximum is not subtracted.
    auto shift = [](Scalars &s, Value maximum) {
      Value size = s.make<math::AbsFOp>(maximum);
      Value isInfinite = s.equal(size, s.like(size, infinity));
      return s.select(isInfinite, s.like(size, 0), maximum);
    };
    Value sum = emit.generic({op.getInput(), maximum}, emit.filled(to, 0),
                             {identity, reduced, reduced}, iterators,
                             [&](Scalars &s, ValueRange in) {
                               Value less = s.sub(in[0], shift(s, in[1]));
                               return s.add(in[2], s.make<math::ExpOp>(less));
                             });
    rewriter.replaceOp(
        op,
        emit.elementwise(to, {sum, maximum}, [&](Scalars &s, ValueRange in) {
          Value logarithm = s.make<math::LogOp>(in[0]);
          return s.add(logarithm, shift(s, in[1]));
        }));
    return success();
  }
};

} // namespace

void penstock::populateExpandAlongAxis(RewritePatternSet &patterns) {
  patterns.add<ExpandCumulativeSum, ExpandTopK, ExpandLogSumExp>(
      patterns.getContext());
}
