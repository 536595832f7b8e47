//===- Integers.cpp - Mod, shifts and bitwise operators ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mod has a derivative where it is of floats; the rest is of integers, through
// which no gradient flows.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

/// Two operands of one type that broadcast.
static LogicalResult inferTwo(NodeBinder &node, ArrayRef<StringRef> names,
                              Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands(names, 2)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

static LogicalResult requireIntegers(NodeBinder &node) {
  if (isa<FloatType>(node.elementType(0)) || node.elementType(0).isInteger(1))
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0)
                        << ", it must be of integers; insert a Cast";
  return success();
}

//===--- Mod ---===//

static LogicalResult inferMod(NodeBinder &node, Types &types) {
  bool fmod = false;
  if (failed(inferTwo(node, {"A", "B"}, types)) ||
      failed(node.requireNumber(0)) || failed(node.attribute("fmod", fmod)))
    return failure();
  if (!fmod && isa<FloatType>(node.elementType(0)))
    return node.badAttribute("fmod", "1 for floats");
  return success();
}

/// Of integers: what sizes are computed with.
static LogicalResult foldMod(NodeBinder &node, Constants &results) {
  bool fmod = false;
  DenseElementsAttr constants[] = {node.constant(0), node.constant(1)};
  if (!constants[0] || !constants[1] || isa<FloatType>(node.elementType(0)))
    return success();
  (void)node.attribute("fmod", fmod);
  ArrayRef<int64_t> shape = resultType(node).getShape();
  ConstantTensor result = ConstantTensor(constants[0]).broadcast(shape);
  ConstantTensor divisor = ConstantTensor(constants[1]).broadcast(shape);
  for (auto [a, b] : llvm::zip_equal(result.integers, divisor.integers)) {
    a = b == 0 || b == -1 ? 0 : a % b;
    if (!fmod && a != 0 && (a < 0) != (b < 0))
      a += b;
  }
  results.push_back(result.pack());
  return success();
}

static LogicalResult lowerMod(NodeBinder &node, OpBuilder &builder,
                              Values &results) {
  bool fmod = false;
  (void)node.attribute("fmod", fmod);
  Emitter emitter(builder, node.getLoc());
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    Value a = scalars[0], b = scalars[1];
    if (isa<FloatType>(a.getType()))
      return arith::RemFOp::create(inside.builder, inside.loc, a, b);
    // The remainder has the sign of the dividend, a modulus of the divisor.
    Value zero = inside.scalar(a.getType(), 0);
    Value rest = inside.sub(a, inside.mul(inside.divideIntegers(a, b), b));
    rest = inside.select(inside.equal(b, zero), zero, rest);
    if (fmod)
      return rest;
    Value signs = arith::XOrIOp::create(inside.builder, inside.loc, rest, b);
    Value differ = arith::AndIOp::create(
        inside.builder, inside.loc, inside.less(signs, zero),
        arith::CmpIOp::create(inside.builder, inside.loc,
                              arith::CmpIPredicate::ne, rest, zero));
    return inside.select(differ, inside.add(rest, b), rest);
  };
  results.push_back(emitter.elementwise(
      resultType(node), {node.operand(0), node.operand(1)}, body));
  return success();
}

//===--- BitShift ---===//

static LogicalResult inferBitShift(NodeBinder &node, Types &types) {
  std::string direction;
  if (failed(inferTwo(node, {"X", "Y"}, types)) ||
      failed(requireIntegers(node)) ||
      failed(node.attribute("direction", direction)))
    return failure();
  if (!node.elementType(0).isUnsignedInteger())
    return node.error() << "operand 'X' is " << node.type(0)
                        << ", it must be of unsigned integers; insert a Cast";
  if (direction != "LEFT" && direction != "RIGHT")
    return node.error()
           << "attribute 'direction' must be \"LEFT\" or \"RIGHT\"";
  return success();
}

static LogicalResult lowerBitShift(NodeBinder &node, OpBuilder &builder,
                                   Values &results) {
  std::string direction;
  (void)node.attribute("direction", direction);
  Emitter emitter(builder, node.getLoc());
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    OpBuilder &b = inside.builder;
    Value x = scalars[0], by = scalars[1];
    Type type = x.getType();
    // By as many bits as there are, nothing is left.
    Value inRange = arith::CmpIOp::create(
        b, inside.loc, arith::CmpIPredicate::ult, by,
        inside.scalar(type, type.getIntOrFloatBitWidth()));
    Value zero = inside.scalar(type, 0);
    by = inside.select(inRange, by, zero);
    Value shifted = direction == "LEFT"
                        ? Value(arith::ShLIOp::create(b, inside.loc, x, by))
                        : Value(arith::ShRUIOp::create(b, inside.loc, x, by));
    return inside.select(inRange, shifted, zero);
  };
  results.push_back(emitter.elementwise(
      resultType(node), {node.operand(0), node.operand(1)}, body));
  return success();
}

//===--- Bitwise ---===//

static LogicalResult inferBitwise(NodeBinder &node, Types &types) {
  return success(succeeded(inferTwo(node, {"A", "B"}, types)) &&
                 succeeded(requireIntegers(node)));
}

static LogicalResult inferBitwiseNot(NodeBinder &node, Types &types) {
  if (failed(node.operands({"X"}, 1)) || failed(requireIntegers(node)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

static Value bitwiseNot(NodeBinder &, Emitter &emitter, Value x) {
  return arith::XOrIOp::create(emitter.builder, emitter.loc, x,
                               emitter.scalar(x.getType(), -1));
}

void penstock::onnx::addIntegerOperators(OperatorTable &table) {
  table.add("Mod", {10, 13}, inferMod, foldMod, lowerMod);
  table.add("BitShift", {11}, inferBitShift, nullptr, lowerBitShift,
            Operator::Inactive);
  table.add("BitwiseAnd", {18}, inferBitwise, nullptr, lowerToOp<arith::AndIOp>,
            Operator::Inactive);
  table.add("BitwiseOr", {18}, inferBitwise, nullptr, lowerToOp<arith::OrIOp>,
            Operator::Inactive);
  table.add("BitwiseXor", {18}, inferBitwise, nullptr, lowerToOp<arith::XOrIOp>,
            Operator::Inactive);
  table.add("BitwiseNot", {18}, inferBitwiseNot, nullptr,
            lowerUnary<bitwiseNot>, Operator::Inactive);
}
