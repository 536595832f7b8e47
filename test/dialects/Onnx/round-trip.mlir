// RUN: penstock-opt %s | penstock-opt | FileCheck %s

// CHECK: module attributes {onnx.constant_initializers = ["w"], onnx.unreached_initializers = ["v"], onnx.unused_inputs = ["x", "y"]}
module attributes {onnx.constant_initializers = ["w"], onnx.unreached_initializers = ["v"], onnx.unused_inputs = ["x", "y"]} {

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

// CHECK-LABEL: func @attributes
// CHECK-SAME: -> (tensor<5xf32> {onnx.output = "y"}) attributes {onnx.rebound_batch = 5 : i64}
func.func @attributes(%x: tensor<5xf32>) -> (tensor<5xf32> {onnx.output = "y"}) attributes {onnx.rebound_batch = 5} {
  // CHECK: onnx.node "Relu"(%{{.*}}) since 14 attributes {onnx.branch} : (tensor<5xf32>)
  %0 = onnx.node "Relu"(%x) since 14 attributes {onnx.branch} : (tensor<5xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// CHECK-LABEL: func @loop
func.func @loop(%m: tensor<i64>, %x: tensor<5xf32>) -> (tensor<5xf32>, tensor<?x5xf32>) {
  %none = onnx.absent
  // CHECK:      %[[ALL:.*]]:2 = onnx.loop(%{{.*}}, %{{.*}}, %{{.*}}) scans [0] reversed [true] {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<i64>, %[[C:.*]]: tensor<i1>, %{{.*}}: tensor<5xf32>):
  // CHECK:        onnx.yield %[[C]], %[[H:.*]], %[[H]] : tensor<i1>, tensor<5xf32>, tensor<5xf32>
  // CHECK-NEXT: } : (tensor<i64>, none, tensor<5xf32>) -> (tensor<5xf32>, tensor<?x5xf32>)
  %0:2 = onnx.loop(%m, %none, %x) scans [0] reversed [true] {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %s: tensor<5xf32>):
    %1 = onnx.node "Tanh"(%s) since 13 : (tensor<5xf32>) -> tensor<5xf32>
    onnx.yield %c, %1, %1 : tensor<i1>, tensor<5xf32>, tensor<5xf32>
  } : (tensor<i64>, none, tensor<5xf32>) -> (tensor<5xf32>, tensor<?x5xf32>)
  return %0#0, %0#1 : tensor<5xf32>, tensor<?x5xf32>
}

}
