//===- GradientSum.h - Gradients of one parameter ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parameter that several nodes read has a gradient from each of them. Their
// sum is what an update uses.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_GRADIENTSUM_H
#define PENSTOCK_PASSES_TRAINING_GRADIENTSUM_H

#include "passes/Training/Passes.h"

#include "dialects/Pipeline/Pipeline.h"

namespace penstock {

/// The gradients of every parameter in the order in which they are added: that
/// of the nodes that read it.
llvm::MapVector<mlir::Attribute, llvm::SmallVector<pipeline::VariableOp>>
collectGradients(mlir::ModuleOp module);

/// (first, second, ...) -> (their sum from the left, zero, ...), each result in
/// the place of its argument.
void emitGradientSum(mlir::func::FuncOp function);

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_GRADIENTSUM_H
