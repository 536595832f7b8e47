// RUN: penstock-opt %s --pass-pipeline='builtin.module(func.func(pipeline-narrow-products))' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#id4 = affine_map<(n, c, i, j) -> (n, c, i, j)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Factors that were bf16 are multiplied as that, and added up in f32.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[A:.*]]: tensor<5x7xbf16>, %[[B:.*]]: tensor<7x11xbf16>, %[[C:.*]]: tensor<5x11xf32>)
// CHECK-NOT: arith.extf
// CHECK: %[[P:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[B]] : tensor<5x7xbf16>, tensor<7x11xbf16>) outs(%[[C]] : tensor<5x11xf32>) -> tensor<5x11xf32>
// CHECK-NEXT: return %[[P]]
func.func @product(%a: tensor<5x7xbf16>, %b: tensor<7x11xbf16>, %c: tensor<5x11xf32>) -> tensor<5x11xf32> attributes {pipeline.target = #cuda.target<"emulated">} {
  %ea = tensor.empty() : tensor<5x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<5x7xbf16>) outs(%ea : tensor<5x7xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %w = arith.extf %i : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<5x7xf32>
  %eb = tensor.empty() : tensor<7x11xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<7x11xbf16>) outs(%eb : tensor<7x11xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %w = arith.extf %i : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<7x11xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %y : tensor<5x7xf32>, tensor<7x11xf32>) outs(%c : tensor<5x11xf32>) -> tensor<5x11xf32>
  return %p : tensor<5x11xf32>
}

// A CPU multiplies f32, and one rounded factor is not enough.
// CHECK-LABEL: func.func @cpu
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<5x7xf32>, tensor<7x11xf32>)
func.func @cpu(%a: tensor<5x7xbf16>, %b: tensor<7x11xf32>, %c: tensor<5x11xf32>) -> tensor<5x11xf32> attributes {pipeline.target = #cpu.target<>} {
  %ea = tensor.empty() : tensor<5x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<5x7xbf16>) outs(%ea : tensor<5x7xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %w = arith.extf %i : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<5x7xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %b : tensor<5x7xf32>, tensor<7x11xf32>) outs(%c : tensor<5x11xf32>) -> tensor<5x11xf32>
  return %p : tensor<5x11xf32>
}

// The gradient of weights is computed by itself, and added to what is there.
// CHECK-LABEL: func.func @weight_grad(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x5xbf16>, %[[DY:.*]]: tensor<2x4x5x5xbf16>, %[[G:.*]]: tensor<4x3x3x3xf32>)
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<4x3x3x3xbf16>
// CHECK: %[[D:.*]] = nn.conv_weight_grad %[[X]], %[[DY]] outs(%[[Z]])
// CHECK: linalg.generic {{.*}} ins(%[[D]] : tensor<4x3x3x3xbf16>) outs(%[[G]] : tensor<4x3x3x3xf32>)
// CHECK: arith.extf
// CHECK: arith.addf
func.func @weight_grad(%a: tensor<2x3x5x5xbf16>, %b: tensor<2x4x5x5xbf16>, %g: tensor<4x3x3x3xf32>) -> tensor<4x3x3x3xf32> attributes {pipeline.target = #cuda.target<"emulated">} {
  %ea = tensor.empty() : tensor<2x3x5x5xf32>
  %x = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%a : tensor<2x3x5x5xbf16>) outs(%ea : tensor<2x3x5x5xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %w = arith.extf %i : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<2x3x5x5xf32>
  %eb = tensor.empty() : tensor<2x4x5x5xf32>
  %y = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%b : tensor<2x4x5x5xbf16>) outs(%eb : tensor<2x4x5x5xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %w = arith.extf %i : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<2x4x5x5xf32>
  %d = nn.conv_weight_grad %x, %y outs(%g) strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) : tensor<2x3x5x5xf32>, tensor<2x4x5x5xf32>, tensor<4x3x3x3xf32> -> tensor<4x3x3x3xf32>
  return %d : tensor<4x3x3x3xf32>
}
