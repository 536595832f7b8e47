//===- ForwardStage.h - Forward tasks as a table ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes of this folder know of a stage's forward task: which channel
// or variable each argument of its function comes from, and where each result
// goes to.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_FORWARDSTAGE_H
#define PENSTOCK_PASSES_TRAINING_FORWARDSTAGE_H

#include "dialects/Pipeline/Pipeline.h"

namespace penstock {

struct ForwardStage {
  pipeline::StageOp stage;
  pipeline::TaskOp task;
  mlir::func::CallOp call;
  mlir::func::FuncOp function;

  /// The channel that argument `index` is taken from, or the variable that it
  /// is read from; the other one is null, and both are for a scalar.
  pipeline::ChannelOp getChannel(unsigned index) const {
    return channels[index];
  }
  pipeline::VariableOp getVariable(unsigned index) const {
    return variables[index];
  }
  bool isScalar(unsigned index) const {
    return !channels[index] && !variables[index];
  }
  unsigned getNumArguments() const { return channels.size(); }

  /// Channels that result `index` is put to.
  llvm::ArrayRef<pipeline::ChannelOp> getSinks(unsigned index) const {
    return sinks[index];
  }

  llvm::SmallVector<pipeline::ChannelOp> channels;
  llvm::SmallVector<pipeline::VariableOp> variables;
  llvm::SmallVector<llvm::SmallVector<pipeline::ChannelOp>> sinks;
};

/// The stages of the module in the order of their declarations; reports what is
/// not in the form of level `stages`. A function that several tasks call is
/// cloned, so that each stage may change its own.
mlir::FailureOr<llvm::SmallVector<ForwardStage>>
collectForwardStages(mlir::ModuleOp module, mlir::SymbolTable &symbols);

/// A scalar of one task in another: its counter, or a hyperparameter.
mlir::Value cloneScalar(mlir::OpBuilder &builder, mlir::Value scalar,
                        pipeline::TaskOp to);

/// Inserts an op with a symbol after the last op of its kind in the module,
/// under its name or, if that is taken, a similar one.
template <typename Op>
void insertAfterLast(mlir::ModuleOp module, mlir::SymbolTable &symbols, Op op) {
  mlir::Operation *last = nullptr;
  for (Op other : module.getOps<Op>())
    if (other != op)
      last = other;
  symbols.insert(op, last ? std::next(last->getIterator())
                          : module.getBody()->end());
}

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_FORWARDSTAGE_H
