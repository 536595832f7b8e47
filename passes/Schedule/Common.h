//===- Common.h - What several schedule passes do ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps that replay repeats on its own module, and the diagnostics of
// broken rules.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_SCHEDULE_COMMON_H
#define PENSTOCK_PASSES_SCHEDULE_COMMON_H

#include "penstock/Schedule/Csv.h"
#include "penstock/Schedule/FromIR.h"

namespace penstock {

/// Emits the violation at the op that breaks the rule.
mlir::LogicalResult reportViolation(pipeline::ScheduleOp schedule,
                                    const schedule::Imported &imported,
                                    const schedule::Violation &violation);

/// Reads the table of a schedule and puts the stages where it has them.
mlir::FailureOr<schedule::CsvSchedule>
placeByTable(mlir::ModuleOp module, llvm::StringRef file,
             llvm::ArrayRef<int64_t> replicas);

/// Writes a schedule of the module from orders, named like its role, with what
/// generated them if that is the user's choice.
void addSchedule(mlir::ModuleOp module, pipeline::ScheduleRole role,
                 const schedule::Imported &imported,
                 llvm::ArrayRef<schedule::Order> orders,
                 pipeline::GeneratorAttr generator = {});

/// Adds the schedule of the evaluate tasks, if there are any. `generator` is
/// that of the program, which its schedule has if it only infers.
mlir::LogicalResult addEvaluation(mlir::ModuleOp module,
                                  pipeline::GeneratorAttr generator);

/// Places the transfers of a schedule that has runs only.
mlir::LogicalResult orderTransfers(pipeline::ScheduleOp schedule,
                                   llvm::ArrayRef<double> speeds = {});

/// Sizes all storage of a module from its schedules.
mlir::LogicalResult sizeStorage(mlir::ModuleOp module);

} // namespace penstock

#endif // PENSTOCK_PASSES_SCHEDULE_COMMON_H
