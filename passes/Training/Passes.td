//===- Passes.td - Training passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From forward tasks to forward, backward, update and evaluate tasks.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_PASSES_TD
#define PENSTOCK_PASSES_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // PENSTOCK_PASSES_TRAINING_PASSES_TD
