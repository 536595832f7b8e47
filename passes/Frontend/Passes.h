//===- Passes.h - Frontend passes -------------------------------------*- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an imported ONNX model to linalg on tensors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_PASSES_H
#define PENSTOCK_PASSES_FRONTEND_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Frontend/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Frontend/Passes.h.inc"

/// Registers the named pipeline `lower-onnx-to-graph`.
void registerFrontendPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_FRONTEND_PASSES_H
