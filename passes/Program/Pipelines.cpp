//===- Pipelines.cpp - The pipeline lower-schedule-to-program -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"

#include "passes/Lowering/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace penstock;

void penstock::buildLowerScheduleToProgramPipeline(
    OpPassManager &manager, const LowerScheduleToProgramOptions &options) {
  // Tensor functions first, while values are still values.
  manager.addPass(createNnExpandComposites());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createPipelineBufferizeFunctions());
  // The library's scratch memory is part of the plan, so it is chosen before.
  manager.addPass(createPipelineSelectLibrary());
  manager.addPass(createLowerSchedule());
  PlanMemoryOptions memory;
  memory.threads = options.threads;
  memory.limit = options.limit;
  manager.addPass(createPlanMemory(memory));
}

void penstock::registerProgramPipelines() {
  PassPipelineRegistration<LowerScheduleToProgramOptions>(
      "lower-schedule-to-program", "From level schedule to level program",
      buildLowerScheduleToProgramPipeline);
}
