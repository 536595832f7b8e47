//===- Passes.td - Partition passes ------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one function to a function and a task per stage.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PARTITION_PASSES_TD
#define PENSTOCK_PASSES_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelinePartition : Pass<"pipeline-partition", "::mlir::ModuleOp"> {
  let summary = "Cut the forward function into stages";
  let description = [{
    Inserts `pipeline.boundary` ops into the function of the forward task. A cut
    stands between two ONNX nodes of the linear order. With `split-at`, the cuts
    stand after the named nodes or values; else an exact dynamic program
    minimizes the time of the slowest stage under the analytic cost model, on
    the device of each stage.
    A function that has boundaries already is left as it is.

    ```mlir
    %h = linalg.generic ... loc("Relu_1")
    pipeline.boundary 1               // split-at=Relu_1
    %z = linalg.contract ...
    ```

    Remarks say why each cut stands where it does.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "0",
           "Number of stages; 0: one more than the explicit cuts">,
    ListOption<"splitAt", "split-at", "std::string",
               "ONNX nodes or values to cut after, in order">,
    ListOption<"speeds", "speeds", "double",
               "Speed of the device of each stage; none: they are equal">,
    Option<"targets", "targets", "std::string", "\"\"",
           "Target of the device of each stage, in brackets; none: that which "
           "the module is planned for">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineSendParameters
    : Pass<"pipeline-send-parameters", "::mlir::ModuleOp"> {
  let summary = "Gives a parameter that several stages read one owner";
  let description = [{
    For asynchronous methods, after the cut: the first stage that reads a
    trained parameter owns it. Its forward makes a copy of the version that it
    read, which later stages use in the place of the parameter, also in
    expressions of parameters such as a transposition. From there on the copy is
    an activation: it is sent with the microbatch, kept for the backward, and
    its cotangent comes back and is added to the owner's gradient of that
    microbatch. What statistics see cannot come back so: they stay as they are,
    for pipeline-outline-stages to reject.

    ```mlir
    %z = linalg.contract ... ins(%h, %w : ...)   // on stage 1; stage 0 reads %w, too
    // becomes
    %c = linalg.generic {pipeline.sent = @w} ins(%w : ...) ...
    pipeline.boundary 1
    %z = linalg.contract ... ins(%h, %c : ...)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineSeparateReads
    : Pass<"pipeline-separate-reads", "::mlir::ModuleOp"> {
  let summary =
      "Give every reader of a trained parameter an argument of its own";
  let description = [{
    A parameter that several ONNX nodes read becomes as many arguments of the
    function, all of the one variable, with the expressions of parameters in
    between. So each node accumulates a gradient of its own, and the update adds
    them in the order of the nodes: the same sum, to the bit, wherever the model
    is cut. Frozen parameters stay as they are.

    ```mlir
    %w = pipeline.read @w : !w
    func.call @m.forward(%x, %w) : (!x, !w) -> !l         // two nodes read %w
    ```
    becomes
    ```mlir
    %w = pipeline.read @w : !w
    func.call @m.forward(%x, %w, %w) : (!x, !w, !w) -> !l
    ```
  }];
}

def PipelineOutlineStages
    : Pass<"pipeline-outline-stages", "::mlir::ModuleOp"> {
  let summary = "Give each stage its function, its task and its channels";
  let description = [{
    The function of the forward task becomes one function and one task per
    stage. A value that crosses from stage i to stage j gets a channel.
    Constants and expressions of parameters only are cloned into the stages that
    use them. A parameter that several stages read has a copy on each, which
    says whose it is if it trains (`pipeline.parameter`). A result that no stage
    computes, an input or a weight as it is, is copied by the last one.

    ```mlir
    pipeline.task @s0.F forward of @s0(%k) {
      %x = pipeline.take @x : !x    %w1 = pipeline.read @fc1 : !w1
      %h = func.call @s0.forward(%x, %w1) : (!x, !w1) -> !h
      pipeline.put %h to @h : !h }
    ```
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineTieParameters
    : Pass<"pipeline-tie-parameters", "::mlir::ModuleOp"> {
  let summary = "Keep the copies of a parameter on several stages equal";
  let description = [{
    For synchronous training: the copies form a group. Their gradients are
    summed over the stages before every update (see `pipeline-differentiate`),
    and equal updates keep them equal. They are saved once.

    ```mlir
    pipeline.variable @w : !w parameter of @s0 init <"m.onnx", 64, 308>
    pipeline.variable @w.s2 : !w parameter of @s2 init <"m.onnx", 64, 308>
      {pipeline.parameter = @w}
    pipeline.group @w.tied members [[@w], [@w.s2]]
    ```
  }];
}

#endif // PENSTOCK_PASSES_PARTITION_PASSES_TD
