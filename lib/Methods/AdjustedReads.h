//===- AdjustedReads.h - Weights that methods adjust ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A method that predicts or compensates weights has every update make the
// adjusted ones with the new ones, once per version, into variables of their
// own; tasks read these instead. So all microbatches that read a version share
// them, and nothing is computed where a microbatch waits.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_METHODS_ADJUSTEDREADS_H
#define PENSTOCK_LIB_METHODS_ADJUSTEDREADS_H

#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/Optimizers.h"
#include "penstock/Optimizers/RateSchedule.h"

namespace penstock {

/// The call by which an update task updates one parameter.
struct WeightUpdate {
  pipeline::VariableOp parameter;
  mlir::func::CallOp call;
  mlir::Value before, after;
  /// New optimizer state, in the order of the optimizer.
  llvm::SmallVector<mlir::Value> state;
};

/// Adjusts the reads of one stage.
class StageAdjuster {
public:
  StageAdjuster(mlir::ModuleOp module, const StageTasks &stage)
      : module(module), symbols(module), stage(stage) {}

  /// The parameters that a task reads and the stage updates, one by one.
  llvm::SmallVector<WeightUpdate> getUpdates(pipeline::TaskOp reader);

  /// The same of several tasks, each parameter once.
  llvm::SmallVector<WeightUpdate>
  getUpdatesOfAll(llvm::ArrayRef<pipeline::TaskOp> readers);

  /// Lets `readers` see the weights predicted `steps` updates ahead, with the
  /// lag that their reads have. Nothing for no steps. `keeps`: versions of them
  /// are kept where readers ask for others than the newest.
  mlir::LogicalResult predict(llvm::ArrayRef<pipeline::TaskOp> readers,
                              double steps, const Optimizer &optimizer,
                              const RateSchedule &rates, llvm::StringRef name,
                              bool keeps = false);

  /// Lets `readers` see w - tau * delta, where delta follows the changes of w:
  /// gamma * delta + (1 - gamma) * change. From version `from` on; what is read
  /// of earlier ones is w.
  mlir::LogicalResult compensate(llvm::ArrayRef<pipeline::TaskOp> readers,
                                 double tau, double gamma, int64_t from);

  /// Lets `readers` see a blend of the weights and what they were `lag` updates
  /// before, which counts e^(-decay * d) where d updates are between the two.
  mlir::LogicalResult blend(llvm::ArrayRef<pipeline::TaskOp> readers,
                            int64_t lag, double decay);

  /// Divides the learning rate of the update by divisor ^ (1 - t / steps),
  /// from update `from` on until update `steps`.
  void annealRate(double divisor, int64_t steps, int64_t from);

private:
  pipeline::VariableOp addVariable(const WeightUpdate &update,
                                   llvm::StringRef suffix, bool isWeight);
  void redirect(llvm::ArrayRef<pipeline::TaskOp> readers,
                pipeline::VariableOp from, pipeline::VariableOp to);
  mlir::func::FuncOp createFunction(const llvm::Twine &name,
                                    mlir::FunctionType type);
  mlir::func::FuncOp getDirectionFunction(mlir::RankedTensorType type,
                                          const Optimizer &optimizer,
                                          unsigned rates);
  mlir::func::FuncOp getSignificance(int64_t most, double decay);
  /// The learning rate before and after its schedule.
  mlir::Value getBaseRate();
  mlir::Value getRate();

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  StageTasks stage;
};

} // namespace penstock

#endif // PENSTOCK_LIB_METHODS_ADJUSTEDREADS_H
