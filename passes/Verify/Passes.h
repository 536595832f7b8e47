//===- Passes.h - Verify passes ---------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers that stand at the level changes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_VERIFY_PASSES_H
#define PENSTOCK_PASSES_VERIFY_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Verify/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Verify/Passes.h.inc"

} // namespace penstock

#endif // PENSTOCK_PASSES_VERIFY_PASSES_H
