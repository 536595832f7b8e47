//===- BatchNorm.cpp - The two forms of batch normalisation ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With the microbatch's statistics, which also move the running ones; or with
// those stored.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock::nn;

using Body = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// body(elements) for every element of `type`; operands are of that type, or
/// have an element per channel (axis 1).
static Value elementwise(OpBuilder &builder, Location loc,
                         RankedTensorType type, ValueRange operands,
                         Body body) {
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(
        operand.getType() == type
            ? identity
            : AffineMap::get(type.getRank(), 0, builder.getAffineDimExpr(1)));
  maps.push_back(identity);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(type), operands, ValueRange(empty), maps,
             iterators,
             [&](OpBuilder &inside, Location loc, ValueRange elements) {
               linalg::YieldOp::create(inside, loc,
                                       body(inside, loc, elements.drop_back()));
             })
      .getResult(0);
}

static Value constant(OpBuilder &builder, Location loc, Type type,
                      double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}

/// momentum * old + (1 - momentum) * current.
static Value move(OpBuilder &builder, BatchNormOp op, Value old,
                  Value current) {
  Type element = op.getInput().getType().getElementType();
  double momentum = op.getMomentum().convertToDouble();
  return elementwise(
      builder, op.getLoc(), op.getScale().getType(), {old, current},
      [&](OpBuilder &inside, Location loc, ValueRange elements) -> Value {
        Value keep = arith::MulFOp::create(
            inside, loc, elements[0], constant(inside, loc, element, momentum));
        Value take = arith::MulFOp::create(
            inside, loc, elements[1],
            constant(inside, loc, element, 1.0 - momentum));
        return arith::AddFOp::create(inside, loc, keep, take);
      });
}

LogicalResult BatchNormOp::expandForInference(OpBuilder &builder,
                                              SmallVectorImpl<Value> &results) {
  Type element = getInput().getType().getElementType();
  Value eps =
      constant(builder, getLoc(), element, getEpsilon().convertToDouble());
  Value one = constant(builder, getLoc(), element, 1.0);
  // The reciprocal per channel, not per element.
  Value inverse = elementwise(
      builder, getLoc(), getScale().getType(), getVariance(),
      [&](OpBuilder &inside, Location loc, ValueRange elements) -> Value {
        Value sum = arith::AddFOp::create(inside, loc, elements[0], eps);
        Value root = math::SqrtOp::create(inside, loc, sum);
        return arith::DivFOp::create(inside, loc, one, root);
      });
  results.push_back(elementwise(
      builder, getLoc(), getInput().getType(),
      {getInput(), getMean(), inverse, getScale(), getBias()},
      [&](OpBuilder &inside, Location loc, ValueRange elements) -> Value {
        Value centred =
            arith::SubFOp::create(inside, loc, elements[0], elements[1]);
        Value normal = arith::MulFOp::create(inside, loc, centred, elements[2]);
        Value scaled = arith::MulFOp::create(inside, loc, normal, elements[3]);
        return arith::AddFOp::create(inside, loc, scaled, elements[4]);
      }));
  results.append({getMean(), getVariance()});
  return success();
}

LogicalResult BatchNormOp::expandForTraining(OpBuilder &builder,
                                             TrainingContext &context,
                                             SmallVectorImpl<Value> &results) {
  if (context.freezesStatistics())
    return expandForInference(builder, results);
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < getInput().getType().getRank(); ++dim)
    if (dim != 1)
      dims.push_back(dim);
  auto normal = NormalizeOp::create(builder, getLoc(), getInput(), dims,
                                    getEpsilon().convertToDouble());
  results.push_back(elementwise(
      builder, getLoc(), getInput().getType(),
      {normal.getResult(), getScale(), getBias()},
      [&](OpBuilder &inside, Location loc, ValueRange elements) -> Value {
        Value scaled =
            arith::MulFOp::create(inside, loc, elements[0], elements[1]);
        return arith::AddFOp::create(inside, loc, scaled, elements[2]);
      }));
  for (auto [state, current] : {std::pair(getMean(), normal.getMean()),
                                {getVariance(), normal.getVariance()}}) {
    Value next = move(builder, *this, context.getState(state), current);
    context.setState(state, next);
    results.push_back(next);
  }
  return success();
}
