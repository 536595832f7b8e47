//===- Passes.h - Frontend passes -------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an imported ONNX model to linalg on tensors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_PASSES_H
#define PENSTOCK_PASSES_FRONTEND_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Frontend/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Frontend/Passes.h.inc"

/// Options of `lower-onnx-to-graph`: those of the pass onnx-attach-loss, or
/// outputs instead of it.
struct LowerOnnxToGraphOptions
    : public mlir::PassPipelineOptions<LowerOnnxToGraphOptions> {
  Option<std::string> loss{
      *this, "loss",
      llvm::cl::desc("softmax-cross-entropy, mse, or output (default)"),
      llvm::cl::init("output")};
  Option<std::string> lossInput{
      *this, "loss-input",
      llvm::cl::desc("Name of the output that enters the loss"),
      llvm::cl::init("")};
  Option<int64_t> classAxis{*this, "class-axis",
                            llvm::cl::desc("Axis of the classes"),
                            llvm::cl::init(-1)};
  Option<std::string> ignoreLabel{
      *this, "ignore-label",
      llvm::cl::desc("Label that is left out of the mean"), llvm::cl::init("")};
  Option<double> labelSmoothing{
      *this, "label-smoothing",
      llvm::cl::desc("Part of the target that is spread over all classes"),
      llvm::cl::init(0.0)};
  ListOption<double> classWeights{*this, "class-weights",
                                  llvm::cl::desc("How much each class counts")};
  Option<bool> infer{*this, "infer",
                     llvm::cl::desc("Attach the outputs instead of a loss"),
                     llvm::cl::init(false)};
};

/// Builds the passes that make an imported module valid at level `onnx`: shapes
/// and the loss. They do nothing to a module that they were applied to before.
void buildCompleteOnnxPipeline(mlir::OpPassManager &manager,
                               const LowerOnnxToGraphOptions &options);

/// From level `onnx` to level `graph`; begins with buildCompleteOnnxPipeline.
void buildLowerOnnxToGraphPipeline(mlir::OpPassManager &manager,
                                   const LowerOnnxToGraphOptions &options);

/// Registers the named pipelines `complete-onnx` and `lower-onnx-to-graph`.
void registerFrontendPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_FRONTEND_PASSES_H
