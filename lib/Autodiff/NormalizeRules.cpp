//===- NormalizeRules.cpp - Derivatives of normalisations -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backward keeps the normalised x and one number per row. All of it depends
// on x alone, so it is right whatever weights the backward reads.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "lib/Autodiff/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// The cotangents that enter, and what is needed of the forward.
struct Normalization {
  Operation *op;
  Value input, normalized, variance;
  ArrayRef<int64_t> dims;
  double epsilon;
  bool uncentered;
};

/// What flows through the statistics themselves: d mean / dx = 1/N and
/// d variance / dx = 2 (x - mean) / N = 2 normalized sqrt(variance + epsilon) /
/// N, which is that of the mean square as well.
void addThroughStatistics(const Normalization &norm, Value dMean,
                          Value dVariance, Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  Location loc = norm.op->getLoc();
  auto type = cast<RankedTensorType>(norm.input.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap reduced = identity;
  double count = 1;
  for (int64_t dim : llvm::reverse(norm.dims)) {
    reduced = reduced.dropResult(dim);
    count *= static_cast<double>(type.getDimSize(dim));
  }
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(type.getElementType(), value));
  };
  auto emit = [&](ArrayRef<Value> inputs, ArrayRef<AffineMap> maps,
                  Value factor,
                  function_ref<Value(OpBuilder &, ValueRange)> body) {
    Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
    Value gradient = linalg::GenericOp::create(
                         builder, loc, TypeRange(type), inputs,
                         ValueRange(empty), maps, iterators,
                         [&](OpBuilder &b, Location loc, ValueRange elements) {
                           Value term = arith::MulFOp::create(
                               b, loc, body(b, elements), factor);
                           linalg::YieldOp::create(b, loc, term);
                         })
                         .getResult(0);
    pullback.add(norm.input, gradient, loc);
  };
  if (dMean)
    emit(dMean, {reduced, identity}, constant(1 / count),
         [](OpBuilder &, ValueRange in) { return in[0]; });
  if (!dVariance)
    return;
  Value epsilon = constant(norm.epsilon);
  emit({dVariance, pullback.getPrimal(norm.variance),
        pullback.getPrimal(norm.normalized)},
       {reduced, reduced, identity, identity}, constant(2 / count),
       [&](OpBuilder &b, ValueRange in) -> Value {
         Value deviation = math::SqrtOp::create(
             b, loc, arith::AddFOp::create(b, loc, in[1], epsilon));
         Value difference = arith::MulFOp::create(b, loc, in[2], deviation);
         return arith::MulFOp::create(b, loc, in[0], difference);
       });
}

void pullBack(const Normalization &norm, Value dMean, Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  Location loc = norm.op->getLoc();
  addThroughStatistics(norm, dMean, pullback.getCotangent(norm.variance),
                       pullback);
  Value dy = pullback.getCotangent(norm.normalized);
  if (!dy)
    return;
  Value dx = nn::NormalizeGradOp::create(
      builder, loc, norm.input.getType(), dy,
      pullback.getPrimal(norm.normalized), pullback.getPrimal(norm.variance),
      norm.dims, APFloat(norm.epsilon), norm.uncentered);
  pullback.add(norm.input, dx, loc);
}

LogicalResult pullBackNormalize(nn::NormalizeOp op, Pullback &pullback) {
  pullBack({op, op.getInput(), op.getResult(), op.getVariance(), op.getDims(),
            op.getEpsilon().convertToDouble(), /*uncentered=*/false},
           pullback.getCotangent(op.getMean()), pullback);
  return success();
}

LogicalResult pullBackRmsNormalize(nn::RmsNormalizeOp op, Pullback &pullback) {
  pullBack({op, op.getInput(), op.getResult(), op.getMeanSquare(), op.getDims(),
            op.getEpsilon().convertToDouble(),
            /*uncentered=*/true},
           Value(), pullback);
  return success();
}

} // namespace

void penstock::registerNormalizeRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                         math::MathDialect, tensor::TensorDialect>();
    nn::NormalizeOp::attachInterface<
        RuleModel<nn::NormalizeOp, pullBackNormalize>>(*context);
    nn::RmsNormalizeOp::attachInterface<
        RuleModel<nn::RmsNormalizeOp, pullBackRmsNormalize>>(*context);
  });
}
