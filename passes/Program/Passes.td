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

def PipelineFuseAdjustedWeights
    : Pass<"pipeline-fuse-adjusted-weights", "::mlir::ModuleOp"> {
  let summary = "Lets updates compute predicted and compensated weights";
  let description = [{
    `predict` and `compensate` of what an update makes become further results of
    the update's function: the weight and the state that they need are there
    already, element by element. So does the direction of a prediction, where it
    is an elementwise function of them. A nested module (the replay program)
    calls the same functions.

    ```mlir
    %w, %c, %v = func.call @sgd.7x11(%0, %1, %2, %lr) : ...
    %p = pipeline.predict %w, %v, %lr steps(2.0) : tensor<7x11xf32>, f32
    // becomes
    %w, %c, %v, %p = func.call @sgd.7x11.adjusted(%0, %1, %2, %lr, %lr) : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineAssignTargets
    : Pass<"pipeline-assign-targets", "::mlir::ModuleOp"> {
  let summary = "Gives every function the target of the devices that run it";
  let description = [{
    A task runs on the devices of its stage, and these have one target
    (`pipeline.device`). The functions that it calls, and those that they call,
    get it as `pipeline.target`. What devices of several targets call is cloned,
    one function per target. A nested module (the replay program) runs the
    functions of the program, whatever its own device is.

    ```mlir
    pipeline.device 0 target(#cpu.target<>)
    pipeline.device 1 target(#cpu.target<threads(2)>)
    // of an update function that stages on both devices call
    func.func private @sgd.7x11(..)
    // becomes
    func.func private @sgd.7x11(..) attributes {pipeline.target = #cpu.target<>}
    func.func private @sgd.7x11_0(..)
        attributes {pipeline.target = #cpu.target<threads(2)>}
    ```
  }];
}

def PipelineLowerSchedule
    : Pass<"pipeline-lower-schedule", "::mlir::ModuleOp"> {
  let summary = "Turn schedules into one function per device";
  let description = [{
    Loops of an order become `scf` loops, entries calls of bufferized functions
    on slots. Tensor functions, orders and bodies of tasks go. A nested module
    (the replay program) is lowered alike and calls the same functions.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelinePrepackWeights
    : Pass<"pipeline-prepack-weights", "::mlir::ModuleOp"> {
  let summary = "Reorders weights once per update, not once per microbatch";
  let description = [{
    Where library calls (`LibraryCallOpInterface`) read a variable as their
    weights several times between two updates or without any, and each would
    reorder them, a variable of role `prepacked` holds them as the
    library likes them. It has as many versions, is read at the same lag, and is
    written by whoever writes the weights. The bits stay the same. Runs on
    bufferized functions that are not called by device functions yet; a nested
    module (the replay program) gets the same variables.

    ```mlir
    %w, .. = func.call @sgd.512x512x3x3(..)
    pipeline.write %w to @w
    // becomes
    %w, .. = func.call @sgd.512x512x3x3(..)
    %p = func.call @prepack.1(%w)
    pipeline.write %p to @w.prepacked
    pipeline.write %w to @w
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let options = [
    Option<"policy", "policy", "::penstock::PrepackPolicy",
           "::penstock::PrepackPolicy::Auto", "Which weights are reordered",
           "::penstock::prepackPolicies()">];
}

def PipelineShareScratch
    : Pass<"pipeline-share-scratch", "::mlir::ModuleOp"> {
  let summary = "Places temporaries and the scratch of library calls together";
  let description = [{
    The scratch of a library call is one more temporary of its kernel, alive at
    the call only. All of them are placed anew in the last argument of the
    kernel, which gets one if it has none. Each call then says how much scratch
    it has and where. Runs once library
    calls are known (`pipeline-select-library`), and before kernels are called.

    ```mlir
    func.func private @f.kernel(%a: memref<2x8x16x24xf32>, .., %s: memref<24576xi8> {pipeline.scratch}) {
      %c0 = arith.constant 0 : index
      %0 = memref.view %s[%c0][] : memref<24576xi8> to memref<2x8x16x24xf32>
      kernel.conv forward %0, .. config(#cpu.conv<tiles_4x4>) : ..
    // becomes, if the call takes 6000 bytes,
    func.func private @f.kernel(%a: memref<2x8x16x24xf32>, .., %s: memref<30592xi8> {pipeline.scratch}) {
      %c0 = arith.constant 0 : index
      %0 = memref.view %s[%c0][] : memref<30592xi8> to memref<2x8x16x24xf32>
      kernel.conv forward %0, .. config(#cpu.conv<tiles_4x4>)
        scratch <6000 at 24576> : ..
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def PipelinePlanMemory : Pass<"pipeline-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every slot its place in the arena of its device";
  let description = [{
    Variables come first, those of one role (and number of versions) side by
    side in the order of the module. The slots of channels and the temporaries
    of kernels follow; from what the device functions do it is known when each
    is in use, and those that never are together may share bytes. Rings become
    as short as the messages of their field allow. Where rings as such leave
    much unused, every message of an update has a place of its own (`places`).
    The temporaries of a kernel have one place on a device, as its library calls
    are prepared for it.
  }];
  let options = [
    Option<"alignment", "alignment", "uint64_t", "64",
           "Alignment of every buffer in bytes, a power of two">,
    Option<"limit", "limit", "uint64_t", "0",
           "Bytes that a device has; 0: no limit">];
}

def PipelineVerifyProgram
    : Pass<"pipeline-verify-program", "::mlir::ModuleOp"> {
  let summary = "Prove that device programs are right: rules S8 and S9";
  let description = [{
    Interprets the device functions of each schedule for several segments: every
    read finds the message or version that it names, nothing is overwritten
    while it is needed or moves, transfers match and end, runs are complete and
    in order. Two devices have the messages and sums between them in one order,
    as a transport without tags needs it (N1 to N3). Then checks that buffers
    which share bytes of the arena are never in use at the same time.

    Rules:
    - **N1**: S7 of device functions: the transfers of a device are one queue,
      in the order of its function.
    - **N2**: what device a sends to device b, over all channels, is what b
      receives of a, in that order.
    - **N3**: the sums of two devices are in one order; a sum is one node of the
      queues of all its devices.
    - **S8**: device functions start, await, fill and read in a right order: a
      read finds the message or version that it names, what is filled is awaited
      first, versions are written in turn, executions are complete and in order,
      transfers match, and nothing is left over. Longer segments than those that
      are executed do the same, with whole periods repeated.
    - **S9**: every slot is aligned and inside the arena of its device; slots,
      temporaries and the scratch of library calls share bytes only where they
      are never in use at the same time; all calls of a kernel with library
      calls have their temporaries at one offset.
    - **S10**: as of `pipeline-verify-schedule`, of what the functions do.
    - **S11**: behind a mark, a device makes the calls that the task states, in
      their order, each once, with the buffers, versions and numbers of each
      position; a message leaves from where the task puts it.
    - **S12**: a norm or an update reads what a group sums only behind the sum
      of its update.
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
