//===- Arithmetic.cpp - Floating-point code of one type -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Arithmetic.h.
//===----------------------------------------------------------------------===//

#include "penstock/Optimizers/Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace penstock;

Value Arithmetic::sqrt(Value a) {
  return math::SqrtOp::create(builder, loc, a);
}
Value Arithmetic::pow(Value a, Value b) {
  return math::PowFOp::create(builder, loc, a, b);
}
Value Arithmetic::cos(Value a) { return math::CosOp::create(builder, loc, a); }
Value Arithmetic::floor(Value a) {
  return math::FloorOp::create(builder, loc, a);
}

Value Arithmetic::lerp(Value a, Value b, double weight) {
  Value difference = sub(b, a);
  return weight < 0.5 ? add(a, mul(constant(weight), difference))
                      : sub(b, mul(difference, constant(1 - weight)));
}

Value Arithmetic::from(Value scalar) {
  if (scalar.getType().isIndex()) {
    scalar =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), scalar);
    return arith::SIToFPOp::create(builder, loc, type, scalar);
  }
  unsigned from = scalar.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(builder, loc, type, scalar);
  if (from > to)
    return arith::TruncFOp::create(builder, loc, type, scalar);
  return scalar;
}
