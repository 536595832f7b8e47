//===- Pipelines.cpp - The pipeline lower-training-to-schedule ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

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
  bool isTable = !options.scheduleFile.empty();
  place.file = options.scheduleFile;
  place.schedule = options.schedule;
  manager.addPass(createPipelineVirtualWorkers());
  manager.addPass(createPipelinePlace(place));
  if (!options.targets.empty())
    manager.addPass(createPipelineDeclareDevices({options.targets}));
  // What orders run and sum must be known before them.
  manager.addPass(createPipelineGatherStatistics());
  manager.addPass(createPipelineSumReplicas());
  if (isTable) {
    PipelineImportScheduleOptions import;
    import.file = options.scheduleFile;
    import.replicas = place.replicas;
    manager.addPass(createPipelineImportSchedule(import));
  } else {
    PipelineGenerateScheduleOptions generate;
    generate.schedule = options.schedule;
    for (double speed : options.speeds)
      generate.speeds.push_back(speed);
    manager.addPass(createPipelineGenerateSchedule(generate));
  }
  manager.addPass(createPipelineAssignVersions());
  // Transfers need only the runs; storage needs lags and transfers.
  PipelineOrderTransfersOptions transfers;
  for (double speed : options.speeds)
    transfers.speeds.push_back(speed);
  manager.addPass(createPipelineOrderTransfers(transfers));
  manager.addPass(createPipelineSizeStorage());
  // The bubble that the report compares with the measured one.
  PipelineSimulateOptions simulate;
  for (double speed : options.speeds)
    simulate.speeds.push_back(speed);
  manager.addPass(createPipelineSimulate(simulate));
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
