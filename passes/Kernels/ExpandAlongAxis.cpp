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

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

//===--- Cumulative sum ---===//

/// A step adds one slice of the input to the sum so far and copies the sum, in
/// the other order when it is exclusive.
struct ExpandCumulativeSum : OpRewritePattern<nn::CumulativeSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CumulativeSumOp op,
                                PatternRewriter &rewriter) const override {
    Structured emit(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto slice = RankedTensorType::Builder(type).dropDim(op.getDim());
    Value zeros = emit.filled(RankedTensorType(slice), 0);
    if (!prefersParallelLoops(op))
      rewriter.replaceOp(op, expandSlices(emit, op, zeros));
    else
      rewriter.replaceOp(op, hasLongSums(op) ? expandInParts(rewriter, op)
                                             : expandLines(emit, op, zeros));
    return success();
  }

  /// The result of an element, and the sum that the next one starts with.
  static SmallVector<Value> add(Scalars &s, nn::CumulativeSumOp op,
                                Value element, Value before) {
    Value sum = s.add(before, element);
    return {op.getExclusive() ? before : sum, sum};
  }

  /// A loop along the axis, over all lines at once.
  static Value expandSlices(Structured &emit, nn::CumulativeSumOp op,
                            Value zeros) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto dim = static_cast<int64_t>(op.getDim());
    int64_t size = type.getDimSize(dim), rank = type.getRank() - 1;
    Value first = emit.make<arith::ConstantIndexOp>(0);
    Value end = emit.make<arith::ConstantIndexOp>(size);
    Value one = emit.make<arith::ConstantIndexOp>(1);
    return emit.make<scf::ForOp>(
        first, end, one, ValueRange{emit.empty(type), zeros},
        [&](OpBuilder &b, Location loc, Value step, ValueRange carried) {
          Structured s(b, loc);
          Value at = step;
          if (op.getReverse())
            at = s.sub(s.make<arith::ConstantIndexOp>(size - 1), step);
          SmallVector<OpFoldResult> offsets(rank + 1, b.getIndexAttr(0));
          SmallVector<OpFoldResult> strides(rank + 1, b.getIndexAttr(1));
          SmallVector<OpFoldResult> sizes =
              getAsIndexOpFoldResult(b.getContext(), type.getShape());
          offsets[dim] = at;
          sizes[dim] = b.getIndexAttr(1);
          auto read = [&](Value tensor) {
            return s.make<tensor::ExtractSliceOp>(
                cast<RankedTensorType>(zeros.getType()), tensor, offsets, sizes,
                strides);
          };
          Value slice = read(op.getInput());
          SmallVector<AffineMap> maps(3, s.identity(rank));
          SmallVector<Value> sums = s.generics(
              slice, {read(carried[0]), carried[1]}, maps,
              Structured::parallel(rank), [&](Scalars &s, ValueRange in) {
                return add(s, op, in[0], in[2]);
              });
          Value result = s.make<tensor::InsertSliceOp>(sums[0], carried[0],
                                                       offsets, sizes, strides);
          scf::YieldOp::create(b, loc, ValueRange{result, sums[1]});
        });
  }

  /// One op over all lines, of which each carries its sum.
  static Value expandLines(Structured &emit, nn::CumulativeSumOp op,
                           Value zeros) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto dim = static_cast<unsigned>(op.getDim());
    int64_t size = type.getDimSize(dim), rank = type.getRank();
    AffineMap all = emit.identity(rank);
    AffineExpr along = all.getResult(dim);
    AffineMap line = all.dropResult(dim);
    AffineMap axis = AffineMap::get(rank, 0, along);
    if (op.getReverse())
      all = all.replace(along, size - 1 - along, rank, 0);
    Structured::Iterators iterators = Structured::parallel(rank);
    iterators[dim] = IteratorType::reduction;
    // Says how long the loop is, which a reversed index does not.
    Value extent =
        emit.empty(RankedTensorType::get({size}, type.getElementType()));
    return emit
        .generics(
            {op.getInput(), extent}, {emit.empty(type), zeros},
            {all, axis, all, line}, iterators,
            [&](Scalars &s, ValueRange in) { return add(s, op, in[0], in[3]); })
        .front();
  }
};

