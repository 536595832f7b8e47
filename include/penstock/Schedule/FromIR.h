//===- FromIR.h - Schedules of the IR as plain numbers ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the engine's model from stages, variables, channels and tasks, decides
// in which storage every value that is put lives, and reads and writes orders.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_FROMIR_H
#define PENSTOCK_SCHEDULE_FROMIR_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Schedule/Order.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace penstock::schedule {

/// A schedule runs either all evaluate tasks or all others.
enum class TaskSet { Training, Evaluation };

/// Where a value lives that tasks put: in a slot of a channel, or waiting to be
/// sent in its staging.
struct Home {
  int channel = -1;
  unsigned field = 0;
  bool staging = false;
};

/// The model, and the ops that its ids stand for.
struct Imported {
  Model model;
  llvm::SmallVector<pipeline::StageOp> stages;
  llvm::SmallVector<pipeline::VariableOp> variables;
  llvm::SmallVector<pipeline::ChannelOp> channels;
  llvm::SmallVector<pipeline::TaskOp> tasks;
  llvm::SmallVector<pipeline::GroupOp> groups;
  llvm::StringMap<int> stageIds, variableIds, channelIds, taskIds, groupIds;
  /// Every value that is taken or put. A value put twice, or taken and put
  /// again, is stored once.
  llvm::DenseMap<mlir::Value, Home> homes;

  std::vector<Order> orders;
  /// By Event::entry and Item::entry.
  llvm::SmallVector<mlir::Operation *> entries;
};

enum class Sizes { Keep, Ignore };

/// Stages must be placed. Without `sizes` all storage is unlimited. Errors go to
/// the ops at fault.
mlir::FailureOr<Imported> importModel(mlir::ModuleOp module, TaskSet tasks,
                                      int64_t microbatches,
                                      Sizes sizes = Sizes::Keep);

/// The same with the orders of a schedule, whose entries say what it runs.
mlir::FailureOr<Imported> importSchedule(pipeline::ScheduleOp schedule,
                                         Sizes sizes = Sizes::Keep);

/// Whether the schedule runs evaluate tasks.
TaskSet tasksOf(pipeline::ScheduleOp schedule);

/// Adds an order op to a schedule.
void exportOrder(pipeline::ScheduleOp schedule, const Imported &imported,
                 const Order &order);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_FROMIR_H
