// RUN: penstock-opt %s --fold-transposes --split-input-file | FileCheck %s
// RUN: penstock-opt %s --fold-transposes --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=NAMES

// CHECK-DAG: #[[$MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @operand(
// CHECK-SAME:    %[[X:.*]]: tensor<5x7xf32>, %[[W:.*]]: tensor<11x7xf32>, %[[C:.*]]: tensor<5x11xf32>
// CHECK-NEXT:    linalg.contract indexing_maps = [#[[$MK]], #[[$NK]], #[[$MN]]] ins(%[[X]], %[[W]] : {{.*}}) outs(%[[C]] :
func.func @operand(%x: tensor<5x7xf32>, %w: tensor<11x7xf32>, %c: tensor<5x11xf32>) -> tensor<5x11xf32> {
  %e = tensor.empty() : tensor<7x11xf32>
  %t = linalg.transpose ins(%w : tensor<11x7xf32>) outs(%e : tensor<7x11xf32>) permutation = [1, 0]
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %t : tensor<5x7xf32>, tensor<7x11xf32>) outs(%c : tensor<5x11xf32>) -> tensor<5x11xf32>
  return %y : tensor<5x11xf32>
}

// The library has no f64: contiguous loops are better.
// CHECK-LABEL: func.func @double(
// CHECK:         linalg.transpose
func.func @double(%x: tensor<5x7xf64>, %w: tensor<11x7xf64>, %c: tensor<5x11xf64>) -> tensor<5x11xf64> {
  %e = tensor.empty() : tensor<7x11xf64>
  %t = linalg.transpose ins(%w : tensor<11x7xf64>) outs(%e : tensor<7x11xf64>) permutation = [1, 0]
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %t : tensor<5x7xf64>, tensor<7x11xf64>) outs(%c : tensor<5x11xf64>) -> tensor<5x11xf64>
  return %y : tensor<5x11xf64>
}

// -----

// Heads of attention: scaled, transposed twice around a reshape; the result is
// written by tokens. No transpose is left, and the bias and the scale meet.
// CHECK-DAG: #[[$Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[$K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK-DAG: #[[$S:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#q = affine_map<(b, h, s, t, d) -> (b, h, s, d)>
#k = affine_map<(b, h, s, t, d) -> (b, h, d, t)>
#s = affine_map<(b, h, s, t, d) -> (b, h, s, t)>
#v = affine_map<(b, h, s, d, t) -> (b, h, t, d)>
#p = affine_map<(b, h, s, d, t) -> (b, h, s, t)>
#o = affine_map<(b, h, s, d, t) -> (b, h, s, d)>
#id4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#none4 = affine_map<(a, b, c, d) -> ()>
#id3 = affine_map<(a, b, c) -> (a, b, c)>
#last3 = affine_map<(a, b, c) -> (c)>
#one = affine_map<(a) -> (a)>

// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    %[[X:.*]]: tensor<2x5x21xf32>, %[[KEYS:.*]]: tensor<2x5x3x7xf32>
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[BIASED:.*]] = linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<2x5x21xf32>, tensor<21xf32>)
// CHECK:         %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[BIASED]], %{{.*}} : tensor<2x5x21xf32>, tensor<f32>)
// CHECK:         %[[QUERIES:.*]] = tensor.expand_shape %[[SCALED]]
// CHECK:         linalg.contract indexing_maps = [#[[$Q]], #[[$K]], #[[$S]]] ins(%[[QUERIES]], %[[KEYS]] :
// CHECK:         %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<2x5x3x7xf32>
// CHECK:         %[[R:.*]] = linalg.contract {{.*}} outs(%[[ZEROS]] : tensor<2x5x3x7xf32>)
// CHECK-NOT:     linalg.transpose
// CHECK:         return %[[R]]
func.func @attention(%x: tensor<2x5x21xf32>, %keys: tensor<2x5x3x7xf32>, %values: tensor<2x3x5x7xf32>, %bias: tensor<21xf32>, %scale: tensor<f32>) -> tensor<2x5x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x5x21xf32>
  %biased = linalg.generic {indexing_maps = [#id3, #last3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %bias : tensor<2x5x21xf32>, tensor<21xf32>) outs(%e0 : tensor<2x5x21xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2x5x21xf32>
  %split = tensor.expand_shape %biased [[0], [1], [2, 3]] output_shape [2, 5, 3, 7] : tensor<2x5x21xf32> into tensor<2x5x3x7xf32>
  %e1 = tensor.empty() : tensor<2x3x5x7xf32>
  %queries = linalg.transpose ins(%split : tensor<2x5x3x7xf32>) outs(%e1 : tensor<2x3x5x7xf32>) permutation = [0, 2, 1, 3]
  %scaled = linalg.generic {indexing_maps = [#id4, #none4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%queries, %scale : tensor<2x3x5x7xf32>, tensor<f32>) outs(%e1 : tensor<2x3x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %byHead = linalg.transpose ins(%keys : tensor<2x5x3x7xf32>) outs(%e1 : tensor<2x3x5x7xf32>) permutation = [0, 2, 1, 3]
  %flat = tensor.collapse_shape %byHead [[0, 1], [2], [3]] : tensor<2x3x5x7xf32> into tensor<6x5x7xf32>
  %e2 = tensor.empty() : tensor<6x7x5xf32>
  %turned = linalg.transpose ins(%flat : tensor<6x5x7xf32>) outs(%e2 : tensor<6x7x5xf32>) permutation = [0, 2, 1]
  %k = tensor.expand_shape %turned [[0, 1], [2], [3]] output_shape [2, 3, 7, 5] : tensor<6x7x5xf32> into tensor<2x3x7x5xf32>
  %e3 = tensor.empty() : tensor<2x3x5x5xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%scaled, %k : tensor<2x3x5x7xf32>, tensor<2x3x7x5xf32>) outs(%z3 : tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %mixed = linalg.contract indexing_maps = [#p, #v, #o] ins(%scores, %values : tensor<2x3x5x5xf32>, tensor<2x3x5x7xf32>) outs(%z1 : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %e4 = tensor.empty() : tensor<2x5x3x7xf32>
  %y = linalg.transpose ins(%mixed : tensor<2x3x5x7xf32>) outs(%e4 : tensor<2x5x3x7xf32>) permutation = [0, 2, 1, 3]
  return %y : tensor<2x5x3x7xf32>
}

// -----

// The batch would have the unit stride: no product of the library, so the
// transpose stays.
#mk = affine_map<(b, m, n, k) -> (b, m, k)>
#kn = affine_map<(b, m, n, k) -> (b, k, n)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>
// CHECK-LABEL: func.func @batch_innermost(
// CHECK:         linalg.transpose
func.func @batch_innermost(%x: tensor<5x7x3xf32>, %w: tensor<3x7x11xf32>, %c: tensor<3x5x11xf32>) -> tensor<3x5x11xf32> {
  %e = tensor.empty() : tensor<3x5x7xf32>
  %t = linalg.transpose ins(%x : tensor<5x7x3xf32>) outs(%e : tensor<3x5x7xf32>) permutation = [2, 0, 1]
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%t, %w : tensor<3x5x7xf32>, tensor<3x7x11xf32>) outs(%c : tensor<3x5x11xf32>) -> tensor<3x5x11xf32>
  return %y : tensor<3x5x11xf32>
}

// -----

// The operand's producer is named like the transpose, too: "--split-at" finds it.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(a, b) -> (a, b)>
// NAMES: linalg.yield
// NAMES: -> tensor<7x5xf32> loc(#[[BOTH:.*]])
// NAMES: #[[RELU:.*]] = loc("relu")
// NAMES: #[[TURN:.*]] = loc("turn")
// NAMES: #[[BOTH]] = loc(fused[#[[RELU]], #[[TURN]]])
func.func @names(%x: tensor<7x5xf32>, %w: tensor<7x11xf32>, %c: tensor<5x11xf32>) -> tensor<5x11xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<7x5xf32> loc("relu")
  %e1 = tensor.empty() : tensor<5x7xf32>
  %t = linalg.transpose ins(%r : tensor<7x5xf32>) outs(%e1 : tensor<5x7xf32>) permutation = [1, 0] loc("turn")
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%t, %w : tensor<5x7xf32>, tensor<7x11xf32>) outs(%c : tensor<5x11xf32>) -> tensor<5x11xf32>
  return %y : tensor<5x11xf32>
}