//===--- Top k ---===//

/// For each place, the first element of those that come behind the one before:
/// no memory beyond the result.
struct ExpandTopK : OpRewritePattern<nn::TopKOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::TopKOp op,
                                PatternRewriter &rewriter) const override {
    Structured emit(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getInput().getType());
    RankedTensorType resultType = op.getResult().getType();
    auto dim = static_cast<int64_t>(op.getDim());
    Value start = emit.empty(resultType);
    if (resultType.getNumElements() == 0) {
      rewriter.replaceOp(op, start);
      return success();
    }
    if (prefersParallelLoops(op) && ranksFaster(op)) {
      rewriter.replaceOp(op, expandByRank(rewriter, op));
      return success();
    }
    SmallVector<Value> iteration(type.getRank());
    std::function<Value(Scalars &, int64_t, Value)> nest =
        [&](Scalars &s, int64_t d, Value carried) -> Value {
      if (d == dim)
        ++d;
      if (d >= type.getRank())
        return selectRow(s, op, iteration, carried);
      return loop(s, type.getDimSize(d), carried,
                  [&](Scalars &s, Value counter,
                      ValueRange values) -> SmallVector<Value> {
                    iteration[d] = counter;
                    return {nest(s, d + 1, values.front())};
                  });
    };
    rewriter.replaceOp(op, nest(emit, 0, start));
    return success();
  }

  /// Returns the first of the values that are carried through a loop.
  using LoopBody =
      function_ref<SmallVector<Value>(Scalars &, Value, ValueRange)>;
  static Value loop(Scalars &s, int64_t count, ValueRange carried,
                    LoopBody body) {
    Value zero = s.make<arith::ConstantIndexOp>(0);
    Value end = s.make<arith::ConstantIndexOp>(count);
    Value one = s.make<arith::ConstantIndexOp>(1);
    return s.make<scf::ForOp>(
        zero, end, one, carried,
        [&](OpBuilder &builder, Location loc, Value counter,
            ValueRange values) {
          Scalars inside(builder, loc);
          scf::YieldOp::create(builder, loc, body(inside, counter, values));
        });
  }

  static Value selectRow(Scalars &s, nn::TopKOp op, ArrayRef<Value> iteration,
                         Value result) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto dim = static_cast<int64_t>(op.getDim());
    bool smallest = op.getSmallest();
    auto at = [&](Value i) {
      SmallVector<Value> indices(iteration);
      indices[dim] = i;
      return indices;
    };
    auto load = [&](Scalars &s, Value i) {
      return s.make<tensor::ExtractOp>(op.getInput(), at(i));
    };
    Value zero = s.make<arith::ConstantIndexOp>(0);
    Value none = s.make<arith::ConstantIndexOp>(-1);
    // Carried: the result, and the position of the element before.
    return loop(
        s, op.getResult().getType().getDimSize(dim), {result, none},
        [&](Scalars &s, Value place, ValueRange state) -> SmallVector<Value> {
          Value last = s.max(state[1], zero);
          Value isFirst = s.equal(state[1], none);
          Value lastValue = load(s, last);
          auto search = [&](Scalars &s, Value i,
                            ValueRange best) -> SmallVector<Value> {
            Value value = load(s, i);
            Value held = s.max(best[0], zero);
            Value behind =
                s.any(isFirst, comesBefore(s.builder, s.loc, smallest,
                                           lastValue, last, value, i));
            Value isBest = s.any(s.equal(best[0], none),
                                 comesBefore(s.builder, s.loc, smallest, value,
                                             i, load(s, held), held));
            return {s.select(s.both(behind, isBest), i, best[0])};
          };
          Value found = loop(s, type.getDimSize(dim), none, search);
          Value number =
              s.make<arith::IndexCastOp>(s.builder.getI64Type(), found);
          return {s.make<tensor::InsertOp>(number, state[0], at(place)), found};
        });
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
