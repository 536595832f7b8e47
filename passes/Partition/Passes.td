//===- Passes.td - Partition passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one function to a function and a task per stage.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PARTITION_PASSES_TD
#define PENSTOCK_PASSES_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // PENSTOCK_PASSES_PARTITION_PASSES_TD
