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

static LogicalResult requireIntegers(NodeBinder &node) {
  if (isa<FloatType>(node.elementType(0)) || node.elementType(0).isInteger(1))
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0)
                        << ", it must be of integers; insert a Cast";
  return success();
}

//===--- Mod ---===//

static Types inferMod(NodeBinder &node) {
  bool fmod = false;
  Types types = inferTwo(node, {"A", "B"});
  if (failed(types) || failed(node.requireNumber(0)) ||
      failed(node.attribute("fmod", fmod)))
    return failure();
  if (!fmod && isa<FloatType>(node.elementType(0)))
    return node.badAttribute("fmod", "1 for floats");
  return types;
}

/// Folds Mod of integers, which sizes are computed with.
static Constants foldMod(NodeBinder &node) {
  bool fmod = false;
  SmallVector<ConstantTensor> factors = broadcastConstants(node);
  if (factors.empty() || factors[0].isFloat())
    return {};
  (void)node.attribute("fmod", fmod);
  for (auto [a, b] :
       llvm::zip_equal(factors[0].integers, factors[1].integers)) {
    a = b == 0 || b == -1 ? 0 : a % b;
    if (!fmod && a != 0 && (a < 0) != (b < 0))
      a += b;
  }
  return factors[0].pack();
}

static Value modulo(NodeBinder &node, Emitter &inside, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return inside.make<arith::RemFOp>(a, b);
  bool fmod = false;
  (void)node.attribute("fmod", fmod);
  // The remainder has the sign of the dividend, a modulus of the divisor.
  Value zero = inside.scalar(a.getType(), 0);
  Value rest = inside.sub(a, inside.mul(inside.divideIntegers(a, b), b));
  rest = inside.select(inside.equal(b, zero), zero, rest);
  if (fmod)
    return rest;
  Value signs = inside.make<arith::XOrIOp>(rest, b);
  Value differ =
      inside.both(inside.less(signs, zero),
                  inside.compare(arith::CmpIPredicate::ne, rest, zero));
  return inside.select(differ, inside.add(rest, b), rest);
}

//===--- BitShift ---===//

static Types inferBitShift(NodeBinder &node) {
  std::string direction;
  Types types = inferTwo(node, {"X", "Y"});
  if (failed(types) || failed(requireIntegers(node)) ||
      failed(node.attribute("direction", direction)))
    return failure();
  if (!node.elementType(0).isUnsignedInteger())
    return node.error() << "operand 'X' is " << node.type(0)
                        << ", it must be of unsigned integers; insert a Cast";
  if (direction != "LEFT" && direction != "RIGHT")
    return node.error()
           << "attribute 'direction' must be \"LEFT\" or \"RIGHT\"";
  return types;
}

static Value bitShift(NodeBinder &node, Emitter &inside, Value x, Value by) {
  std::string direction;
  (void)node.attribute("direction", direction);
  OpBuilder &b = inside.builder;
  Type type = x.getType();
  // By as many bits as there are, nothing is left.
  Value inRange =
      arith::CmpIOp::create(b, inside.loc, arith::CmpIPredicate::ult, by,
                            inside.scalar(type, type.getIntOrFloatBitWidth()));
  Value zero = inside.scalar(type, 0);
  by = inside.select(inRange, by, zero);
  Value shifted = direction == "LEFT"
                      ? Value(arith::ShLIOp::create(b, inside.loc, x, by))
                      : Value(arith::ShRUIOp::create(b, inside.loc, x, by));
  return inside.select(inRange, shifted, zero);
}

//===--- Bitwise ---===//

static Types inferBitwise(NodeBinder &node) {
  Types types = inferTwo(node, {"A", "B"});
  if (failed(types) || failed(requireIntegers(node)))
    return failure();
  return types;
}

static Types inferBitwiseNot(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(requireIntegers(node)))
    return failure();
  return node.type(0);
}

static Value bitwiseNot(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.make<arith::XOrIOp>(x, emitter.scalar(x.getType(), -1));
}

void penstock::onnx::addIntegerOperators(OperatorTable &table) {
  table.add("Mod", {10, 13}, inferMod, foldMod, lowerTwo<modulo>);
  table.add("BitShift", {11}, inferBitShift, nullptr, lowerTwo<bitShift>,
            Operator::Inactive);
  table.add("BitwiseAnd", {18}, inferBitwise, nullptr,
            lowerTwo<scalarOp<arith::AndIOp>>, Operator::Inactive);
  table.add("BitwiseOr", {18}, inferBitwise, nullptr,
            lowerTwo<scalarOp<arith::OrIOp>>, Operator::Inactive);
  table.add("BitwiseXor", {18}, inferBitwise, nullptr,
            lowerTwo<scalarOp<arith::XOrIOp>>, Operator::Inactive);
  table.add("BitwiseNot", {18}, inferBitwiseNot, nullptr,
            lowerUnary<bitwiseNot>, Operator::Inactive);
}
