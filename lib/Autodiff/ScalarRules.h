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

#include "penstock/Support/Scalars.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace penstock {

/// The interface of a scalar rule: forward scalars, their cotangents, and short
/// names for arithmetic.
class ScalarPullback : public Scalars {
public:
  virtual ~ScalarPullback() = default;
  using Scalars::Scalars;

  /// The forward value of a scalar in the backward body.
  virtual mlir::Value value(mlir::Value scalar) = 0;

  void add(mlir::Value scalar, mlir::Value contribution);
  bool isActive(mlir::Value scalar) const { return active.contains(scalar); }
  mlir::Value getCotangent(mlir::Value scalar) const {
    return cotangents.lookup(scalar);
  }

  mlir::Value sum(mlir::Value a, mlir::Value b) { return Scalars::add(a, b); }

protected:
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
};

/// Pulls the cotangent of a scalar op's result back to its operands; fails,
/// without a message, when the op has no rule.
llvm::LogicalResult pullBackScalar(mlir::Operation *op, mlir::Value cotangent,
                                   ScalarPullback &pullback);

/// Returns true if the op's results have a derivative of zero (almost)
/// everywhere: integers, comparisons, rounding.
bool isLocallyConstant(mlir::Operation *op);

/// The x of 1 / (1 + exp(-x)), or null. Its derivative by parts overflows.
mlir::Value matchLogistic(mlir::Operation *op);

} // namespace penstock

#endif // PENSTOCK_LIB_AUTODIFF_SCALARRULES_H
