//===- Pipelines.cpp - The pipeline lower-stages-to-training --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Training/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace penstock;

void penstock::buildLowerStagesToTrainingPipeline(
    OpPassManager &manager, const LowerStagesToTrainingOptions &options) {
  // Evaluation copies the forward functions, so it comes before residuals.
  manager.addPass(createDeriveEvaluate());
  manager.addPass(createExpandTraining({options.batchNorm}));
  manager.addPass(createDifferentiate({options.microbatches}));
  // The halves of a split backward share what is made again.
  RecomputeOptions recompute;
  recompute.policy = options.recompute;
  for (int64_t bytes : options.recomputeBudgets)
    recompute.budgets.push_back(bytes);
  manager.addPass(createRecompute(recompute));
  if (options.splitBackward)
    manager.addPass(createSplitBackward());
  // Updates are made for the parameters that a gradient reaches.
  manager.addPass(createInsertOptimizer({options.optimizer}));
}

void penstock::registerTrainingPipelines() {
  PassPipelineRegistration<LowerStagesToTrainingOptions>(
      "lower-stages-to-training",
      "Differentiates the stages and adds updates and evaluation",
      buildLowerStagesToTrainingPipeline);
}
