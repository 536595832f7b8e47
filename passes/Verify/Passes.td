//===- Passes.td - Verify passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers that stand at the level changes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_VERIFY_PASSES_TD
#define PENSTOCK_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // PENSTOCK_PASSES_VERIFY_PASSES_TD
