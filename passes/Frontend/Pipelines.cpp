//===- Pipelines.cpp - The pipeline lower-onnx-to-graph -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void penstock::buildCompleteOnnxPipeline(
    OpPassManager &manager, const LowerOnnxToGraphOptions &options) {
  // The loss depends on the shape of the output that it takes.
  manager.addPass(createOnnxResolveShapes());
  if (options.infer) {
    manager.addPass(createOnnxAttachOutputs());
    manager.addPass(createOnnxBoundInputs());
    return;
  }
  OnnxAttachLossOptions loss;
  loss.loss = options.loss;
  loss.lossInput = options.lossInput;
  loss.classAxis = options.classAxis;
  loss.ignoreLabel = options.ignoreLabel;
  loss.labelSmoothing = options.labelSmoothing;
  loss.classWeights.assign(options.classWeights.begin(),
                           options.classWeights.end());
  manager.addPass(createOnnxAttachLoss(loss));
  // Labels are inputs, too.
  manager.addPass(createOnnxBoundInputs());
}

void penstock::buildLowerOnnxToGraphPipeline(
    OpPassManager &manager, const LowerOnnxToGraphOptions &options) {
  buildCompleteOnnxPipeline(manager, options);
  // With shapes and constants known, and before each node goes its own way.
  manager.addPass(createRaiseComposites());
  manager.addPass(createConvertOnnxToGraph());
  // Lowering leaves unused constants and repeats shapes and zeros.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createFoldTransposes());
  manager.addPass(createCSEPass());
}

void penstock::registerFrontendPipelines() {
  PassPipelineRegistration<LowerOnnxToGraphOptions>(
      "complete-onnx", "Resolve shapes and attach the loss",
      buildCompleteOnnxPipeline);
  PassPipelineRegistration<LowerOnnxToGraphOptions>(
      "lower-onnx-to-graph", "From level onnx to level graph",
      buildLowerOnnxToGraphPipeline);
}
