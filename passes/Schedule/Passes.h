//===- Passes.h - Schedule passes -------------------------------------*- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tasks to a verified order of tasks and transfers on devices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_SCHEDULE_PASSES_H
#define PENSTOCK_PASSES_SCHEDULE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Schedule/Passes.h.inc"

/// Registers the named pipeline `lower-training-to-schedule`.
void registerSchedulePipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_SCHEDULE_PASSES_H
