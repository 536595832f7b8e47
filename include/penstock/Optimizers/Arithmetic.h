//===- Arithmetic.h - Floating-point code of one type -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With this, optimizers and learning-rate schedules are written as formulas:
// each call emits one operation.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_ARITHMETIC_H
#define PENSTOCK_OPTIMIZERS_ARITHMETIC_H

#include "penstock/Support/Scalars.h"

namespace penstock {

/// Emits floating-point operations of one type.
struct Arithmetic : Scalars {
  Arithmetic(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type)
      : Scalars(builder, loc), type(type) {}
  Arithmetic(const Scalars &scalars, mlir::Type type)
      : Scalars(scalars), type(type) {}

  mlir::Type type;

  mlir::Value constant(double value) { return Scalars::constant(type, value); }
  mlir::Value sqrt(mlir::Value a);
  mlir::Value pow(mlir::Value a, mlir::Value b);
  mlir::Value cos(mlir::Value a);
  mlir::Value floor(mlir::Value a);
  /// a + weight * (b - a) as PyTorch's lerp computes it, which starts from b
  /// where the weight is one half or more.
  mlir::Value lerp(mlir::Value a, mlir::Value b, double weight);
  /// a < b ? x : y
  mlir::Value selectLess(mlir::Value a, mlir::Value b, mlir::Value x,
                         mlir::Value y) {
    return select(less(a, b), x, y);
  }

  /// A scalar of another float type, or an index, as this type.
  mlir::Value from(mlir::Value scalar);
};

} // namespace penstock

#endif // PENSTOCK_OPTIMIZERS_ARITHMETIC_H
