// RUN: penstock-opt %s -split-input-file --convert-onnx-to-graph | FileCheck %s

// Transposes are in the maps; alpha, beta and the bias are one generic after.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @gemm
// CHECK-SAME: (%[[X:.*]]: tensor<7x5xf32>, %[[W:.*]]: tensor<3x7xf32>, %[[BIAS:.*]]: tensor<3xf32>)
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[P:.*]] = linalg.contract indexing_maps = [#[[$A]], #[[$B]], #[[$C]]] ins(%[[X]], %[[W]] : tensor<7x5xf32>, tensor<3x7xf32>) outs(%[[ZEROS]] : tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK: %[[ALPHA:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[BIAS]] : tensor<5x3xf32>, tensor<3xf32>)
// CHECK-NEXT: ^bb0(%[[PE:.*]]: f32, %[[BE:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[S:.*]] = arith.mulf %[[ALPHA]], %[[PE]] : f32
// CHECK-NEXT: arith.addf %[[S]], %[[BE]] : f32
func.func @gemm(%x: tensor<7x5xf32>, %w: tensor<3x7xf32>, %b: tensor<3xf32>) -> tensor<5x3xf32> {
  %y = onnx.node "Gemm"(%x, %w, %b) since 13 {alpha = 0.5 : f32, transA = 1, transB = 1} : (tensor<7x5xf32>, tensor<3x7xf32>, tensor<3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

// Without a bias and with alpha 1 there is nothing but the contraction.
// CHECK-LABEL: @gemm_plain
// CHECK: %[[P:.*]] = linalg.contract
// CHECK-NEXT: return %[[P]]
func.func @gemm_plain(%x: tensor<5x7xf32>, %w: tensor<7x3xf32>) -> tensor<5x3xf32> {
  %y = onnx.node "Gemm"(%x, %w) since 11 : (tensor<5x7xf32>, tensor<7x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

// Many rows against one matrix are one matrix product.
// CHECK-LABEL: @matmul_rows
// CHECK: %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<2x5x7xf32> into tensor<10x7xf32>
// CHECK: %[[P:.*]] = linalg.contract {{.*}} ins(%[[X]], %{{.*}} : tensor<10x7xf32>, tensor<7x3xf32>) outs(%{{.*}} : tensor<10x3xf32>)
// CHECK: tensor.expand_shape %[[P]] {{\[\[}}0, 1], [2]] output_shape [2, 5, 3] : tensor<10x3xf32> into tensor<2x5x3xf32>
func.func @matmul_rows(%x: tensor<2x5x7xf32>, %w: tensor<7x3xf32>) -> tensor<2x5x3xf32> {
  %y = onnx.node "MatMul"(%x, %w) since 13 : (tensor<2x5x7xf32>, tensor<7x3xf32>) -> tensor<2x5x3xf32>
  return %y : tensor<2x5x3xf32>
}

// -----

// Leading axes broadcast: an operand's map lacks those along which it repeats.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4, d3)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: @matmul_batched
// CHECK: %[[X:.*]] = tensor.collapse_shape %{{.*}} : tensor<2x1x5x7xf32> into tensor<2x5x7xf32>
// CHECK: linalg.contract indexing_maps = [#[[$A]], #[[$B]], #[[$C]]] ins(%[[X]], %{{.*}} : tensor<2x5x7xf32>, tensor<4x7x3xf32>)
func.func @matmul_batched(%x: tensor<2x1x5x7xf32>, %w: tensor<4x7x3xf32>) -> tensor<2x4x5x3xf32> {
  %y = onnx.node "MatMul"(%x, %w) since 9 : (tensor<2x1x5x7xf32>, tensor<4x7x3xf32>) -> tensor<2x4x5x3xf32>
  return %y : tensor<2x4x5x3xf32>
}

// -----

// A vector is a matrix of one row or column.
// CHECK-LABEL: @matmul_vectors
// CHECK-DAG: tensor.expand_shape %{{.*}} : tensor<7xf32> into tensor<1x7xf32>
// CHECK-DAG: tensor.expand_shape %{{.*}} : tensor<7xf32> into tensor<7x1xf32>
// CHECK: linalg.contract
// CHECK: tensor.collapse_shape %{{.*}} [] : tensor<1x1xf32> into tensor<f32>
func.func @matmul_vectors(%x: tensor<7xf32>, %w: tensor<7xf32>) -> tensor<f32> {
  %y = onnx.node "MatMul"(%x, %w) since 1 : (tensor<7xf32>, tensor<7xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
