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

def LowerSchedule : Pass<"pipeline-lower-schedule", "::mlir::ModuleOp"> {
  let summary = "Turn schedules into one function per device";
  let description = [{
    Loops of an order become `scf` loops, entries calls of bufferised functions
    on slots. Tensor functions, orders and bodies of tasks go. A nested module
    (the replay program) is lowered alike and calls the same functions.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::scf::SCFDialect"];
}

def PlanMemory : Pass<"pipeline-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every slot its place in the arena of its device";
  let description = [{
    Variables come first, those of one role (and number of versions) side by
    side in the order of the module, then the slots of channels, the temporary
    memory that all kernels share, and that of library calls.
  }];
  let options = [
    Option<"alignment", "alignment", "uint64_t", "64",
           "Alignment of every buffer in bytes, a power of two">,
    Option<"limit", "limit", "uint64_t", "0",
           "Bytes that a device has; 0: no limit">,
    Option<"threads", "threads", "uint64_t", "1",
           "Threads that each device computes with">];
}

#endif // PENSTOCK_PASSES_PROGRAM_PASSES_TD
