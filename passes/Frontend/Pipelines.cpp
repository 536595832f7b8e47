//===- Pipelines.cpp - The pipeline lower-onnx-to-graph ===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

void penstock::registerFrontendPipelines() {}
