// RUN: penstock-opt %s -split-input-file --convert-onnx-to-graph --mlir-print-debuginfo=false | FileCheck %s

// An axis that one operand lacks is missing from its map.
// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: @add
// CHECK-SAME: (%[[A:.*]]: tensor<5x7xf32>, %[[B:.*]]: tensor<7xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<5x7xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]], iterator_types = ["parallel", "parallel"]} ins(%[[A]], %[[B]] : tensor<5x7xf32>, tensor<7xf32>) outs(%[[E]] : tensor<5x7xf32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[X]], %[[Y]] : f32
// CHECK-NEXT: linalg.yield %[[S]] : f32
func.func @add(%a: tensor<5x7xf32>, %b: tensor<7xf32>) -> tensor<5x7xf32> {
  %y = onnx.node "Add"(%a, %b) since 14 : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// -----

// An axis of size 1 that is repeated is collapsed, so that the map is a
// projected permutation; one that is 1 in the result as well stays.
// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @sub
// CHECK-DAG: %[[X:.*]] = tensor.collapse_shape %arg0 {{.*}} : tensor<1x1x5xf32> into tensor<1x5xf32>
// CHECK-DAG: %[[Y:.*]] = tensor.collapse_shape %arg1 {{.*}} : tensor<3x1x1xf32> into tensor<3x1xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$A]], #[[$B]], #[[$ID]]]
// CHECK-SAME: ins(%[[X]], %[[Y]] :
// CHECK: arith.subf
func.func @sub(%a: tensor<1x1x5xf32>, %b: tensor<3x1x1xf32>) -> tensor<3x1x5xf32> {
  %y = onnx.node "Sub"(%a, %b) since 7 : (tensor<1x1x5xf32>, tensor<3x1x1xf32>) -> tensor<3x1x5xf32>
  return %y : tensor<3x1x5xf32>
}

// -----

// CHECK-LABEL: @integers
// CHECK: arith.muli
// CHECK: arith.divsi
func.func @integers(%a: tensor<5xi32>, %b: tensor<5xi32>) -> tensor<5xi32> {
  %m = onnx.node "Mul"(%a, %b) since 14 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
  %d = onnx.node "Div"(%m, %b) since 14 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
  return %d : tensor<5xi32>
}

// -----

// One generic each; constants stand before it.
// CHECK-LABEL: @activations
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: linalg.generic
// CHECK: arith.maximumf %{{.*}}, %[[ZERO]] : f32
// CHECK: linalg.generic
// CHECK: arith.cmpf olt
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK: math.tanh
// CHECK: linalg.generic
// CHECK: arith.negf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.divf
func.func @activations(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = onnx.node "Relu"(%x) since 14 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = onnx.node "LeakyRelu"(%0) since 16 {alpha = 0.25 : f32} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %2 = onnx.node "Tanh"(%1) since 13 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %3 = onnx.node "Sigmoid"(%2) since 6 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %3 : tensor<3x5xf32>
}

// -----

// CHECK-LABEL: @scalar_functions
// CHECK: arith.negf
// CHECK: math.sqrt
// CHECK: math.exp
// CHECK: math.log
func.func @scalar_functions(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0 = onnx.node "Neg"(%x) since 13 : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %1 = onnx.node "Sqrt"(%0) since 6 : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %2 = onnx.node "Exp"(%1) since 13 : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %3 = onnx.node "Log"(%2) since 6 : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %3 : tensor<3x5xf64>
}

// -----

// CHECK-LABEL: @cast
// CHECK: arith.sitofp %{{.*}} : i64 to f32
// CHECK: arith.cmpf une
func.func @cast(%x: tensor<3xi64>) -> tensor<3xi1> {
  %0 = onnx.node "Cast"(%x) since 13 {to = 1} : (tensor<3xi64>) -> tensor<3xf32>
  %1 = onnx.node "Cast"(%0) since 19 {to = 9} : (tensor<3xf32>) -> tensor<3xi1>
  return %1 : tensor<3xi1>
}
