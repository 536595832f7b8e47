//===- Pipelines.cpp - The pipeline lower-schedule-to-program -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/Passes.h"
#include "passes/Program/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace penstock;

void penstock::buildLowerScheduleToProgramPipeline(
    mlir::OpPassManager &manager,
    const LowerScheduleToProgramOptions &options) {
  // 0. Adjusted weights become results of the updates, which are functions.
  manager.addPass(createPipelineFuseAdjustedWeights());
  // 1. Functions, while they are still on tensors and free of side effects:
  //    composites first, so that their parts can be fused with neighbours.
  manager.addPass(createNnExpandComposites());
  manager.addPass(createPipelineFuse());
  manager.addNestedPass<mlir::func::FuncOp>(createPipelineMergeReductions());
  // 2. Buffers; products go to the library where it takes buffers as they are,
  //    before the plan, which has to know the library's scratch.
  manager.addPass(createPipelineBufferizeFunctions());
  PipelineSelectLibraryOptions library;
  library.threads = static_cast<int64_t>(options.threads.getValue());
  manager.addPass(createPipelineSelectLibrary(library));
  PipelinePrepackWeightsOptions prepack;
  prepack.policy = options.prepack;
  prepack.threads = options.threads;
  manager.addPass(createPipelinePrepackWeights(prepack));
  PipelineShareScratchOptions scratch;
  scratch.threads = options.threads;
  manager.addPass(createPipelineShareScratch(scratch));
  // 3. Device functions, their memory, and the proof of both.
  manager.addPass(createPipelineLowerSchedule());
  PipelinePlanMemoryOptions plan;
  plan.threads = options.threads;
  plan.limit = options.deviceMemory;
  manager.addPass(createPipelinePlanMemory(plan));
  manager.addPass(createPipelineVerifyProgram());
}

void penstock::registerProgramPipelines() {
  mlir::PassPipelineRegistration<LowerScheduleToProgramOptions>(
      "lower-schedule-to-program",
      "Bufferises functions and makes one program per device",
      buildLowerScheduleToProgramPipeline);
}
