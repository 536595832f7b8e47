//===- Passes.h - Training passes -------------------------------------*- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From forward tasks to forward, backward, update and evaluate tasks.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_PASSES_H
#define PENSTOCK_PASSES_TRAINING_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Training/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Training/Passes.h.inc"

/// Registers the named pipeline `lower-stages-to-training`.
void registerTrainingPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_PASSES_H
