//===- ScalarRules.h - Derivatives of scalar ops ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reverse mode inside the body of a structured op. The table of rules is data:
// one line per op of arith and math.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_AUTODIFF_SCALARRULES_H
#define PENSTOCK_LIB_AUTODIFF_SCALARRULES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace penstock {

/// What a scalar rule works with: forward scalars, their cotangents, and short
/// names for arithmetic.
class ScalarPullback {
public:
  virtual ~ScalarPullback() = default;
  ScalarPullback(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// The forward value of a scalar in the backward body.
  virtual mlir::Value value(mlir::Value scalar) = 0;

  void add(mlir::Value scalar, mlir::Value contribution);
  bool isActive(mlir::Value scalar) const { return active.contains(scalar); }
  mlir::Value getCotangent(mlir::Value scalar) const {
    return cotangents.lookup(scalar);
  }

  mlir::Value constant(mlir::Type type, double number);
  mlir::Value like(mlir::Value other, double number) {
    return constant(other.getType(), number);
  }
  template <typename Op, typename... Arguments>
  mlir::Value make(Arguments &&...arguments) {
    return Op::create(builder, loc, std::forward<Arguments>(arguments)...);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    return make<mlir::arith::MulFOp>(a, b);
  }
  mlir::Value div(mlir::Value a, mlir::Value b) {
    return make<mlir::arith::DivFOp>(a, b);
  }
  mlir::Value sum(mlir::Value a, mlir::Value b) {
    return make<mlir::arith::AddFOp>(a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) {
    return make<mlir::arith::SubFOp>(a, b);
  }
  mlir::Value neg(mlir::Value a) { return make<mlir::arith::NegFOp>(a); }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a,
                      mlir::Value b) {
    return make<mlir::arith::CmpFOp>(predicate, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return make<mlir::arith::SelectOp>(condition, a, b);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;

protected:
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
};

/// Pulls the cotangent of a scalar op's result back to its operands; fails,
/// without a message, when the op has no rule.
llvm::LogicalResult pullBackScalar(mlir::Operation *op, mlir::Value cotangent,
                                   ScalarPullback &pullback);

/// Whether the op's results have a derivative of zero (almost) everywhere:
/// integers, comparisons, rounding.
bool isLocallyConstant(mlir::Operation *op);

/// The x of 1 / (1 + exp(-x)), or null. Its derivative by parts overflows.
mlir::Value matchLogistic(mlir::Operation *op);

} // namespace penstock

#endif // PENSTOCK_LIB_AUTODIFF_SCALARRULES_H
