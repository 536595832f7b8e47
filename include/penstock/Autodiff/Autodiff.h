//===- Autodiff.h - Reverse mode on pure functions --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Differentiates a function of one block into a backward function with explicit
// residuals, whose parameter gradients accumulate into arguments.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_AUTODIFF_AUTODIFF_H
#define PENSTOCK_AUTODIFF_AUTODIFF_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"

#include <optional>

namespace penstock {

/// Attaches the derivative rules to the upstream ops and to those of `nn`.
void registerAutodiffModels(mlir::DialectRegistry &registry);

/// Where the cotangent of a forward result comes from.
struct Seed {
  enum Kind { None, Argument, Constant } kind = None;
  /// The splat value of a constant seed.
  double value = 0;
};

struct DifferentiationRequest {
  /// Per argument of the forward function: a parameter, or else data.
  llvm::SmallVector<bool> isParameter;
  /// Per argument: whether its gradient is wanted.
  llvm::SmallVector<bool> isWanted;
  /// Per argument: whether later consumers of the same value have already
  /// summed a cotangent that this function's contributions add to.
  llvm::SmallVector<bool> hasPriorCotangent;
  /// Per result of the forward function.
  llvm::SmallVector<Seed> seeds;
};

/// The gradient of a data argument of the forward function: a result of the
/// backward function, or one of its arguments unchanged.
struct InputGradient {
  unsigned argument;
  bool isResult;
  unsigned index;
};

/// A backward function. Its arguments, in this order, are the cotangents of
/// forward results, the prior cotangents of forward arguments, the residuals,
/// the parameters, the accumulators, and scalars. Its results are gradients of
/// data arguments, then the accumulators' new values.
struct Differentiation {
  /// Null when nothing is computed: either no gradient reaches what is wanted,
  /// or cotangents are passed on unchanged.
  mlir::func::FuncOp function;
  llvm::SmallVector<unsigned> cotangents;
  llvm::SmallVector<unsigned> priorCotangents;
  /// Values of the forward function: its arguments, or results of its ops.
  llvm::SmallVector<mlir::Value> residuals;
  llvm::SmallVector<unsigned> parameters;
  llvm::SmallVector<unsigned> accumulators;
  /// Arguments of the forward function that are no tensors.
  llvm::SmallVector<unsigned> scalars;
  llvm::SmallVector<InputGradient> inputGradients;
  /// The result that holds the first accumulator's new value.
  unsigned firstAccumulatorResult = 0;
};

/// Returns, per result of the function, true if it depends with a derivative on
/// one of the arguments in `isWanted`.
llvm::SmallVector<bool> findActiveResults(mlir::func::FuncOp forward,
                                          llvm::ArrayRef<bool> isWanted);

/// Emits the backward function `name` after `forward`, which does not change.
/// Reports an op without a rule at that op.
mlir::FailureOr<Differentiation>
differentiate(mlir::func::FuncOp forward, const DifferentiationRequest &request,
              llvm::StringRef name);

} // namespace penstock

#endif // PENSTOCK_AUTODIFF_AUTODIFF_H
