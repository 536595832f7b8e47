//===- Passes.td - Program passes --------------------------*- tablegen -*-===//
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
    side in the order of the module, then the slots of channels, then the memory that
    all kernels share, one after the other: the scratch of library calls, and
    behind what a kernel's calls take of it, the kernel's temporaries.
  }];
  let options = [
    Option<"alignment", "alignment", "uint64_t", "64",
           "Alignment of every buffer in bytes, a power of two">,
    Option<"limit", "limit", "uint64_t", "0",
           "Bytes that a device has; 0: no limit">,
    Option<"threads", "threads", "uint64_t", "1",
           "Threads that each device computes with">];
}

def VerifyProgram : Pass<"pipeline-verify-program", "::mlir::ModuleOp"> {
  let summary = "Prove that device programs are right: rules S8 and S9";
  let description = [{
    Interprets the device functions of each schedule for several segments: every
    read finds the message or version that it names, nothing is overwritten
    while it is needed or moves, transfers match and end, runs are complete and
    in order. Then checks that no two buffers share bytes of the arena.
  }];
}

def PipelineBufferizeFunctions
    : Pass<"pipeline-bufferize-functions", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor function a version on buffers";
  let description = [{
    For each function `@f` on tensors that the module defines, adds `@f.kernel`
    on memrefs: the same arguments in the same order, then one buffer per tensor
    result that is not stored `pipeline.into` an argument, then, when needed, a
    block of bytes marked `pipeline.scratch` in which all temporaries lie.
    Nothing is allocated; results are computed in place. A copy that cannot be
    avoided becomes a loop and is reported as a remark.

    ```mlir
    func.func private @f(%x: tensor<5xf32>, %a: tensor<5xf32> {pipeline.into = 1})
        -> (tensor<5xf32>, tensor<5xf32>)
    // gets the companion
    func.func private @f.kernel(%x: memref<5xf32>,
        %a: memref<5xf32> {pipeline.into = 1}, %r: memref<5xf32>,
        %s: memref<192xi8> {pipeline.scratch})
    ```

    `@f` itself and its callers stay until the schedule is lowered.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // PENSTOCK_PASSES_PROGRAM_PASSES_TD
