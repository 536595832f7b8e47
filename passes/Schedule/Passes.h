//===- Passes.h - Schedule passes -------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tasks to a verified order of tasks and transfers on devices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_SCHEDULE_PASSES_H
#define PENSTOCK_PASSES_SCHEDULE_PASSES_H

#include "penstock/Schedule/Generators.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace penstock {

namespace pipeline {
class PipelineDialect;
} // namespace pipeline

#define GEN_PASS_DECL
#include "passes/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Schedule/Passes.h.inc"

struct ScheduleOptions : mlir::PassPipelineOptions<ScheduleOptions> {
  Option<int64_t> devices{*this, "devices",
                          llvm::cl::desc("Devices; 0: one per stage"),
                          llvm::cl::init(0)};
  ListOption<int64_t> replicas{
      *this, "replicas",
      llvm::cl::desc("Replicas of every stage, or one number per stage")};
  Option<schedule::ScheduleSpec> schedule{
      *this, "schedule", llvm::cl::desc("Schedule, with parameters")};
  Option<std::string> scheduleFile{*this, "schedule-file",
                                   llvm::cl::desc("Schedule from a CSV file"),
                                   llvm::cl::init("")};
  Option<std::string> targets{
      *this, "targets",
      llvm::cl::desc("Target of all devices, or a list with one for each"),
      llvm::cl::init("")};
  ListOption<double> speeds{
      *this, "speeds", llvm::cl::desc("Speed of the device of each stage")};
  Option<bool> replay{*this, "replay",
                      llvm::cl::desc("Add the same training on one device"),
                      llvm::cl::init(true)};
};

/// From level `training` to a verified level `schedule`.
void buildSchedulePipeline(mlir::OpPassManager &manager,
                           const ScheduleOptions &options);

/// Registers the named pipeline `lower-training-to-schedule`.
void registerSchedulePipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_SCHEDULE_PASSES_H
