//===- ForwardProgram.h - The forward task and its function -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What both passes of this folder need to know of a module at level graph: the
// one forward task, the function that it calls, and which ops of the function
// any stage can compute by itself.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PARTITION_FORWARDPROGRAM_H
#define PENSTOCK_PARTITION_FORWARDPROGRAM_H

#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace penstock {

/// Values that `op` uses, in its regions too, that are defined outside of it.
llvm::SetVector<mlir::Value> getUsedValues(mlir::Operation *op);

struct ForwardProgram {
  pipeline::StageOp stage;
  pipeline::TaskOp task;
  mlir::func::CallOp call;
  mlir::func::FuncOp function;

  /// Finds them, or says what of the module's form is wrong.
  static mlir::FailureOr<ForwardProgram> find(mlir::ModuleOp module);

  /// Returns true if `op` depends on constants and parameters only, so that
  /// every stage that needs it evaluates it again.
  bool isRecomputable(mlir::Operation *op) const {
    return recomputable.contains(op);
  }
  /// Says so of a copy of such an op.
  void addRecomputable(mlir::Operation *op) { recomputable.insert(op); }
  /// Returns the read of argument i of the function, or null if that is no
  /// variable that the task reads.
  pipeline::ReadOp getRead(unsigned argument);
  /// The ops of the function's block that use `value`, nested uses included.
  llvm::SetVector<mlir::Operation *> getUsersInFunction(mlir::Value value);

private:
  void findRecomputable();
  llvm::DenseSet<mlir::Operation *> recomputable;
};

} // namespace penstock

#endif // PENSTOCK_PARTITION_FORWARDPROGRAM_H
