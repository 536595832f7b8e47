//===- Passes.h - Training passes -------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From forward tasks to forward, backward, update and evaluate tasks.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_PASSES_H
#define PENSTOCK_PASSES_TRAINING_PASSES_H

#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Optimizers/RateSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"
#include "llvm/Support/CommandLine.h"

namespace penstock {

// The values of options that are few, with their words on the command lines.

enum class RecomputePolicy { None, Full, Budget, Matching };

inline llvm::cl::ValuesClass recomputePolicies() {
  return llvm::cl::values(
      clEnumValN(RecomputePolicy::None, "none", "Nothing"),
      clEnumValN(RecomputePolicy::Full, "full", "All from the stage's inputs"),
      clEnumValN(RecomputePolicy::Budget, "budget",
                 "The cheapest until what is stored fits the stage's budget"),
      clEnumValN(RecomputePolicy::Matching, "matching",
                 "What ONNX nodes of matching names keep"));
}

inline llvm::cl::ValuesClass clipScopes() {
  return llvm::cl::values(clEnumValN(pipeline::ClipScope::Global, "global",
                                     "That of the gradients of all stages"),
                          clEnumValN(pipeline::ClipScope::Stage, "stage",
                                     "That of the gradients of each stage"));
}

inline llvm::cl::ValuesClass batchNormModes() {
  return llvm::cl::values(
      clEnumValN(pipeline::BatchNorm::Train, "train",
                 "Those of the microbatch"),
      clEnumValN(pipeline::BatchNorm::Frozen, "frozen", "Those stored"));
}

inline llvm::cl::ValuesClass precisions() {
  return llvm::cl::values(
      clEnumValN(pipeline::Precision::F32, "f32", "Nothing"),
      clEnumValN(pipeline::Precision::BF16, "bf16", "bf16"));
}

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
