//===- Pipelines.cpp - The pipeline lower-stages-to-training --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order. All passes
// read `pipeline.training`; of a program that infers only the first has to do.
//===----------------------------------------------------------------------===//

#include "passes/Training/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace penstock;

void penstock::buildLowerStagesToTrainingPipeline(
    OpPassManager &manager, const LowerStagesToTrainingOptions &options) {
  // Evaluation copies the forward functions, so it comes before residuals.
  PipelineDeriveEvaluateOptions evaluate;
  for (const std::string &name : options.metrics)
    evaluate.metrics.push_back(name);
  manager.addPass(createPipelineDeriveEvaluate(evaluate));
  manager.addPass(createPipelineExpandTraining());
  manager.addPass(createPipelineDifferentiate());
  // The halves of a split backward share what is made again.
  PipelineRecomputeOptions recompute;
  recompute.policy = options.recompute;
  recompute.nodes = options.recomputeNodes;
  for (int64_t bytes : options.recomputeBudgets)
    recompute.budgets.push_back(bytes);
  manager.addPass(createPipelineRecompute(recompute));
  if (options.splitBackward)
    manager.addPass(createPipelineSplitBackward());
  manager.addPass(createPipelineOverwriteGradients());
  // Updates are made for the parameters that a gradient reaches.
  manager.addPass(createPipelineInsertOptimizer());
  // Changes the updates, so they must be there.
  manager.addPass(createPipelineClipGradients());
  // All that is computed is there, and in f32.
  manager.addPass(createPipelineLowerPrecision());
}

void penstock::registerTrainingPipelines() {
  PassPipelineRegistration<LowerStagesToTrainingOptions>(
      "lower-stages-to-training",
      "Differentiates the stages and adds updates and evaluation",
      buildLowerStagesToTrainingPipeline);
}
