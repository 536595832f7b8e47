//===- Prepacking.h - Weights as library calls like them --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What pipeline-prepack-weights knows of the ops whose weights it prepacks:
// convolutions and their gradients of the input (#nn.prepacking), and matrix
// products (#pipeline.panels).
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_BUFFERIZE_PREPACKING_H
#define PENSTOCK_PASSES_PROGRAM_BUFFERIZE_PREPACKING_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace penstock {

/// How a call of the library in a kernel could read its weights.
struct Prepacking {
  /// Of the kernel.
  mlir::BlockArgument weights;
  mlir::Attribute form;
  int64_t floats;
  /// What calls spend on it is worth a copy, if they are at least so many
  /// between two updates.
  bool pays;
  int64_t calls;
};

/// None where the op has no weights, or reads them as they are in any case; a
/// failure, with a diagnostic, where no library computes it.
mlir::FailureOr<std::optional<Prepacking>> readPrepacking(mlir::Operation *op,
                                                          int64_t threads);

bool isPrepacked(mlir::Operation *op);
/// The op reads its weights from there.
void setPrepacked(mlir::Operation *op, mlir::Attribute form,
                  mlir::Value prepacked);
/// Makes them.
void createPrepacking(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Attribute form, mlir::Value weights,
                      mlir::Value prepacked);
/// What variables that hold them are called, behind the name of the weights:
/// one suffix for each order that calls may want of the same weights.
llvm::StringRef getPrepackedSuffix(mlir::Attribute form);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_BUFFERIZE_PREPACKING_H
