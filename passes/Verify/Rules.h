//===- Rules.h - The rules that need more than one op -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function checks one group of rules on one module; pipeline-verify calls
// them. The numbers are those.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_VERIFY_RULES_H
#define PENSTOCK_PASSES_VERIFY_RULES_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Levels/Level.h"

namespace penstock {

/// A module under check: its symbols and its level.
struct Subject {
  Subject(mlir::ModuleOp module, Level level)
      : module(module), symbols(module), level(level) {}

  /// The symbol of this kind that `user` names, or null after an error.
  template <typename SymbolOp>
  SymbolOp resolve(mlir::Operation *user, mlir::FlatSymbolRefAttr name) {
    auto op = symbols.lookup<SymbolOp>(name.getValue());
    if (!op)
      user->emitOpError("C44: names ")
          << name << ", which is no "
          << SymbolOp::getOperationName().rsplit('.').second
          << " of this module";
    return op;
  }
  bool isFrom(Level first) const { return level >= first; }

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  Level level;
};

/// Tasks that run together: those of one schedule; before there are schedules,
/// all of training, or all of evaluation.
struct TaskSet {
  llvm::SmallVector<pipeline::TaskOp> tasks;
  /// Whose tasks they are, in messages: "" or " of schedule @train".
  std::string of;
  /// Evaluation has one kind of task.
  bool evaluates = false;
};

/// A read or a write of a variable by a task.
struct VariableUse {
  /// The op that says so; the task itself at level program.
  mlir::Operation *op;
  pipeline::VariableOp variable;
  bool reads = false, writes = false;
};
/// Returns the uses of variables by a task, in its order.
llvm::SmallVector<VariableUse> getUses(Subject &subject, pipeline::TaskOp task);

/// C32, C33: what the program says of its training.
mlir::LogicalResult verifyTraining(Subject &subject);
/// The invariant of the level: which ops and types may be there.
mlir::LogicalResult verifyLevel(Subject &subject);
/// C1, C29: variables.
mlir::LogicalResult verifyVariables(Subject &subject);
/// C11, C12, C15 to C18 of a task's reads and writes. `versioned` are the
/// variables that an update task writes.
mlir::LogicalResult
verifyAccesses(Subject &subject, pipeline::TaskOp task,
               const llvm::DenseSet<mlir::StringAttr> &versioned);
/// C4 to C6, C13, C19 of tasks and channels, and all of variables.
mlir::LogicalResult verifyTasks(Subject &subject);
/// C4, C5 and C13 of tasks that run together.
mlir::LogicalResult verifyTaskSet(Subject &subject, const TaskSet &set);
/// C2, C7, C8, C20, C22 to C25, C34: storage, devices, schedules.
mlir::LogicalResult verifySchedules(Subject &subject);
/// C31: what the tasks of a schedule that trains push and fold.
mlir::LogicalResult verifyWaves(Subject &subject, pipeline::ScheduleOp schedule,
                                llvm::ArrayRef<pipeline::TaskOp> tasks);
/// C37: sums over copies, replicas and stages.
mlir::LogicalResult verifySums(Subject &subject);
/// C38: calls of tasks, by what functions stand for.
mlir::LogicalResult verifyCalls(Subject &subject);
/// C39 to C42: facts that stand in two places.
mlir::LogicalResult verifyFacts(Subject &subject);
/// C47: the learning rate, from training to updates.
mlir::LogicalResult verifyRates(Subject &subject);
/// C45: updates leave gradients at zero.
mlir::LogicalResult verifyZeros(Subject &subject);
/// C26 to C28: the ops of device functions.
mlir::LogicalResult verifyProgramOps(Subject &subject);

} // namespace penstock

#endif // PENSTOCK_PASSES_VERIFY_RULES_H
