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
