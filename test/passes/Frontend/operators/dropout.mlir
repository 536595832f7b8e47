// RUN: penstock-opt %s --convert-onnx-to-graph | FileCheck %s

// Each dropout has a salt of its own: nodes of one name draw different masks,
// and what a node draws does not depend on those behind it.

// CHECK-LABEL: func.func @alone
// CHECK:         nn.dropout %{{.*}} ratio(2.500000e-01) node(-1448768116)
func.func @alone(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %a = onnx.node "Dropout"(%x) since 7 {ratio = 0.25 : f32} : (tensor<3x5xf32>) -> tensor<3x5xf32> loc("drop")
  return %a : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @equal
// CHECK:         nn.dropout %{{.*}} ratio(2.500000e-01) node(-1448768116)
// CHECK:         nn.dropout %{{.*}} ratio(2.500000e-01) node(-1448768115)
// CHECK:         nn.dropout %{{.*}} ratio(2.500000e-01) node(-1448768114)
func.func @equal(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %a = onnx.node "Dropout"(%x) since 7 {ratio = 0.25 : f32} : (tensor<3x5xf32>) -> tensor<3x5xf32> loc("drop")
  %b = onnx.node "Dropout"(%a) since 7 {ratio = 0.25 : f32} : (tensor<3x5xf32>) -> tensor<3x5xf32> loc("drop")
  %c = onnx.node "Dropout"(%b) since 7 {ratio = 0.25 : f32} : (tensor<3x5xf32>) -> tensor<3x5xf32> loc("drop")
  return %c : tensor<3x5xf32>
}

// A ratio of 0 drops nothing, whatever the mode.
// CHECK-LABEL: func.func @never
// CHECK-NOT:     nn.dropout
func.func @never(%x: tensor<3x5xf32>, %mode: tensor<i1>) -> tensor<3x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %a = onnx.node "Dropout"(%x, %zero, %mode) since 13 : (tensor<3x5xf32>, tensor<f32>, tensor<i1>) -> tensor<3x5xf32>
  return %a : tensor<3x5xf32>
}
