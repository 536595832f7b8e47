//===- RecomputeRewrite.h - Moving residuals to the backward ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a plan of pipeline-recompute is executed on one stage.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_RECOMPUTEREWRITE_H
#define PENSTOCK_PASSES_TRAINING_RECOMPUTEREWRITE_H

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Training/RecomputePlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {

/// The two tasks of a stage, and the channel between them.
struct RecomputeStage {
  pipeline::StageOp stage;
  pipeline::TaskOp forward, backward;
  mlir::func::CallOp forwardCall, backwardCall;
  mlir::func::FuncOp forwardFunction, backwardFunction;
  pipeline::ChannelOp channel;
  pipeline::PutOp put;
  pipeline::TakeOp take;
  RecomputeProblem problem;
  /// Per field of the channel: the value of the forward function; null for one
  /// that the task only passes on.
  llvm::SmallVector<mlir::Value> fields;
};

/// Stores what the plan stores, and has the backward function make the rest
/// again. A channel that carries nothing any more is erased.
void applyRecomputePlan(RecomputeStage &stage, const RecomputePlan &plan,
                        mlir::SymbolTable &symbols);

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_RECOMPUTEREWRITE_H
