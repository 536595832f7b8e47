//===- ExpandNormalize.cpp - Normalisations become linalg ops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variance is the mean of squared differences, in a pass of its own: the
// mean of squares less the square of the mean cancels.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Lowering/Composites.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Scalars in, scalars out; the old values of outputs come last.
using Body =
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

/// Builds generics over a tensor and over its groups, the tensor without
/// `dims`.
class Groups {
public:
  Groups(OpBuilder &builder, Location loc, RankedTensorType full,
         ArrayRef<int64_t> dims)
      : builder(builder), loc(loc), full(full),
        group(nn::NormalizeOp::getStatisticType(full, dims)) {
    identity = builder.getMultiDimIdentityMap(full.getRank());
    kept = identity;
    iterators.assign(full.getRank(), utils::IteratorType::parallel);
    for (int64_t dim : llvm::reverse(dims)) {
      kept = kept.dropResult(dim);
      iterators[dim] = utils::IteratorType::reduction;
      size *= full.getDimSize(dim);
    }
  }

  Value constant(double value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(full.getElementType(), value));
  }
  /// The number of elements that a statistic is about.
  Value count() { return constant(static_cast<double>(size)); }

  /// Sums over each group.
  SmallVector<Value> sums(ValueRange inputs, unsigned number, Body body) {
    SmallVector<Value> outputs;
    for (unsigned i = 0; i < number; ++i)
      outputs.push_back(
          linalg::FillOp::create(builder, loc, constant(0.0), empty(group))
              .getResult(0));
    return generic(inputs, outputs, kept, iterators, body);
  }
  /// A value per element of the tensor.
  Value elements(ValueRange inputs, Body body) {
    return generic(inputs, empty(full), identity,
                   SmallVector<utils::IteratorType>(
                       full.getRank(), utils::IteratorType::parallel),
                   body)
        .front();
  }
  /// A value per group.
  Value perGroup(ValueRange inputs, Body body) {
    AffineMap map = builder.getMultiDimIdentityMap(group.getRank());
    SmallVector<AffineMap> maps(inputs.size() + 1, map);
    return create(inputs, empty(group), maps,
                  SmallVector<utils::IteratorType>(
                      group.getRank(), utils::IteratorType::parallel),
                  body)
        .front();
  }

private:
  Value empty(RankedTensorType type) {
    return tensor::EmptyOp::create(builder, loc, type, ValueRange());
  }
  SmallVector<Value> generic(ValueRange inputs, ValueRange outputs,
                             AffineMap outputMap,
                             ArrayRef<utils::IteratorType> kinds, Body body) {
    SmallVector<AffineMap> maps;
    for (Value input : inputs)
      maps.push_back(input.getType() == full ? identity : kept);
    maps.append(outputs.size(), outputMap);
    return create(inputs, outputs, maps, kinds, body);
  }
  SmallVector<Value> create(ValueRange inputs, ValueRange outputs,
                            ArrayRef<AffineMap> maps,
                            ArrayRef<utils::IteratorType> kinds, Body body) {
    auto op = linalg::GenericOp::create(
        builder, loc, outputs.getTypes(), inputs, outputs, maps, kinds,
        [&](OpBuilder &inside, Location loc, ValueRange scalars) {
          linalg::YieldOp::create(inside, loc, body(inside, loc, scalars));
        });
    return SmallVector<Value>(op.getResults());
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType full, group;
  AffineMap identity, kept;
  SmallVector<utils::IteratorType> iterators;
  int64_t size = 1;
};

/// 1 / sqrt(variance + epsilon).
Value inverseDeviation(Groups &groups, Value variance, double epsilon) {
  Value eps = groups.constant(epsilon), one = groups.constant(1.0);
  return groups.perGroup(
      variance,
      [&](OpBuilder &b, Location loc, ValueRange in) -> SmallVector<Value> {
        Value sum = arith::AddFOp::create(b, loc, in[0], eps);
        Value root = math::SqrtOp::create(b, loc, sum);
        return {arith::DivFOp::create(b, loc, one, root)};
      });
}

Value divideByCount(Groups &groups, Value sum) {
  Value count = groups.count();
  return groups.perGroup(
      sum,
      [&](OpBuilder &b, Location loc, ValueRange in) -> SmallVector<Value> {
        return {arith::DivFOp::create(b, loc, in[0], count)};
      });
}

struct ExpandNormalize : OpRewritePattern<nn::NormalizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::NormalizeOp op,
                                PatternRewriter &rewriter) const override {
    Groups groups(rewriter, op.getLoc(), op.getInput().getType(), op.getDims());
    Value sum =
        groups
            .sums(op.getInput(), 1,
                  [](OpBuilder &b, Location loc,
                     ValueRange in) -> SmallVector<Value> {
                    return {arith::AddFOp::create(b, loc, in[1], in[0])};
                  })
            .front();
    Value mean = divideByCount(groups, sum);
    Value squares =
        groups
            .sums({op.getInput(), mean}, 1,
                  [](OpBuilder &b, Location loc,
                     ValueRange in) -> SmallVector<Value> {
                    Value centred = arith::SubFOp::create(b, loc, in[0], in[1]);
                    Value square =
                        arith::MulFOp::create(b, loc, centred, centred);
                    return {arith::AddFOp::create(b, loc, in[2], square)};
                  })
            .front();
    Value variance = divideByCount(groups, squares);
    Value inverse =
        inverseDeviation(groups, variance, op.getEpsilon().convertToDouble());
    Value result = groups.elements(
        {op.getInput(), mean, inverse},
        [](OpBuilder &b, Location loc, ValueRange in) -> SmallVector<Value> {
          Value centred = arith::SubFOp::create(b, loc, in[0], in[1]);
          return {arith::MulFOp::create(b, loc, centred, in[2])};
        });
    rewriter.replaceOp(op, {result, mean, variance});
    return success();
  }
};

struct ExpandNormalizeGrad : OpRewritePattern<nn::NormalizeGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::NormalizeGradOp op,
                                PatternRewriter &rewriter) const override {
    Groups groups(rewriter, op.getLoc(), op.getCotangent().getType(),
                  op.getDims());
    SmallVector<Value> sums = groups.sums(
        {op.getCotangent(), op.getNormalized()}, 2,
        [](OpBuilder &b, Location loc, ValueRange in) -> SmallVector<Value> {
          Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
          return {arith::AddFOp::create(b, loc, in[2], in[0]),
                  arith::AddFOp::create(b, loc, in[3], product)};
        });
    Value mean = divideByCount(groups, sums[0]);
    Value slope = divideByCount(groups, sums[1]);
    Value inverse = inverseDeviation(groups, op.getVariance(),
                                     op.getEpsilon().convertToDouble());
    Value result = groups.elements(
        {op.getCotangent(), op.getNormalized(), mean, slope, inverse},
        [](OpBuilder &b, Location loc, ValueRange in) -> SmallVector<Value> {
          Value along = arith::MulFOp::create(b, loc, in[1], in[3]);
          Value centred = arith::SubFOp::create(b, loc, in[0], in[2]);
          Value rest = arith::SubFOp::create(b, loc, centred, along);
          return {arith::MulFOp::create(b, loc, rest, in[4])};
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void penstock::populateExpandNormalize(RewritePatternSet &patterns) {
  patterns.add<ExpandNormalize, ExpandNormalizeGrad>(patterns.getContext());
}
