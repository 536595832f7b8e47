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
  // 0. Adjusted weights become results of the updates, which are functions; and
  //    each function is for one target.
  manager.addPass(createPipelineFuseAdjustedWeights());
  manager.addPass(createPipelineAssignTargets());
  // 1. Functions, while they are still on tensors and free of side effects:
  //    composites first, so that their parts can be fused with neighbors; but
  //    whether the library takes a convolution depends on its type.
  manager.addNestedPass<mlir::func::FuncOp>(createPipelineNarrowProducts());
  manager.addPass(createNnExpandComposites());
  manager.addPass(createPipelineFuse());
  manager.addNestedPass<mlir::func::FuncOp>(createPipelineMergeReductions());
  manager.addNestedPass<mlir::func::FuncOp>(createPipelineSplitReductions());
  // 2. Buffers; products go to the library where it takes buffers as they are,
  //    before the plan, which has to know the library's scratch.
  manager.addPass(createPipelineBufferizeFunctions());
  manager.addPass(createPipelineSelectLibrary());
  PipelinePrepackWeightsOptions prepack;
  prepack.policy = options.prepack;
  manager.addPass(createPipelinePrepackWeights(prepack));
  manager.addPass(createPipelineShareScratch());
  // 3. Device functions, their memory, and the proof of both.
  manager.addPass(createPipelineLowerSchedule());
  PipelinePlanMemoryOptions plan;
  plan.limit = options.deviceMemory;
  manager.addPass(createPipelinePlanMemory(plan));
  manager.addPass(createPipelineVerifyProgram());
}

void penstock::registerProgramPipelines() {
  mlir::PassPipelineRegistration<LowerScheduleToProgramOptions>(
      "lower-schedule-to-program",
      "Bufferizes functions and makes one program per device",
      buildLowerScheduleToProgramPipeline);
}
