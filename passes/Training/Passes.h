//===- Passes.h - Training passes -------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From forward tasks to forward, backward, update and evaluate tasks.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_PASSES_H
#define PENSTOCK_PASSES_TRAINING_PASSES_H

#include "passes/Training/RecomputePolicy.h"
#include "passes/Training/TrainingOptions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Training/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Training/Passes.h.inc"

struct LowerStagesToTrainingOptions
    : mlir::PassPipelineOptions<LowerStagesToTrainingOptions> {
  Option<RecomputePolicy> recompute{
      *this, "recompute", llvm::cl::desc("What backwards compute again"),
      llvm::cl::init(RecomputePolicy::None), recomputePolicies()};
  Option<std::string> recomputeNodes{
      *this, "recompute-nodes",
      llvm::cl::desc("For matching: a regular expression of ONNX nodes")};
  ListOption<int64_t> recomputeBudgets{
      *this, "recompute-budgets",
      llvm::cl::desc("Bytes per microbatch that a stage may store")};
  ListOption<std::string> metrics{
      *this, "metrics",
      llvm::cl::desc("What evaluations add up besides: top-K, mae")};
  Option<bool> splitBackward{
      *this, "split-backward",
      llvm::cl::desc("Input and weight gradients as tasks of their own"),
      llvm::cl::init(false)};
};

void buildLowerStagesToTrainingPipeline(
    mlir::OpPassManager &manager, const LowerStagesToTrainingOptions &options);

/// Registers the named pipeline `lower-stages-to-training`.
void registerTrainingPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_PASSES_H
