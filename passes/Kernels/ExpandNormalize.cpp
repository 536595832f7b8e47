//===- ExpandNormalize.cpp - Normalisations become linalg ops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few passes over each row, which pipeline-fuse-rows runs row by row. The
// numbers of a row, mean and 1/sqrt, are computed once per row.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Kernels/Composites.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// A scalar body: gets one value per input and the old values of the outputs,
/// and gives the new ones.
using Body =
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

/// Builds generics over a tensor and over what is left of it without `dims`.
class Statistics {
public:
  Statistics(OpBuilder &builder, Location loc, RankedTensorType full,
             ArrayRef<int64_t> dims)
      : builder(builder), loc(loc), full(full),
        reducing(full.getRank(), utils::IteratorType::parallel) {
    fullMap = builder.getMultiDimIdentityMap(full.getRank());
    rowMap = fullMap;
    SmallVector<int64_t> shape(full.getShape());
    for (int64_t dim : llvm::reverse(dims)) {
      rowMap = rowMap.dropResult(dim);
      count *= static_cast<double>(shape[dim]);
      shape.erase(shape.begin() + dim);
      reducing[dim] = utils::IteratorType::reduction;
    }
    row = RankedTensorType::get(shape, full.getElementType());
  }

  Value constant(double value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(full.getElementType(), value));
  }
  /// The number of elements of a row.
  Value size() { return constant(count); }

  /// Sums of body(inputs, old sums) over each row.
  SmallVector<Value> sums(ValueRange inputs, unsigned outputs, Body body) {
    SmallVector<Value> zeros;
    Value zero = constant(0);
    for (unsigned i = 0; i < outputs; ++i)
      zeros.push_back(
          linalg::FillOp::create(builder, loc, zero, empty(row)).getResult(0));
    return generic(inputs, zeros, rowMap, reducing, body);
  }
  Value elements(ValueRange inputs, Body body) {
    SmallVector<utils::IteratorType> parallel(full.getRank(),
                                              utils::IteratorType::parallel);
    return generic(inputs, empty(full), fullMap, parallel, body).front();
  }
  Value perRow(ValueRange inputs, Body body) {
    SmallVector<utils::IteratorType> parallel(row.getRank(),
                                              utils::IteratorType::parallel);
    SmallVector<AffineMap> maps(inputs.size() + 1,
                                builder.getMultiDimIdentityMap(row.getRank()));
    return emit(inputs, empty(row), maps, parallel, body).front();
  }

private:
  Value empty(RankedTensorType type) {
    return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                   type.getElementType());
  }
  SmallVector<Value> generic(ValueRange inputs, ValueRange outputs,
                             AffineMap outputMap,
                             ArrayRef<utils::IteratorType> iterators,
                             Body body) {
    SmallVector<AffineMap> maps;
    for (Value input : inputs)
      maps.push_back(input.getType() == full ? fullMap : rowMap);
    maps.append(outputs.size(), outputMap);
    return emit(inputs, outputs, maps, iterators, body);
  }
  SmallVector<Value> emit(ValueRange inputs, ValueRange outputs,
                          ArrayRef<AffineMap> maps,
                          ArrayRef<utils::IteratorType> iterators, Body body) {
    auto op = linalg::GenericOp::create(
        builder, loc, outputs.getTypes(), inputs, outputs, maps, iterators,
        [&](OpBuilder &b, Location loc, ValueRange arguments) {
          linalg::YieldOp::create(b, loc, body(b, loc, arguments));
        });
    return op.getResults();
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType full, row;
  AffineMap fullMap, rowMap;
  SmallVector<utils::IteratorType> reducing;
  double count = 1;
};

/// Sums over the rows divided by their size.
Value average(Statistics &rows, Value sum) {
  Value size = rows.size();
  return rows.perRow(sum, [&](OpBuilder &b, Location loc, ValueRange in) {
    return SmallVector<Value>{arith::DivFOp::create(b, loc, in[0], size)};
  });
}

