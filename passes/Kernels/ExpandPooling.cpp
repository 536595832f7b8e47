//===- ExpandPooling.cpp - Pooling becomes loops --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and the gradient of sums gather; the gradient of maxima walks over
// the windows and adds each cotangent where its index says. Where the target
// prefers parallel loops it gathers, too.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Kernels/Composites.h"
#include "passes/Kernels/WindowLoops.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace penstock;

namespace {

/// The extent of the window, with its loops after the others.
std::pair<Value, SmallVector<int64_t>> windowExtent(OpBuilder &builder,
                                                    Location loc,
                                                    ArrayRef<int64_t> window,
                                                    Type element) {
  auto first = static_cast<int64_t>(window.size()) + 2;
  return {
      Structured(builder, loc).empty(RankedTensorType::get(window, element)),
      llvm::to_vector(llvm::seq<int64_t>(first, first + window.size()))};
}

/// Where the current element of the current window is; `condition` becomes
/// whether that is inside.
template <typename Op>
SmallVector<Value> locate(Op op, Position &at, ArrayRef<int64_t> shape,
                          Value &condition) {
  unsigned rank = op.getWindow().size();
  SmallVector<Value> indices{at.loop(0), at.loop(1)};
  for (unsigned i = 0; i < rank; ++i) {
    indices.push_back(at.element(at.loop(2 + i), at.loop(2 + rank + i),
                                 op.getStrides()[i], op.getDilations()[i],
                                 op.getPads()[i]));
    condition = at.both(condition, at.inside(indices.back(), shape[2 + i]));
  }
  return indices;
}

/// The window that has the current element as its `element(i)`-th along each
/// axis i; `condition` becomes whether there is one.
template <typename Op>
SmallVector<Value> locateWindow(Op op, Position &at,
                                function_ref<Value(unsigned)> element,
                                Value &condition) {
  ArrayRef<int64_t> windows = op.getCotangent().getType().getShape();
  SmallVector<Value> indices{at.loop(0), at.loop(1)};
  for (unsigned i = 0; i < op.getWindow().size(); ++i)
    indices.push_back(at.emitWindow(
        at.loop(2 + i), element(i), op.getStrides()[i], op.getDilations()[i],
        op.getPads()[i], windows[2 + i], condition));
  return indices;
}

/// Replaces an op by loops over its result and the elements of a window, whose
/// terms are added up.
template <typename Op>
void replaceBySums(Op op, PatternRewriter &rewriter,
                   function_ref<Value(Position &)> term) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getResult().getType();
  Value zeros = Structured(rewriter, loc).filled(type, 0.0);
  auto body = [&](Position &at, ValueRange scalars) -> SmallVector<Value> {
    Value value = term(at);
    return {at.add(scalars[1], value)};
  };
  rewriter.replaceOp(
      op, createWindowLoops(rewriter, loc, 2 + 2 * op.getWindow().size(),
                            windowExtent(rewriter, loc, op.getWindow(),
                                         type.getElementType()),
                            zeros, body));
}

struct ExpandMaxPool : OpRewritePattern<nn::MaxPoolOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::MaxPoolOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type element = op.getResult().getType().getElementType();
    ArrayRef<int64_t> shape = op.getInput().getType().getShape();
    Type i32 = rewriter.getI32Type();
    Structured s(rewriter, loc);
    Value lowest = s.filled(op.getResult().getType(),
                            -std::numeric_limits<double>::infinity());
    // No element yet: the first one inside counts, also if it is -inf.
    Value none = s.filled(op.getIndices().getType(), -1.0);
    auto body = [&](Position &at, ValueRange scalars) -> SmallVector<Value> {
      using arith::CmpFPredicate;
      Value best = scalars[1], where = scalars[2], condition;
      SmallVector<Value> indices = locate(op, at, shape, condition);
      Value value = at.read(op.getInput(), indices, condition);
      Value flat = indices[2];
      for (unsigned i = 3; i < indices.size(); ++i)
        flat = at.add(at.times(flat, shape[i]), indices[i]);
      flat = at.make<arith::IndexCastOp>(i32, flat);
      Value isFirst = at.less(where, at.integer(i32, 0));
      Value isLarger = at.compare(CmpFPredicate::OGT, value, best);
      Value isNaN = at.isNaN(value);
      // Of several NaNs the first counts, too.
      Value wasNumber = at.compare(CmpFPredicate::ORD, best, best);
      isNaN = at.both(isNaN, wasNumber);
      Value takes = at.any(at.any(isFirst, isLarger), isNaN);
      takes = at.both(takes, condition);
      return {at.select(takes, value, best), at.select(takes, flat, where)};
    };
    rewriter.replaceOp(
        op,
        createWindowLoops(rewriter, loc, 2 + 2 * op.getWindow().size(),
                          windowExtent(rewriter, loc, op.getWindow(), element),
                          {lowest, none}, body));
    return success();
  }
};

