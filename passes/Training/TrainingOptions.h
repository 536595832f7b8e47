//===- TrainingOptions.h - Values of pipeline-set-training ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of its options, and what --help says of the values that are few.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_TRAININGOPTIONS_H
#define PENSTOCK_PASSES_TRAINING_TRAININGOPTIONS_H

#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Optimizers/RateSchedule.h"

namespace penstock {

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

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_TRAININGOPTIONS_H
