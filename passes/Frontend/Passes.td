//===- Passes.td - Frontend passes -------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an imported ONNX model to linalg on tensors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_PASSES_TD
#define PENSTOCK_PASSES_FRONTEND_PASSES_TD

include "mlir/Pass/PassBase.td"

def OnnxResolveShapes : Pass<"onnx-resolve-shapes", "::mlir::ModuleOp"> {
  let summary = "Infer the types of all nodes, and fold shape arithmetic";
  let description = [{
    From the static types of the function's arguments. Nodes whose operands are
    constant become constants, so that shapes computed by the model (Shape,
    Gather, Concat, ..., Reshape) are known. All unsupported nodes are reported
    at once.

    ```mlir
    %a = onnx.node "MatMul"(%x, %w) since 13
       : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<*xf32>
    ```
    becomes
    ```mlir
    %a = onnx.node "MatMul"(%x, %w) since 13
       : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<5x11xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::penstock::onnx::OnnxDialect",
                           "::penstock::pipeline::PipelineDialect"];
}

def OnnxAttachLoss : Pass<"onnx-attach-loss", "::mlir::ModuleOp"> {
  let summary = "Append the loss to the model";
  let description = [{
    The function ends in the loss, which its task puts into a channel with the
    sink `loss`. Labels come from a new channel with the source `labels`. Nodes,
    inputs and variables that do not reach the loss are dropped. A module that
    has such a sink already is left alone.

    A Softmax or LogSoftmax over the class axis that directly gives the input of
    `softmax-cross-entropy`, or a Sigmoid that of `bce-with-logits`, is folded
    into the loss, with a remark.

    ```mlir
    return %z : tensor<5x3xf32>
    ```
    becomes
    ```mlir
    %l = onnx.node "SoftmaxCrossEntropyLoss"(%z, %labels) since 13
       {reduction = "mean"} : (tensor<5x3xf32>, tensor<5xi64>) -> tensor<f32>
    return %l : tensor<f32>
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", /*default=*/"\"output\"",
           "softmax-cross-entropy, bce-with-logits, mse, or output: the "
           "model's own scalar">,
    Option<"lossInput", "loss-input", "std::string", /*default=*/"",
           "Name of the output that enters the loss, if there are several">,
    Option<"classAxis", "class-axis", "int64_t", /*default=*/"-1",
           "Axis of the classes; negative: counted from the end">,
    Option<"ignoreLabel", "ignore-label", "std::string", /*default=*/"",
           "Label (an integer) that is left out of the mean">,
    Option<"labelSmoothing", "label-smoothing", "double", /*default=*/"0.0",
           "Part of the target that is spread over all classes">,
    ListOption<"classWeights", "class-weights", "double",
               "How much each class counts (default: all the same)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::penstock::onnx::OnnxDialect",
                           "::penstock::pipeline::PipelineDialect"];
}

def OnnxAttachOutputs : Pass<"onnx-attach-outputs", "::mlir::ModuleOp"> {
  let summary = "Let every output of the model leave through a sink";
  let description = [{
    For programs that infer. The task puts each result of the model's function
    into a channel whose sink has the output's name, and all variables are
    frozen. A module that has a sink already is left alone.

    ```mlir
    func.call @mlp.forward(%x, %w) : (!x, !w) -> ()
    ```
    becomes
    ```mlir
    %0 = func.call @mlp.forward(%x, %w) : (!x, !w) -> !z
    pipeline.put %0 to @z : !z
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::penstock::pipeline::PipelineDialect"];
}

def OnnxBoundInputs : Pass<"onnx-bound-inputs", "::mlir::ModuleOp"> {
  let summary = "Say which integers the inputs may hold";
  let description = [{
    Labels name a class or are ignored, indices of a Gather a position of its
    axis. Where an input goes there unchanged, its channel says so, and the
    program checks the data before it starts.

    ```mlir
    pipeline.channel @labels : [tensor<5xi64>] source(labels)
    ```
    becomes
    ```mlir
    pipeline.channel @labels : [tensor<5xi64>] source(labels)
      {pipeline.range = #pipeline.range<0 to 3 or -100>}
    ```
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def RaiseComposites : Pass<"raise-composites", "::mlir::ModuleOp"> {
  let summary = "Nodes that an exporter took apart become the operator again";
  let description = [{
    Layer and root mean square norm written as means, differences and roots, the
    error function form of GELU and x * sigmoid(x) become one node each, where
    they mean exactly that: same operand throughout, trailing axes that agree,
    constants that f32 cannot tell from the formula's. The derivative of the
    whole is stabler, and the backward keeps less. Scale and bias stay nodes.

    ```mlir
    %s = onnx.node "Sigmoid"(%x) since 13 : (tensor<5xf32>) -> tensor<5xf32>
    %y = onnx.node "Mul"(%x, %s) since 14
       : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
    ```
    becomes
    ```mlir
    %y = onnx.node "QuickGelu"(%x) since 1 domain "com.microsoft" {alpha = 1.0 : f32}
       : (tensor<5xf32>) -> tensor<5xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::penstock::onnx::OnnxDialect"];
}

def ConvertOnnxToGraph : Pass<"convert-onnx-to-graph", "::mlir::ModuleOp"> {
  let summary = "Lower ONNX nodes to linalg, tensor, arith, math and nn";
  let description = [{
    Replaces every `onnx.node` by what the operator table emits for it; what is
    computed for a node has the node's location. Contractions become
    `linalg.contract` with transposes in the maps, everything elementwise and
    every reduction a `linalg.generic` whose maps are projected permutations;
    softmax, log-softmax and the cross-entropy stay composite. Nodes without an
    entry are listed in one error.

    ```mlir
    %y = onnx.node "Relu"(%x) since 14 : (tensor<5x7xf32>) -> tensor<5x7xf32>
    ```
    becomes
    ```mlir
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<5x7xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%x : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
      ^bb0(%a: f32, %o: f32):
        %r = arith.maximumf %a, %zero : f32
        linalg.yield %r : f32 } -> tensor<5x7xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect",
                           "::penstock::nn::NnDialect"];
}

def FoldTransposes : Pass<"fold-transposes", "::mlir::ModuleOp"> {
  let summary = "Transposes of a product's operands and result become its maps";
  let description = [{
    A transpose before or after a `linalg.contract` disappears into its maps,
    where the library still computes the product and both of its derivatives.
    To get there it moves below elementwise ops all of whose inputs are
    transposed alike, and above a reshape that another transpose precedes; an
    elementwise op moves above a reshape of another one, so that both become one
    loop. The names of transposes that disappear go to what computes their
    operand. Runs before the model is cut.

    ```mlir
    %w = linalg.transpose ins(%weight : tensor<11x7xf32>)
         outs(%e : tensor<7x11xf32>) permutation = [1, 0]
    %y = linalg.contract indexing_maps = [#mk, #kn, #mn]
         ins(%x, %w : tensor<5x7xf32>, tensor<7x11xf32>)
         outs(%zeros : tensor<5x11xf32>) -> tensor<5x11xf32>
    ```
    becomes
    ```mlir
    %y = linalg.contract indexing_maps = [#mk, #nk, #mn]
         ins(%x, %weight : tensor<5x7xf32>, tensor<11x7xf32>)
         outs(%zeros : tensor<5x11xf32>) -> tensor<5x11xf32>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // PENSTOCK_PASSES_FRONTEND_PASSES_TD