struct ExpandSumPool : OpRewritePattern<nn::SumPoolOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::SumPoolOp op,
                                PatternRewriter &rewriter) const override {
    replaceBySums(op, rewriter, [&](Position &at) {
      Value condition;
      SmallVector<Value> indices =
          locate(op, at, op.getInput().getType().getShape(), condition);
      return at.read(op.getInput(), indices, condition);
    });
    return success();
  }
};

struct ExpandSumPoolGrad : OpRewritePattern<nn::SumPoolGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::SumPoolGradOp op,
                                PatternRewriter &rewriter) const override {
    unsigned rank = op.getWindow().size();
    replaceBySums(op, rewriter, [&](Position &at) {
      Value condition;
      SmallVector<Value> indices = locateWindow(
          op, at, [&](unsigned i) { return at.loop(2 + rank + i); }, condition);
      return at.read(op.getCotangent(), indices, condition);
    });
    return success();
  }
};

/// Over planes and windows: gradient[plane, index] += cotangent.
struct ExpandMaxPoolGrad : OpRewritePattern<nn::MaxPoolGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::MaxPoolGradOp op,
                                PatternRewriter &rewriter) const override {
    if (prefersParallelLoops(op)) {
      gather(op, rewriter);
      return success();
    }
    Location loc = op.getLoc();
    RankedTensorType type = op.getResult().getType();
    auto planes = [&](RankedTensorType whole) {
      int64_t count = whole.getDimSize(0) * whole.getDimSize(1);
      int64_t size = 1;
      for (int64_t dim : whole.getShape().drop_front(2))
        size *= dim;
      return RankedTensorType::get({count, size}, whole.getElementType());
    };
    SmallVector<ReassociationIndices> groups(2);
    groups[0] = {0, 1};
    for (int64_t dim = 2; dim < type.getRank(); ++dim)
      groups[1].push_back(dim);
    RankedTensorType windows = planes(op.getCotangent().getType());
    Value dy = tensor::CollapseShapeOp::create(rewriter, loc, windows,
                                               op.getCotangent(), groups);
    Value indices = tensor::CollapseShapeOp::create(
        rewriter, loc, planes(op.getIndices().getType()), op.getIndices(),
        groups);
    Value zeros = Structured(rewriter, loc).filled(planes(type), 0.0);
    Position at(rewriter, loc);
    Value zero = at.index(0), one = at.index(1);
    Value planeCount = at.index(windows.getDimSize(0));
    Value windowCount = at.index(windows.getDimSize(1));
    auto outer = scf::ForOp::create(
        rewriter, loc, zero, planeCount, one, ValueRange(zeros),
        [&](OpBuilder &b, Location loc, Value plane, ValueRange outerSums) {
          auto inner = scf::ForOp::create(
              b, loc, zero, windowCount, one, outerSums,
              [&](OpBuilder &b, Location loc, Value window, ValueRange sums) {
                Scalars s(b, loc);
                SmallVector<Value> from{plane, window};
                Value index = s.make<tensor::ExtractOp>(indices, from);
                index = s.make<arith::IndexCastOp>(b.getIndexType(), index);
                SmallVector<Value> to{plane, index};
                Value old = s.make<tensor::ExtractOp>(sums[0], to);
                Value more = s.make<tensor::ExtractOp>(dy, from);
                Value next =
                    s.make<tensor::InsertOp>(s.add(old, more), sums[0], to);
                scf::YieldOp::create(b, loc, next);
              });
          scf::YieldOp::create(b, loc, inner.getResults());
        });
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, type, outer.getResult(0), groups);
    return success();
  }

  /// Over elements and the windows that they are in: the cotangents of those of
  /// which the element is the maximum. From the last element of a window to the
  /// first, so that windows count upwards, as above.
  static void gather(nn::MaxPoolGradOp op, PatternRewriter &rewriter) {
    ArrayRef<int64_t> shape = op.getResult().getType().getShape();
    unsigned rank = op.getWindow().size();
    replaceBySums(op, rewriter, [&](Position &at) {
      Value condition;
      SmallVector<Value> indices = locateWindow(
          op, at,
          [&](unsigned i) {
            return at.sub(at.index(op.getWindow()[i] - 1),
                          at.loop(2 + rank + i));
          },
          condition);
      Value flat = at.loop(2);
      for (unsigned i = 1; i < rank; ++i)
        flat = at.add(at.times(flat, shape[2 + i]), at.loop(2 + i));
      Value maximum = at.read(op.getIndices(), indices, condition);
      flat = at.make<arith::IndexCastOp>(maximum.getType(), flat);
      Value isMaximum = at.both(condition, at.equal(maximum, flat));
      return at.read(op.getCotangent(), indices, isMaximum);
    });
  }
};

} // namespace

void penstock::populateExpandPooling(RewritePatternSet &patterns) {
  patterns
      .add<ExpandMaxPool, ExpandMaxPoolGrad, ExpandSumPool, ExpandSumPoolGrad>(
          patterns.getContext());
}