/// 1 / sqrt(variance + epsilon)
Value inverseRoot(Statistics &rows, Value variance, const APFloat &epsilon) {
  Value small = rows.constant(epsilon.convertToDouble()),
        one = rows.constant(1);
  return rows.perRow(variance, [&](OpBuilder &b, Location loc, ValueRange in) {
    Value root = math::SqrtOp::create(
        b, loc, arith::AddFOp::create(b, loc, in[0], small));
    return SmallVector<Value>{arith::DivFOp::create(b, loc, one, root)};
  });
}

/// (x - mean) * rstd, or x * rstd without a mean.
Value standardize(Statistics &rows, Value x, Value mean, Value rstd) {
  SmallVector<Value> inputs{x, rstd};
  if (mean)
    inputs.push_back(mean);
  return rows.elements(inputs, [&](OpBuilder &b, Location loc, ValueRange in) {
    Value value = in[0];
    if (mean)
      value = arith::SubFOp::create(b, loc, value, in[2]);
    return SmallVector<Value>{arith::MulFOp::create(b, loc, value, in[1])};
  });
}

struct ExpandNormalize : OpRewritePattern<nn::NormalizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::NormalizeOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getInput();
    Statistics rows(rewriter, op.getLoc(), op.getInput().getType(),
                    op.getDims());
    Value mean = average(
        rows, rows.sums(x, 1, [](OpBuilder &b, Location loc, ValueRange in) {
          return SmallVector<Value>{
              arith::AddFOp::create(b, loc, in[0], in[1])};
        })[0]);
    Value variance = average(
        rows,
        rows.sums({x, mean}, 1, [](OpBuilder &b, Location loc, ValueRange in) {
          Value difference = arith::SubFOp::create(b, loc, in[0], in[1]);
          Value square = arith::MulFOp::create(b, loc, difference, difference);
          return SmallVector<Value>{
              arith::AddFOp::create(b, loc, square, in[2])};
        })[0]);
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
    Statistics rows(rewriter, op.getLoc(), op.getInput().getType(),
                    op.getDims());
    Value square = average(
        rows, rows.sums(x, 1, [](OpBuilder &b, Location loc, ValueRange in) {
          Value square = arith::MulFOp::create(b, loc, in[0], in[0]);
          return SmallVector<Value>{
              arith::AddFOp::create(b, loc, square, in[1])};
        })[0]);
    Value rstd = inverseRoot(rows, square, op.getEpsilon());
    rewriter.replaceOp(op, {standardize(rows, x, Value(), rstd), square});
    return success();
  }
};

/// Standardizes for each user of `op` by itself, in whose loop it ends up: that
/// costs less than to write the values once and to read them everywhere.
/// Gradients do so themselves. The builder of `rows` stands at `op`.
void standardizeForUsers(PatternRewriter &rewriter, nn::StandardizeOp op,
                         Statistics &rows, Value rstd) {
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
    Statistics rows(rewriter, op.getLoc(), op.getInput().getType(),
                    op.getDims());
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
    Statistics rows(rewriter, op.getLoc(), op.getCotangent().getType(),
                    op.getDims());
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
        [&](OpBuilder &b, Location loc, ValueRange in) {
          Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
          SmallVector<Value> result{
              arith::AddFOp::create(b, loc, product, in[2])};
          if (centered)
            result.push_back(arith::AddFOp::create(b, loc, in[0], in[3]));
          return result;
        });
    SmallVector<Value> inputs{dy, normalized(), rstd};
    for (Value sum : sums)
      inputs.push_back(average(rows, sum));
    rewriter.replaceOp(op, rows.elements(inputs, [&](OpBuilder &b, Location loc,
                                                     ValueRange in) {
      Value left = in[0];
      if (centered)
        left = arith::SubFOp::create(b, loc, left, in[4]);
      Value along = arith::MulFOp::create(b, loc, in[1], in[3]);
      left = arith::SubFOp::create(b, loc, left, along);
      return SmallVector<Value>{arith::MulFOp::create(b, loc, left, in[2])};
    }));
    return success();
  }
};

} // namespace

void penstock::populateExpandNormalize(RewritePatternSet &patterns) {
  patterns.add<ExpandNormalize, ExpandRmsNormalize, ExpandStandardize,
               ExpandNormalizeGrad>(patterns.getContext());
}
