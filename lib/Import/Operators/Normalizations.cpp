//===- Normalizations.cpp - What normalizations share ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Normalizations.h. Rows are the last axis of a matrix, which moves no
// data, and an `nn` op normalizes them. Scale and bias follow as an op of their
// own: the derivative then keeps the normalized x, which holds no weight.
//===----------------------------------------------------------------------===//

#include "Normalizations.h"

#include "dialects/Nn/Nn.h"

#include "penstock/Import/OperatorRegistry.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

LogicalResult penstock::onnx::bindEpsilon(NodeBinder &node, double &epsilon) {
  if (failed(node.attribute("epsilon", epsilon)))
    return failure();
  if (!(epsilon >= 0))
    return node.badAttribute("epsilon", "a number that is not negative");
  return success();
}

LogicalResult penstock::onnx::bindStashType(NodeBinder &node, Type &stash) {
  int64_t number = 1;
  if (failed(node.attribute("stash_type", number)))
    return failure();
  stash = getElementType(node.getContext(), number);
  if (!stash || !isa<FloatType>(stash))
    return node.badAttribute("stash_type", "the number of a float type");
  return success();
}

Type penstock::onnx::widest(Type a, Type b) {
  return a.getIntOrFloatBitWidth() >= b.getIntOrFloatBitWidth() ? a : b;
}

Value penstock::onnx::castTo(Emitter &emitter, Value value, Type element) {
  RankedTensorType type = Emitter::getType(value);
  if (type.getElementType() == element)
    return value;
  return emitter.elementwise(RankedTensorType::get(type.getShape(), element),
                             value,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return inside.cast(scalars[0], element);
                             });
}

LogicalResult TrailingNorm::bind(NodeBinder &node) {
  return failed(node.requireFloat(0)) ? failure() : bind(node, node.type(0));
}

LogicalResult TrailingNorm::bind(NodeBinder &node, RankedTensorType x) {
  full = x;
  if (failed(bindEpsilon(node, epsilon)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, x.getRank())) ||
      failed(bindStashType(node, stash)))
    return failure();
  rows = ShapedType::getNumElements(x.getShape().take_front(axis));
  size = ShapedType::getNumElements(x.getShape().drop_front(axis));
  if (size == 0)
    return node.error() << "is given " << x << ", and has nothing to normalize";
  SmallVector<int64_t> shape(x.getShape());
  std::fill(shape.begin() + axis, shape.end(), 1);
  statistics = RankedTensorType::get(shape, stash);
  return success();
}

LogicalResult TrailingNorm::bindAffine(NodeBinder &node, unsigned operand) {
  if (!node.has(operand))
    return success();
  SmallVector<int64_t> shape(full.getShape());
  if (failed(node.requireFloat(operand)) ||
      failed(node.broadcast(operand, shape)))
    return failure();
  if (ArrayRef<int64_t>(shape) != full.getShape())
    return node.error() << "operand '" << node.operandName(operand) << "' is "
                        << node.type(operand)
                        << ", which does not broadcast to the operand's "
                        << full;
  return success();
}

Normalized penstock::onnx::emitTrailing(Emitter &emitter,
                                        const TrailingNorm &norm, Value x,
                                        Value scale, Value bias,
                                        bool centered) {
  ArrayRef<int64_t> full = norm.full.getShape();
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Type element = Emitter::getType(x).getElementType();
  Type compute = widest(element, norm.stash);
  Value rows =
      castTo(emitter, emitter.reshape(x, {norm.rows, norm.size}), compute);
  auto type = Emitter::getType(rows);
  Normalized out;
  Value value, variance;
  if (centered) {
    auto op = nn::NormalizeOp::create(builder, loc, rows, {1}, norm.epsilon);
    value = op.getResult();
    out.mean = op.getMean();
    variance = op.getVariance();
  } else {
    auto op = nn::RmsNormalizeOp::create(builder, loc, rows, {1}, norm.epsilon);
    value = op.getResult();
    variance = op.getMeanSquare();
  }
  // Scale and bias that are one row each leave the matrix a matrix.
  auto asRow = [&](Value operand) -> Value {
    ArrayRef<int64_t> shape = Emitter::getShape(operand);
    while (!shape.empty() && shape.size() > full.size() - norm.axis &&
           shape.front() == 1)
      shape = shape.drop_front();
    if (shape != full.drop_front(norm.axis))
      return {};
    return emitter.reshape(operand, {norm.size});
  };
  SmallVector<Value> operands = {value};
  bool isMatrix = true;
  for (Value operand : {scale, bias})
    if (operand) {
      Value vector = asRow(operand);
      isMatrix &= !!vector;
      operands.push_back(vector);
    }
  ArrayRef<int64_t> shape = type.getShape();
  if (!isMatrix) {
    shape = full;
    operands = {emitter.reshape(value, full)};
    for (Value operand : {scale, bias})
      if (operand)
        operands.push_back(operand);
  }
  if (operands.size() > 1 || compute != element)
    value = emitter.elementwise(
        RankedTensorType::get(shape, element), operands,
        [&](Emitter &inside, ArrayRef<Value> scalars) {
          unsigned next = 1;
          Value result = scalars[0];
          if (scale)
            result = inside.mul(result, inside.cast(scalars[next++], compute));
          if (bias)
            result = inside.add(result, inside.cast(scalars[next++], compute));
          return inside.cast(result, element);
        });
  out.result = emitter.reshape(value, full);
  auto statistic = [&](Value vector) {
    return emitter.reshape(castTo(emitter, vector, norm.stash),
                           norm.statistics.getShape());
  };
  if (out.mean)
    out.mean = statistic(out.mean);
  out.rstd = statistic(emitter.elementwise(
      Emitter::getType(variance), variance,
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value shifted =
            inside.add(scalars[0], inside.scalar(compute, norm.epsilon));
        Value root = inside.make<math::SqrtOp>(shifted);
        return inside.div(inside.scalar(compute, 1), root);
      }));
  return out;
}
