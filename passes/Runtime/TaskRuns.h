//===- TaskRuns.h - Runs of tasks that are one function ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds runs of tasks, each from its mark to its last call, that are equal but
// for the task's number and offsets in the arena: those of other devices, and
// of the replay. They call one function, which takes these numbers in a table
// and is compiled once.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_TASKRUNS_H
#define PENSTOCK_PASSES_RUNTIME_TASKRUNS_H

#include "passes/Runtime/ProgramTable.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <map>

namespace penstock {

/// A run of a task in the function of a device.
struct TaskRun {
  /// Its mark, calls and hyperparameters, which stand nowhere else.
  llvm::SmallVector<mlir::Operation *> effects;
  /// The same with the slots and numbers that they need, in an order in which
  /// all come before their users.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Numbers that are computed elsewhere.
  llvm::SmallVector<mlir::Value> inputs;

  /// Returns the run that begins with a mark, or nothing where others use what
  /// it computes.
  static std::optional<TaskRun> find(pipeline::MarkOp mark);

  /// Returns what differs from run to run: the number of the task and
  /// offsets, in the order of `ops`.
  llvm::SmallVector<int64_t> getNumbers(const ProgramTable &table) const;

  /// Returns true if these numbers have the offset of each position of the
  /// slot's ring; false if they have the first one, and the distance of others.
  static bool listsPositions(pipeline::SlotOp slot);
};

/// The functions of runs that a program has more than once.
class TaskRuns {
public:
  /// Counts the runs in the functions of devices of a module.
  void count(mlir::ModuleOp module, const ProgramTable &table);

  /// Returns where to keep the function of a run; null where it stands once.
  mlir::LLVM::LLVMFuncOp *find(const TaskRun &run, const ProgramTable &table);

private:
  using Key = std::vector<const void *>;
  struct Entry {
    int64_t count = 0;
    mlir::LLVM::LLVMFuncOp function;
  };
  static Key getKey(const TaskRun &run, const ProgramTable &table);

  std::map<Key, Entry> entries;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_TASKRUNS_H
