//===- UpdateFunction.h - Updates that compute more -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An update is one elementwise op: what a method needs of a weight before or
// after it is best computed there, where both are in registers. With one
// version there is no other place: the new weight overwrites the old one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_UPDATEFUNCTION_H
#define PENSTOCK_OPTIMIZERS_UPDATEFUNCTION_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Optimizers/Arithmetic.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// How much an extended update has more than the one it is made from.
struct UpdateExtension {
  /// Tensors that are read and replaced, tensors that are read, and scalars.
  unsigned states = 0, inputs = 0, scalars = 0;
  /// The types of elements of the tensors that are made.
  llvm::SmallVector<mlir::Type> results = {};
};

/// One element of each tensor, and the scalars, which are f32.
struct UpdateElements {
  /// The tensor arguments and the results of the former update.
  llvm::SmallVector<mlir::Value> arguments, results;
  llvm::SmallVector<mlir::Value> states, inputs, scalars;
};

/// Emits elements of the new states, then of the further results, which are
/// rounded to their types.
using EmitElements = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    Arithmetic f, const UpdateElements &elements)>;

/// A copy of `update`, one elementwise op, that computes more.
mlir::FailureOr<mlir::func::FuncOp> extendUpdate(mlir::SymbolTable &symbols,
                                                 mlir::func::FuncOp update,
                                                 llvm::StringRef name,
                                                 UpdateExtension extension,
                                                 EmitElements emit);

/// The elementwise op that makes all results of a function; null if there is
/// none.
mlir::linalg::GenericOp getElementwiseOp(mlir::func::FuncOp function);

/// Calls the extended update instead, with further tensors: states, then
/// inputs. New results are the last ones.
mlir::func::CallOp replaceUpdateCall(mlir::func::CallOp call,
                                     mlir::func::FuncOp extended,
                                     mlir::ValueRange tensors,
                                     mlir::ValueRange scalars);

/// `7x11`, with the element type unless it is f32.
std::string describeType(mlir::RankedTensorType type);

} // namespace penstock

#endif // PENSTOCK_OPTIMIZERS_UPDATEFUNCTION_H
