//===- Pipelines.cpp - The pipeline lower-training-to-schedule ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "penstock/Methods/MethodSpec.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace penstock;

void penstock::buildSchedulePipeline(mlir::OpPassManager &manager,
                                     const ScheduleOptions &options) {
  // Where, then when: runs first, as a method reads how far they run ahead.
  PipelinePlaceOptions place;
  place.devices = options.devices;
  for (int64_t width : options.replicas)
    place.replicas.push_back(width);
  std::string error;
  mlir::FailureOr<MethodSpec> method = parseMethodSpec(options.method, error);
  bool open = succeeded(method) && method->isAsynchronous();
  bool isTable = !options.scheduleFile.empty();
  place.file = options.scheduleFile;
  if (!open)
    place.schedule = options.schedule;
  manager.addPass(createPipelinePlace(place));
  // What orders run and sum must be known before them.
  manager.addPass(createPipelineGatherStatistics({options.microbatches}));
  manager.addPass(createPipelineSumReplicas());
  if (isTable) {
    PipelineImportScheduleOptions import;
    import.file = options.scheduleFile;
    import.microbatches = options.microbatches;
    import.replicas = place.replicas;
    manager.addPass(createPipelineImportSchedule(import));
  } else {
    manager.addPass(createPipelineGenerateSchedule(
        {options.schedule, open, options.microbatches}));
  }
  manager.addPass(createPipelineAssignVersions(
      {options.method, options.optimizer, options.lrSchedule}));
  // Transfers need only the runs; storage needs lags and transfers.
  manager.addPass(createPipelineOrderTransfers());
  manager.addPass(createPipelineSizeStorage());
  // The bubble that the report compares with the measured one.
  manager.addPass(createPipelineSimulate());
  // Lags are final now, and the clone is the same program.
  if (options.replay)
    manager.addPass(createPipelineReplay());
  manager.addPass(createPipelineVerifySchedule());
}

void penstock::registerSchedulePipelines() {
  mlir::PassPipelineRegistration<ScheduleOptions>(
      "lower-training-to-schedule",
      "Places stages, orders runs and transfers, sizes storage and proves it",
      buildSchedulePipeline);
}
