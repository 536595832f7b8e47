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

Value Arithmetic::constant(double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}
Value Arithmetic::add(Value a, Value b) {
  return arith::AddFOp::create(builder, loc, a, b);
}
Value Arithmetic::sub(Value a, Value b) {
  return arith::SubFOp::create(builder, loc, a, b);
}
Value Arithmetic::mul(Value a, Value b) {
  return arith::MulFOp::create(builder, loc, a, b);
}
Value Arithmetic::div(Value a, Value b) {
  return arith::DivFOp::create(builder, loc, a, b);
}
Value Arithmetic::min(Value a, Value b) {
  return arith::MinimumFOp::create(builder, loc, a, b);
}
Value Arithmetic::max(Value a, Value b) {
  return arith::MaximumFOp::create(builder, loc, a, b);
}
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

Value Arithmetic::selectLess(Value a, Value b, Value x, Value y) {
  Value less =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b);
  return arith::SelectOp::create(builder, loc, less, x, y);
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
