//===- Passes.td - Calls and tables of the runtime ---------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions to calls of the runtime, and what it has to know to constants.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_PASSES_TD
#define PENSTOCK_PASSES_RUNTIME_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelineAddDeviceArgument
    : Pass<"pipeline-add-device-argument", "::mlir::ModuleOp"> {
  let summary = "Passes the device through all functions";
  let description = [{
    Every function that the module defines, device programs included, gets a
    leading argument `!llvm.ptr`: the `penstock_device` that runs it, which
    calls of the runtime need. Calls pass their own. Functions of nested modules
    that are declarations of functions of this one follow suit.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ConvertPipelineToRuntime
    : Pass<"convert-pipeline-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Lower device programs to calls of the runtime";
  let description = [{
    After `pipeline-add-device-argument`, which gives kernels the device as first
    argument, and the pipelines of all targets. Slots become addresses, transfers and library products calls, and
    everything that the runtime knows the constant `penstock_program`. A nested
    module (the replay program) becomes a second constant.
  }];
  let options = [
    Option<"plan", "plan", "std::string", "\"\"",
           "The compiler's report, as JSON text">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelinePassAddresses
    : Pass<"pipeline-pass-addresses", "::mlir::ModuleOp"> {
  let summary = "Passes buffers as addresses";
  let description = [{
    Functions and their calls take `!llvm.ptr` in place of buffers whose shape
    says where their elements are. Only a function that reads a buffer itself
    makes a descriptor of its address, so that one that only calls, as a stage
    with thousands of buffers does, has no op for each field of each buffer:

    ```mlir
    func.func private @s0.forward(%x: memref<8xf32>) {
      func.call @s0.forward.reduction(%x) : (memref<8xf32>) -> ()
    ```

    becomes

    ```mlir
    func.func private @s0.forward(%x: !llvm.ptr) {
      func.call @s0.forward.reduction(%x) : (!llvm.ptr) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // PENSTOCK_PASSES_RUNTIME_PASSES_TD
