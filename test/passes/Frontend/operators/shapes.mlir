// RUN: penstock-opt %s -split-input-file --convert-onnx-to-graph | FileCheck %s

// 0 copies an axis and -1 takes the rest; what neither collapses nor expands
// goes through one axis.
// CHECK-LABEL: @reshape
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1, 2]] : tensor<2x3x5xf32> into tensor<30xf32>
// CHECK: tensor.expand_shape %[[FLAT]] {{\[\[}}0, 1, 2]] output_shape [2, 5, 3] : tensor<30xf32> into tensor<2x5x3xf32>
func.func @reshape(%x: tensor<2x3x5xf32>) -> tensor<2x5x3xf32> {
  %shape = arith.constant dense<[0, -1, 3]> : tensor<3xi64>
  %y = onnx.node "Reshape"(%x, %shape) since 14 : (tensor<2x3x5xf32>, tensor<3xi64>) -> tensor<2x5x3xf32>
  return %y : tensor<2x5x3xf32>
}

// -----

// CHECK-LABEL: @flatten
// CHECK: tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : tensor<2x3x5xf32> into tensor<2x15xf32>
func.func @flatten(%x: tensor<2x3x5xf32>) -> tensor<2x15xf32> {
  %y = onnx.node "Flatten"(%x) since 13 : (tensor<2x3x5xf32>) -> tensor<2x15xf32>
  return %y : tensor<2x15xf32>
}

// -----

// CHECK-LABEL: @squeeze
// CHECK: tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2]] : tensor<1x3x5xf32> into tensor<3x5xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [3, 5, 1] : tensor<3x5xf32> into tensor<3x5x1xf32>
func.func @squeeze(%x: tensor<1x3x5xf32>) -> tensor<3x5x1xf32> {
  %axes = onnx.node "Constant"() since 13 {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %s = onnx.node "Squeeze"(%x, %axes) since 13 : (tensor<1x3x5xf32>, tensor<1xi64>) -> tensor<3x5xf32>
  %y = onnx.node "Unsqueeze"(%s) since 11 {axes = array<i64: -1>} : (tensor<3x5xf32>) -> tensor<3x5x1xf32>
  return %y : tensor<3x5x1xf32>
}

// -----

// CHECK-LABEL: @transpose
// CHECK: linalg.transpose ins(%arg0 : tensor<2x3x5xf32>) outs(%{{.*}} : tensor<5x2x3xf32>) permutation = [2, 0, 1]
// CHECK: linalg.transpose {{.*}} permutation = [2, 1, 0]
func.func @transpose(%x: tensor<2x3x5xf32>) -> tensor<3x2x5xf32> {
  %t = onnx.node "Transpose"(%x) since 13 {perm = array<i64: 2, 0, 1>} : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %i = onnx.node "Identity"(%t) since 16 : (tensor<5x2x3xf32>) -> tensor<5x2x3xf32>
  %y = onnx.node "Transpose"(%i) since 1 : (tensor<5x2x3xf32>) -> tensor<3x2x5xf32>
  return %y : tensor<3x2x5xf32>
}

// -----

// The chain that exporters write to flatten all but the batch: it folds.
// CHECK-LABEL: @computed_shape
// CHECK: tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : tensor<2x3x5xf32> into tensor<2x15xf32>
// CHECK-NEXT: return
func.func @computed_shape(%x: tensor<2x3x5xf32>) -> tensor<2x15xf32> {
  %zero = onnx.node "Constant"() since 13 {value_int = 0} : () -> tensor<i64>
  %rest = onnx.node "Constant"() since 13 {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %axes = onnx.node "Constant"() since 13 {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %s = onnx.node "Shape"(%x) since 15 : (tensor<2x3x5xf32>) -> tensor<3xi64>
  %n = onnx.node "Gather"(%s, %zero) since 13 {axis = 0} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %u = onnx.node "Unsqueeze"(%n, %axes) since 13 : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %c = onnx.node "Concat"(%u, %rest) since 13 {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = onnx.node "Reshape"(%x, %c) since 14 : (tensor<2x3x5xf32>, tensor<2xi64>) -> tensor<2x15xf32>
  return %y : tensor<2x15xf32>
}

// -----

// CHECK-LABEL: @constants
// CHECK-DAG: arith.constant dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf32>
// CHECK-DAG: arith.constant dense<3.000000e+00> : tensor<f32>
// CHECK-DAG: arith.constant dense<[0, 2, 4]> : tensor<3xi64>
func.func @constants() -> (tensor<2xf32>, tensor<f32>, tensor<3xi64>) {
  %a = onnx.node "Constant"() since 12 {value_floats = array<f32: 1.0, 2.5>} : () -> tensor<2xf32>
  %b = onnx.node "Constant"() since 12 {value_float = 3.0 : f32} : () -> tensor<f32>
  %first = arith.constant dense<0> : tensor<i64>
  %limit = arith.constant dense<5> : tensor<i64>
  %delta = arith.constant dense<2> : tensor<i64>
  %c = onnx.node "Range"(%first, %limit, %delta) since 11 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xi64>
  return %a, %b, %c : tensor<2xf32>, tensor<f32>, tensor<3xi64>
}
