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
  Option<int64_t> microbatches{*this, "microbatches",
                               llvm::cl::desc("Microbatches per weight update"),
                               llvm::cl::init(1)};
  Option<std::string> optimizer{
      *this, "optimizer",
      llvm::cl::desc("sgd, adam or adamw, with :lr=0.1,momentum=0.9,..."),
      llvm::cl::init("sgd")};
  Option<std::string> lrSchedule{
      *this, "lr-schedule",
      llvm::cl::desc("constant, linear, cosine, step or poly, with options"),
      llvm::cl::init("constant")};
  Option<double> clipGradNorm{
      *this, "clip-grad-norm",
      llvm::cl::desc("Bound of the norm of the gradients; 0: none"),
      llvm::cl::init(0)};
  Option<std::string> clipScope{
      *this, "clip-scope",
      llvm::cl::desc("global: one norm for all stages; stage: one for each"),
      llvm::cl::init("global")};
  Option<RecomputePolicy> recompute{
      *this, "recompute", llvm::cl::desc("What backwards compute again"),
      llvm::cl::init(RecomputePolicy::None), recomputePolicies()};
  Option<std::string> recomputeNodes{
      *this, "recompute-nodes",
      llvm::cl::desc("For matching: a regular expression of ONNX nodes")};
  ListOption<int64_t> recomputeBudgets{
      *this, "recompute-budgets",
      llvm::cl::desc("Bytes per microbatch that a stage may store")};
  Option<std::string> batchNorm{
      *this, "batch-norm",
      llvm::cl::desc("Statistics of batch normalisation: train or frozen"),
      llvm::cl::init("train")};
  Option<bool> splitBackward{
      *this, "split-backward",
      llvm::cl::desc("Input and weight gradients as tasks of their own"),
      llvm::cl::init(false)};
  Option<bool> infer{
      *this, "infer",
      llvm::cl::desc("Only tasks that evaluate: the program does not train"),
      llvm::cl::init(false)};
};

void buildLowerStagesToTrainingPipeline(
    mlir::OpPassManager &manager, const LowerStagesToTrainingOptions &options);

/// Registers the named pipeline `lower-stages-to-training`.
void registerTrainingPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_PASSES_H
