// RUN: penstock-opt %s --convert-onnx-to-graph --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Everything that is computed for a node has the node's location, by which
// cuts and diagnostics name it; absent operands are gone.
// CHECK-LABEL: @forward
// CHECK-NOT: onnx.
// CHECK: linalg.contract {{.*}} loc("fc1/Gemm")
// CHECK: linalg.generic
// CHECK: arith.addf {{.*}} loc("fc1/Gemm")
// CHECK: } -> tensor<5x3xf32> loc("fc1/Gemm")
// CHECK: tensor.empty() : tensor<5x3xf32> loc("relu1")
// CHECK: arith.maximumf {{.*}} loc("relu1")
// CHECK: tensor.collapse_shape {{.*}} loc("squash")
func.func @forward(%x: tensor<5x7xf32>, %w: tensor<7x3xf32>, %b: tensor<3xf32>) -> tensor<15xf32> {
  %y = onnx.node "Gemm"(%x, %w, %b) since 13 : (tensor<5x7xf32>, tensor<7x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc("fc1/Gemm")
  %r = onnx.node "Relu"(%y) since 14 : (tensor<5x3xf32>) -> tensor<5x3xf32> loc("relu1")
  %none = onnx.absent
  %c = onnx.node "Clip"(%r, %none, %none) since 13 : (tensor<5x3xf32>, none, none) -> tensor<5x3xf32> loc("clip")
  %s = onnx.node "Constant"() since 13 {value_ints = array<i64: -1>} : () -> tensor<1xi64> loc("shape")
  %f = onnx.node "Reshape"(%c, %s) since 14 : (tensor<5x3xf32>, tensor<1xi64>) -> tensor<15xf32> loc("squash")
  return %f : tensor<15xf32>
}
