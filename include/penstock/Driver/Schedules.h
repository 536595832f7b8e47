//===- Schedules.h - Schedules on the command line --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What --schedule and --schedule-file imply for the rest of the plan.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_SCHEDULES_H
#define PENSTOCK_DRIVER_SCHEDULES_H

#include "penstock/Driver/Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace penstock {

/// Stages that --schedule puts on each device.
int64_t chunksPerDevice(const CompileOptions &options);
/// Replicas of a stage, by its number.
int64_t getReplicaCount(const CompileOptions &options, size_t stage);
/// Replicas at each place of a line of so many stages.
llvm::SmallVector<int64_t> replicasByPlace(const CompileOptions &options,
                                           int64_t stages);

/// Takes from the table of --schedule-file what was not said otherwise. False
/// with a sentence in `error` where they contradict each other.
bool adoptSchedule(CompileOptions &options, bool &splitsBackward,
                   std::string &error);

/// Returns true if the user bounds the orders, by a table or by memory that a
/// schedule keeps to: then that none exists may be the user's error.
bool restrictsOrders(const CompileOptions &options);

/// Returns the error of the schedule for so many stages, or an empty string.
std::string checkSchedule(const CompileOptions &options, int64_t stages);

/// Fails with what is wrong with the method for a pipeline this deep.
mlir::LogicalResult checkDepth(const CompileOptions &options, int64_t stages,
                               std::string &error);

/// Writes the training schedule of a module; false if it has none.
bool writeScheduleTable(mlir::ModuleOp module, bool withTransfers,
                        llvm::raw_ostream &stream);

} // namespace penstock

#endif // PENSTOCK_DRIVER_SCHEDULES_H
