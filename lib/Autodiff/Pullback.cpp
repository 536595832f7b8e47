//===- Pullback.cpp - What a derivative rule works with -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cotangents, and the ways in which a forward value reaches the backward.
//===----------------------------------------------------------------------===//

#include "penstock/Autodiff/Pullback.h"
#include "penstock/Support/Structured.h"

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
  return Structured(builder, loc).filled(type, 0.0);
}

Value penstock::createSum(OpBuilder &builder, Location loc, Value left,
                          Value right, bool inPlace) {
  auto type = cast<RankedTensorType>(left.getType());
  Structured s(builder, loc);
  if (!inPlace)
    return s.elementwise(type, {left, right}, [](Scalars &s, ValueRange in) {
      return s.add(in[0], in[1]);
    });
  int64_t rank = type.getRank();
  return s.generic(
      right, left, {s.identity(rank), s.identity(rank)}, s.parallel(rank),
      [](Scalars &s, ValueRange in) { return s.add(in[1], in[0]); });
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
