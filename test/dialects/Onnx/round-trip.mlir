// RUN: penstock-opt %s | penstock-opt | FileCheck %s

// CHECK-LABEL: func @nodes
func.func @nodes(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  // CHECK: onnx.node "LeakyRelu"(%{{.*}}) since 16 {alpha = 1.000000e-01 : f32} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %0 = onnx.node "LeakyRelu"(%x) since 16 {alpha = 0.1 : f32} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  // CHECK: %[[NONE:.*]] = onnx.absent
  %none = onnx.absent
  // CHECK: onnx.node "Clip"(%{{.*}}, %[[NONE]]) since 13 : (tensor<5x7xf32>, none) -> tensor<5x7xf32>
  %1 = onnx.node "Clip"(%0, %none) since 13 : (tensor<5x7xf32>, none) -> tensor<5x7xf32>
  // CHECK: onnx.node "Gelu"(%{{.*}}) since 1 domain "com.microsoft" : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %2 = onnx.node "Gelu"(%1) since 1 domain "com.microsoft" : (tensor<5x7xf32>) -> tensor<5x7xf32>
  return %2 : tensor<5x7xf32>
}
