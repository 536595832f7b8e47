//===- Pipelines.cpp - The pipeline lower-graph-to-stages -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order.
//===----------------------------------------------------------------------===//

#include "passes/Partition/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace penstock;

void penstock::buildLowerGraphToStagesPipeline(
    mlir::OpPassManager &manager, const LowerGraphToStagesOptions &options) {
  PipelinePartitionOptions partition;
  partition.stages = options.stages;
  for (const std::string &name : options.splitAt)
    partition.splitAt.push_back(name);
  for (double speed : options.speeds)
    partition.speeds.push_back(speed);
  partition.targets = options.targets;
  manager.addPass(createPipelinePartition(partition));
  if (options.sendParameters)
    // Where the cuts are says who reads what.
    manager.addPass(createPipelineSendParameters());
  else
    // What a parameter's gradient is must not depend on the cut.
    manager.addPass(createPipelineSeparateReads());
  manager.addPass(createPipelineOutlineStages());
  manager.addPass(createPipelineTieParameters());
}

void penstock::registerPartitionPipelines() {
  mlir::PassPipelineRegistration<LowerGraphToStagesOptions>(
      "lower-graph-to-stages", "Cut the model into stages",
      buildLowerGraphToStagesPipeline);
}
