//===- Passes.td - Lowering passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From device programs and kernels to LLVM IR.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_LOWERING_PASSES_TD
#define PENSTOCK_PASSES_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // PENSTOCK_PASSES_LOWERING_PASSES_TD
