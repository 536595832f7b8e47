//===- Powers.cpp - Pow in all its types ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Base and exponent may be floats or integers of any width; the result has the
// base's type.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

/// The exponent may have a type of its own; the result has the base's.
static Types inferPow(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"X", "Y"}, 2)) || failed(node.requireNumber(0)) ||
      failed(node.requireNumber(1, /*anyWidth=*/true)) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  return node.makeType(shape);
}

/// Folds Pow of integers only, which shapes are computed with.
static Constants foldPow(NodeBinder &node) {
  SmallVector<ConstantTensor> all = broadcastConstants(node);
  if (all.empty() || all[0].isFloat() || all[1].isFloat())
    return {};
  for (auto [value, exponent] : llvm::zip(all[0].integers, all[1].integers)) {
    if (exponent < 0)
      return {};
    int64_t result = 1;
    for (uint64_t square = value, rest = exponent; rest; rest >>= 1) {
      if (rest & 1)
        result = static_cast<int64_t>(static_cast<uint64_t>(result) * square);
      square *= square;
    }
    value = result;
  }
  return all[0].pack();
}

/// Emits a power by squaring, with as many steps as the exponent has bits: no
/// branches. A negative exponent gives the integer part of the result: 0,
/// unless the base is 1 or -1.
static Value integerPower(Emitter &emitter, Value base, Value exponent) {
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Type type = base.getType();
  Value zero = emitter.scalar(type, 0), one = emitter.scalar(type, 1);
  Value negative = emitter.less(exponent, zero);
  Value rest = emitter.select(negative, emitter.sub(zero, exponent), exponent);
  Value result = one, square = base;
  for (unsigned bit = 0; bit + 1 < type.getIntOrFloatBitWidth(); ++bit) {
    Value odd =
        emitter.equal(arith::AndIOp::create(builder, loc, rest, one), one);
    result = emitter.select(odd, emitter.mul(result, square), result);
    square = emitter.mul(square, square);
    rest = arith::ShRUIOp::create(builder, loc, rest, one);
  }
  Value isUnit = emitter.equal(emitter.mul(base, base), one);
  Value kept = emitter.select(isUnit, result, zero);
  return emitter.select(negative, kept, result);
}

static Values lowerPow(NodeBinder &node, Emitter &emitter) {
  auto type = resultType(node);
  // Squares and roots are what norms are written with.
  std::optional<double> exponent;
  if (DenseElementsAttr constant = node.constant(1))
    if (constant.getNumElements() == 1) {
      ConstantTensor tensor(constant);
      exponent = tensor.isFloat() ? tensor.floats[0] : tensor.integers[0];
    }
  bool isFloat = isa<FloatType>(node.elementType(0));
  if (exponent == 2.0 || (isFloat && exponent == 0.5)) {
    auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
      if (exponent == 2.0)
        return inside.mul(scalars[0], scalars[0]);
      return inside.make<math::SqrtOp>(scalars[0]);
    };
    return emitter.elementwise(type, node.operand(0), body);
  }
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    Value base = scalars[0], power = scalars[1];
    Type baseType = base.getType(), powerType = power.getType();
    if (!isFloat && !isa<FloatType>(powerType))
      return integerPower(inside, base, inside.cast(power, baseType));
    // An integer to a float power is computed in double, as numpy does.
    Type computed = isFloat ? baseType : inside.builder.getF64Type();
    Value result = inside.make<math::PowFOp>(inside.cast(base, computed),
                                             inside.cast(power, computed));
    return inside.cast(result, baseType);
  };
  return emitter.elementwise(type, {node.operand(0), node.operand(1)}, body);
}

void penstock::onnx::addPowers(OperatorTable &table) {
  table.add("Pow", {7, 12, 13, 15}, inferPow, foldPow, lowerPow);
}
