//===- Pullback.cpp - What a derivative rule works with -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cotangents, and the ways in which a forward value reaches the backward.
//===----------------------------------------------------------------------===//

#include "penstock/Autodiff/Pullback.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;

#include "lib/Autodiff/DifferentiableOpInterface.cpp.inc"

void penstock::forEachUsedValue(Operation *op,
                                function_ref<void(Value)> visit) {
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (nested == op ||
          !op->isAncestor(operand.getParentBlock()->getParentOp()))
        visit(operand);
  });
}

Value penstock::createZeros(OpBuilder &builder, Location loc,
                            RankedTensorType type) {
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

Value penstock::createSum(OpBuilder &builder, Location loc, Value left,
                          Value right, bool inPlace) {
  auto type = cast<RankedTensorType>(left.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  SmallVector<Value> inputs;
  Value destination = left;
  if (!inPlace) {
    inputs.push_back(left);
    destination = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  }
  inputs.push_back(right);
  SmallVector<AffineMap> maps(inputs.size() + 1, identity);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(type), inputs, ValueRange(destination),
             maps, iterators,
             [&](OpBuilder &body, Location loc, ValueRange arguments) {
               Value first = inPlace ? arguments[1] : arguments[0];
               Value second = inPlace ? arguments[0] : arguments[1];
               Value sum = arith::AddFOp::create(body, loc, first, second);
               linalg::YieldOp::create(body, loc, sum);
             })
      .getResult(0);
}

bool Pullback::mixesDataAndParameters(Operation *op) const {
  bool data = false, parameter = false;
  forEachUsedValue(op, [&](Value value) {
    data |= getKind(value) == ValueKind::Data;
    parameter |= getKind(value) == ValueKind::Parameter;
  });
  return data && parameter;
}

Value Pullback::getArgument(ArgumentRole role, Value forward) {
  Value &argument = arguments[{static_cast<int>(role), forward}];
  if (!argument)
    argument = block.addArgument(forward.getType(), forward.getLoc());
  return argument;
}

/// Views of the same elements: stored once, as their source.
static bool isView(Operation *op) {
  return isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                         tensor::CastOp, linalg::BroadcastOp>(op);
}

Value Pullback::getPrimal(Value value) {
  if (Value known = evaluated.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  ValueKind kind = getKind(value);
  // Scalars come from the task again; they and what is computed from them are
  // no messages.
  bool isTensor = isa<RankedTensorType>(value.getType());
  if (!op)
    return getArgument(!isTensor                      ? ArgumentRole::Scalar
                       : kind == ValueKind::Parameter ? ArgumentRole::Parameter
                                                      : ArgumentRole::Residual,
                       value);
  if (kind == ValueKind::Data && isTensor && !isView(op))
    return getArgument(ArgumentRole::Residual, value);
  // Constants, expressions of parameters and views are evaluated here.
  forEachUsedValue(op, [&](Value used) {
    if (!evaluated.contains(used))
      evaluated.map(used, getPrimal(used));
  });
  builder.clone(*op, evaluated);
  return evaluated.lookup(value);
}

Value Pullback::getAccumulator(Value value) {
  if (!accumulating.contains(value))
    return nullptr;
  Value &sum = cotangents[value];
  if (!sum)
    sum = getArgument(ArgumentRole::Accumulator, value);
  return sum;
}

void Pullback::setAccumulator(Value value, Value sum) {
  cotangents[value] = sum;
}

void Pullback::add(Value value, Value contribution, Location loc) {
  if (!isActive(value))
    return;
  if (Value accumulator = getAccumulator(value))
    return setAccumulator(
        value, createSum(builder, loc, accumulator, contribution, true));
  // Not in place: a cotangent may be an argument, and the order of additions
  // must not depend on whether a stage boundary made it one.
  Value &sum = cotangents[value];
  sum = sum ? createSum(builder, loc, sum, contribution, false) : contribution;
}
