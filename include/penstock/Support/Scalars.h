//===- Scalars.h - Scalar operations by short names -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bodies of structured operations and scalar functions are formulas: each call
// here emits one operation, of floats or of integers as its operands are.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_SCALARS_H
#define PENSTOCK_SUPPORT_SCALARS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace penstock {

class Scalars {
public:
  Scalars(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  /// Emits an operation; returns its first result.
  template <typename Op, typename... Arguments>
  mlir::Value make(Arguments &&...arguments) {
    return Op::create(builder, loc, std::forward<Arguments>(arguments)...)
        ->getResult(0);
  }

  /// A constant of a float, integer or index type.
  mlir::Value constant(mlir::Type type, double number) {
    if (llvm::isa<mlir::FloatType>(type))
      return make<mlir::arith::ConstantOp>(builder.getFloatAttr(type, number));
    return integer(type, static_cast<int64_t>(number));
  }
  mlir::Value integer(mlir::Type type, int64_t number) {
    return make<mlir::arith::ConstantOp>(mlir::IntegerAttr::get(type, number));
  }
  mlir::Value like(mlir::Value other, double number) {
    return constant(other.getType(), number);
  }

  mlir::Value add(mlir::Value a, mlir::Value b) {
    return either<mlir::arith::AddFOp, mlir::arith::AddIOp>(a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) {
    return either<mlir::arith::SubFOp, mlir::arith::SubIOp>(a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    return either<mlir::arith::MulFOp, mlir::arith::MulIOp>(a, b);
  }
  /// Integers are signed.
  mlir::Value div(mlir::Value a, mlir::Value b) {
    return either<mlir::arith::DivFOp, mlir::arith::DivSIOp>(a, b);
  }
  /// NaN where one of two floats is; signed integers.
  mlir::Value max(mlir::Value a, mlir::Value b) {
    return either<mlir::arith::MaximumFOp, mlir::arith::MaxSIOp>(a, b);
  }
  mlir::Value min(mlir::Value a, mlir::Value b) {
    return either<mlir::arith::MinimumFOp, mlir::arith::MinSIOp>(a, b);
  }
  mlir::Value neg(mlir::Value a) { return make<mlir::arith::NegFOp>(a); }

  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a,
                      mlir::Value b) {
    return make<mlir::arith::CmpFOp>(predicate, a, b);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a,
                      mlir::Value b) {
    return make<mlir::arith::CmpIOp>(predicate, a, b);
  }
  /// False where one of two floats is NaN; signed integers.
  mlir::Value less(mlir::Value a, mlir::Value b) {
    return isFloat(a) ? compare(mlir::arith::CmpFPredicate::OLT, a, b)
                      : compare(mlir::arith::CmpIPredicate::slt, a, b);
  }
  mlir::Value equal(mlir::Value a, mlir::Value b) {
    return isFloat(a) ? compare(mlir::arith::CmpFPredicate::OEQ, a, b)
                      : compare(mlir::arith::CmpIPredicate::eq, a, b);
  }
  mlir::Value isNaN(mlir::Value a) {
    return compare(mlir::arith::CmpFPredicate::UNO, a, a);
  }

  mlir::Value both(mlir::Value a, mlir::Value b) {
    return make<mlir::arith::AndIOp>(a, b);
  }
  mlir::Value any(mlir::Value a, mlir::Value b) {
    return make<mlir::arith::OrIOp>(a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return make<mlir::arith::SelectOp>(condition, a, b);
  }

  static bool isFloat(mlir::Value value) {
    return llvm::isa<mlir::FloatType>(value.getType());
  }

private:
  template <typename OnFloats, typename OnIntegers>
  mlir::Value either(mlir::Value a, mlir::Value b) {
    return isFloat(a) ? make<OnFloats>(a, b) : make<OnIntegers>(a, b);
  }
};

} // namespace penstock

#endif // PENSTOCK_SUPPORT_SCALARS_H
