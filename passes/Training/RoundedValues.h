//===- RoundedValues.h - What is rounded to bf16 ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values of the functions of tasks are rounded to bf16, and which
// parameters are kept in it. A value is rounded where it is made, by what it is
// and what is computed of it in the whole program: so it is the same number
// wherever the model is cut, and whether it is stored or computed again.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_ROUNDEDVALUES_H
#define PENSTOCK_PASSES_TRAINING_ROUNDEDVALUES_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace penstock {

/// A task of microbatches that calls one function of tensors.
struct TaskCall {
  pipeline::TaskOp task;
  mlir::func::CallOp call;
  mlir::func::FuncOp function;
};

/// The calls of the forward, backward and evaluate tasks, so that every message
/// is put before it is taken. No two call the same function: shared ones are
/// cloned.
mlir::FailureOr<llvm::SmallVector<TaskCall>>
collectTaskCalls(mlir::ModuleOp module, mlir::SymbolTable &symbols);

/// The values of a message. Evaluation has messages of its own.
struct ChannelField {
  mlir::Attribute channel;
  unsigned index;
  bool isEvaluation;

  ChannelField(pipeline::TaskOp task, mlir::Attribute channel, unsigned index)
      : channel(channel), index(index),
        isEvaluation(task.getKind() == pipeline::TaskKind::Evaluate) {}
  bool operator<(const ChannelField &other) const {
    return key() < other.key();
  }

private:
  std::tuple<const void *, unsigned, bool> key() const {
    return {channel.getAsOpaquePointer(), index, isEvaluation};
  }
};

/// Returns true if an operand enters a contraction or convolution as a factor.
bool isFactor(mlir::OpOperand &operand);

/// An op that moves elements of its first operand, or copies them, and computes
/// nothing.
bool isMovement(mlir::Operation *op);

/// An f32 tensor that has rows: of two dimensions or more.
bool isRoundable(mlir::Type type);

class RoundedValues {
public:
  /// Decides for the functions of `calls`; emits an error at a tensor of f64.
  static mlir::FailureOr<RoundedValues> compute(mlir::ModuleOp module,
                                                mlir::SymbolTable &symbols,
                                                llvm::ArrayRef<TaskCall> calls);

  /// Returns true if all users see this result of an op rounded.
  bool contains(mlir::Value value) const { return rounded.contains(value); }
  /// The f32 parameters that contractions or convolutions read as factors, with
  /// their copies on other stages.
  const llvm::SetVector<mlir::Operation *> &getParameters() const {
    return parameters;
  }

private:
  friend class RoundingAnalysis;

  llvm::DenseSet<mlir::Value> rounded;
  llvm::SetVector<mlir::Operation *> parameters;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_ROUNDEDVALUES_H
