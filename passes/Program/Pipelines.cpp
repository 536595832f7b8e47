//===- Pipelines.cpp - The pipeline lower-schedule-to-program ===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

void penstock::registerProgramPipelines() {}
