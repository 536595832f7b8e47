//===- Passes.td - Frontend passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an imported ONNX model to linalg on tensors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_PASSES_TD
#define PENSTOCK_PASSES_FRONTEND_PASSES_TD

include "mlir/Pass/PassBase.td"

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

#endif // PENSTOCK_PASSES_FRONTEND_PASSES_TD
