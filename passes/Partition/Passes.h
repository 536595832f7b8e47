//===- Passes.h - Partition passes ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one function to a function and a task per stage.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PARTITION_PASSES_H
#define PENSTOCK_PASSES_PARTITION_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Partition/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Partition/Passes.h.inc"

struct LowerGraphToStagesOptions
    : mlir::PassPipelineOptions<LowerGraphToStagesOptions> {
  Option<int64_t> stages{*this, "stages", llvm::cl::desc("Number of stages"),
                         llvm::cl::init(0)};
  ListOption<std::string> splitAt{
      *this, "split-at", llvm::cl::desc("ONNX nodes or values to cut after")};
  ListOption<double> speeds{
      *this, "speeds", llvm::cl::desc("Speed of the device of each stage")};
  Option<std::string> targets{
      *this, "targets",
      llvm::cl::desc("Target of the device of each stage, in brackets")};
  Option<bool> sendParameters{
      *this, "send-parameters",
      llvm::cl::desc("A parameter that several stages read is sent by the "
                     "first, as asynchronous methods need it"),
      llvm::cl::init(false)};
};

void buildLowerGraphToStagesPipeline(mlir::OpPassManager &manager,
                                     const LowerGraphToStagesOptions &options);

/// Registers the named pipeline `lower-graph-to-stages`.
void registerPartitionPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_PARTITION_PASSES_H
