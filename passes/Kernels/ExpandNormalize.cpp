//===- ExpandNormalize.cpp - Normalizations become linalg ops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few passes over each row, which pipeline-fuse-rows runs row by row. The
// numbers of a row, mean and 1/sqrt, are computed once per row.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Kernels/Composites.h"
#include "passes/Kernels/Rows.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Sums over the rows divided by their size.
Value average(Rows &rows, Value sum) {
  Value size = rows.size();
  return rows.perRow(sum, [&](Scalars &s, ValueRange in, Value) {
    return s.div(in[0], size);
  });
}

/// 1 / sqrt(variance + epsilon)
Value inverseRoot(Rows &rows, Value variance, const APFloat &epsilon) {
  Value small = rows.constant(epsilon.convertToDouble()),
        one = rows.constant(1);
  return rows.perRow(variance, [&](Scalars &s, ValueRange in, Value) {
    return s.div(one, s.make<math::SqrtOp>(s.add(in[0], small)));
  });
}

/// (x - mean) * rstd, or x * rstd without a mean.
Value standardize(Rows &rows, Value x, Value mean, Value rstd) {
  SmallVector<Value> inputs{x, rstd};
  if (mean)
    inputs.push_back(mean);
  return rows.elements(inputs, [&](Scalars &s, ValueRange in, Value) {
    return s.mul(mean ? s.sub(in[0], in[2]) : in[0], in[1]);
  });
}

struct ExpandNormalize : OpRewritePattern<nn::NormalizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::NormalizeOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getInput();
    Rows rows(rewriter, op.getLoc(), op.getInput().getType(), op.getDims());
    Value mean = average(
        rows, rows.reduce(x, 0, [](Scalars &s, ValueRange in, Value old) {
          return s.add(in[0], old);
        }));
    Value variance = average(
        rows,
        rows.reduce({x, mean}, 0, [](Scalars &s, ValueRange in, Value old) {
          Value difference = s.sub(in[0], in[1]);
          return s.add(s.mul(difference, difference), old);
        }));
    Value rstd = inverseRoot(rows, variance, op.getEpsilon());
    rewriter.replaceOp(op, {standardize(rows, x, mean, rstd), mean, variance});
    return success();
  }
};

struct ExpandRmsNormalize : OpRewritePattern<nn::RmsNormalizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::RmsNormalizeOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getInput();
    Rows rows(rewriter, op.getLoc(), op.getInput().getType(), op.getDims());
    Value square = average(
        rows, rows.reduce(x, 0, [](Scalars &s, ValueRange in, Value old) {
          return s.add(s.mul(in[0], in[0]), old);
        }));
    Value rstd = inverseRoot(rows, square, op.getEpsilon());
    rewriter.replaceOp(op, {standardize(rows, x, Value(), rstd), square});
    return success();
  }
};

/// Standardizes for each user of `op` by itself, in whose loop it ends up: that
/// costs less than to write the values once and to read them everywhere.
/// Gradients do so themselves. The builder of `rows` stands at `op`.
void standardizeForUsers(PatternRewriter &rewriter, nn::StandardizeOp op,
                         Rows &rows, Value rstd) {
  for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
    if (isa<nn::NormalizeGradOp>(use.getOwner()))
      continue;
    Value own = standardize(rows, op.getInput(), op.getMean(), rstd);
    rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(own); });
  }
}

/// The ops of this block that compute the same as `op`, itself among them: the
/// halves of a backward have one each, so that they can be two functions.
SmallVector<nn::StandardizeOp> findEqual(nn::StandardizeOp op) {
  SmallVector<nn::StandardizeOp> result;
  for (Operation *user : op.getInput().getUsers())
    if (user->getBlock() == op->getBlock() &&
        OperationEquivalence::isEquivalentTo(
            op, user, OperationEquivalence::IgnoreLocations))
      result.push_back(cast<nn::StandardizeOp>(user));
  return result;
}

struct ExpandStandardize : OpRewritePattern<nn::StandardizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::StandardizeOp op,
                                PatternRewriter &rewriter) const override {
    // Gradients share their root with the others.
    for (nn::StandardizeOp equal : findEqual(op))
      if (llvm::any_of(equal->getUsers(), llvm::IsaPred<nn::NormalizeGradOp>))
        return failure();
    Rows rows(rewriter, op.getLoc(), op.getInput().getType(), op.getDims());
    Value rstd = inverseRoot(rows, op.getVariance(), op.getEpsilon());
    standardizeForUsers(rewriter, op, rows, rstd);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ExpandNormalizeGrad : OpRewritePattern<nn::NormalizeGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::NormalizeGradOp op,
                                PatternRewriter &rewriter) const override {
    Value dy = op.getCotangent();
    bool centered = !op.getUncentered();
    Rows rows(rewriter, op.getLoc(), op.getCotangent().getType(), op.getDims());
    // Before the sums, also those of the scale's gradient: what lives as long
    // as the row takes the memory of nothing that the row still reads, and all
    // of this can run row by row.
    auto again = op.getNormalized().getDefiningOp<nn::StandardizeOp>();
    if (again && (again.getVariance() != op.getVariance() ||
                  again.getDims() != op.getDims() ||
                  again.getEpsilon() != op.getEpsilon()))
      again = {};
    Operation *first = op;
    SmallVector<nn::StandardizeOp> equal;
    if (again)
      equal = findEqual(again);
    for (nn::StandardizeOp other : equal)
      if (other->isBeforeInBlock(first))
        first = other;
    rewriter.setInsertionPoint(first);
    Value rstd = inverseRoot(rows, op.getVariance(), op.getEpsilon());
    for (nn::StandardizeOp other : equal) {
      rewriter.setInsertionPoint(other);
      standardizeForUsers(rewriter, other, rows, rstd);
    }
    rewriter.setInsertionPoint(op);
    // Both loops standardize by themselves.
    auto normalized = [&]() -> Value {
      if (!again)
        return op.getNormalized();
      return standardize(rows, again.getInput(), again.getMean(), rstd);
    };
    // Both sums in one pass over the row.
    SmallVector<Value> sums = rows.sums(
        {dy, normalized()}, centered ? 2 : 1,
        [&](Scalars &s, ValueRange in, ValueRange old) {
          SmallVector<Value> result{s.add(s.mul(in[0], in[1]), old[0])};
          if (centered)
            result.push_back(s.add(in[0], old[1]));
          return result;
        });
    SmallVector<Value> inputs{dy, normalized(), rstd};
    for (Value sum : sums)
      inputs.push_back(average(rows, sum));
    rewriter.replaceOp(
        op, rows.elements(inputs, [&](Scalars &s, ValueRange in, Value) {
          Value left = centered ? s.sub(in[0], in[4]) : in[0];
          left = s.sub(left, s.mul(in[1], in[3]));
          return s.mul(left, in[2]);
        }));
    return success();
  }
};

} // namespace

void penstock::populateExpandNormalize(RewritePatternSet &patterns) {
  patterns.add<ExpandNormalize, ExpandRmsNormalize, ExpandStandardize,
               ExpandNormalizeGrad>(patterns.getContext());
}
