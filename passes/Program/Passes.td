//===- Passes.td - Program passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From schedules to one function per device over one arena.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PASSES_TD
#define PENSTOCK_PASSES_PROGRAM_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // PENSTOCK_PASSES_PROGRAM_PASSES_TD
