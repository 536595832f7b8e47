// RUN: penstock-opt %s -split-input-file --convert-onnx-to-graph | FileCheck %s

// CHECK-DAG: #[[$IN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$OUT:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: @sum
// CHECK: linalg.generic {indexing_maps = [#[[$IN]], #[[$OUT]]], iterator_types = ["reduction", "parallel", "reduction"]}
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK-NEXT: arith.addf %[[ACC]], %[[X]] : f32
// CHECK: tensor.expand_shape %{{.*}} : tensor<3xf32> into tensor<1x3x1xf32>
func.func @sum(%x: tensor<2x3x5xf32>) -> tensor<1x3x1xf32> {
  %axes = arith.constant dense<[0, -1]> : tensor<2xi64>
  %y = onnx.node "ReduceSum"(%x, %axes) since 13 : (tensor<2x3x5xf32>, tensor<2xi64>) -> tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

// -----

// The axes were an attribute before; the mean divides by their sizes.
// CHECK-LABEL: @mean
// CHECK: iterator_types = ["parallel", "reduction", "reduction"]
// CHECK: %[[N:.*]] = arith.constant 1.500000e+01 : f32
// CHECK: arith.divf %{{.*}}, %[[N]] : f32
// CHECK-NOT: tensor.expand_shape
func.func @mean(%x: tensor<2x3x5xf32>) -> tensor<2xf32> {
  %y = onnx.node "ReduceMean"(%x) since 13 {axes = array<i64: 1, 2>, keepdims = 0} : (tensor<2x3x5xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// CHECK-LABEL: @no_axes
// CHECK-NEXT: return %arg0
func.func @no_axes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %none = onnx.absent
  %y = onnx.node "ReduceMean"(%x, %none) since 18 {noop_with_empty_axes = 1} : (tensor<2x3xf32>, none) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
