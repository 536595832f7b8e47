// RUN: penstock-opt %s --pipeline-fuse --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#col = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
!m = tensor<5x7xf32>

// Bias and Relu: one pass.
// CHECK-LABEL: func.func @bias_relu(
// CHECK:         linalg.generic
// CHECK:           arith.addf
// CHECK-NEXT:      arith.maximumf
// CHECK-NOT:     linalg.generic
func.func @bias_relu(%a: !m, %b: tensor<7xf32>) -> !m {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !m
  %s = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : !m, tensor<7xf32>) outs(%e : !m) {
    ^bb0(%x: f32, %y: f32, %o: f32): %r = arith.addf %x, %y : f32  linalg.yield %r : f32 } -> !m
  %h = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%s : !m) {
    ^bb0(%x: f32): %r = arith.maximumf %x, %zero : f32  linalg.yield %r : f32 } -> !m
  return %h : !m
}

// The gate's derivative has two users: a product and a column sum. The sum moves
// up and yields both.
// CHECK-LABEL: func.func @relu_backward(
// CHECK:         %[[G:.*]]:2 = linalg.generic {{.*}} ["reduction", "parallel"]
// CHECK:           arith.select
// CHECK:           arith.addf
// CHECK:         linalg.contract {{.*}} ins(%{{.*}}, %[[G]]#
// CHECK-NOT:     linalg.generic
func.func @relu_backward(%h: !m, %d: !m, %x: tensor<5x3xf32>, %dw: tensor<3x7xf32>, %db: tensor<7xf32>) -> (tensor<3x7xf32>, tensor<7xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !m
  %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h, %d : !m, !m) outs(%e : !m) {
    ^bb0(%a: f32, %b: f32, %o: f32): %p = arith.cmpf ogt, %a, %zero : f32  %r = arith.select %p, %b, %zero : f32  linalg.yield %r : f32 } -> !m
  %n = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %g : tensor<5x3xf32>, !m) outs(%dw : tensor<3x7xf32>) -> tensor<3x7xf32>
  %b = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%g : !m) outs(%db : tensor<7xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> tensor<7xf32>
  return %n, %b : tensor<3x7xf32>, tensor<7xf32>
}

// The row sum of a transpose would be vectorized along columns: another order of
// additions than when the transpose is in another stage. Not fused.
// CHECK-LABEL: func.func @keeps_order(
// CHECK:         linalg.generic
// CHECK:         linalg.generic
func.func @keeps_order(%a: !m) -> tensor<7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !m) outs(%e : tensor<7x5xf32>) {
    ^bb0(%x: f32, %o: f32): %r = arith.negf %x : f32  linalg.yield %r : f32 } -> tensor<7x5xf32>
  %f = tensor.empty() : tensor<7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<7xf32>) -> tensor<7xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<7x5xf32>) outs(%z : tensor<7xf32>) {
    ^bb0(%x: f32, %o: f32): %r = arith.addf %x, %o : f32  linalg.yield %r : f32 } -> tensor<7xf32>
  return %s : tensor<7xf32>
}

// One exponential per row, not one per element.
// CHECK-LABEL: func.func @expensive_broadcast(
// CHECK:         linalg.generic
// CHECK:           math.exp
// CHECK:         linalg.generic
// CHECK:           arith.mulf
func.func @expensive_broadcast(%a: !m, %b: tensor<5xf32>) -> !m {
  %f = tensor.empty() : tensor<5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%b : tensor<5xf32>) outs(%f : tensor<5xf32>) {
    ^bb0(%v: f32, %o: f32): %r = math.exp %v : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  %e = tensor.empty() : !m
  %s = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %x : !m, tensor<5xf32>) outs(%e : !m) {
    ^bb0(%v: f32, %w: f32, %o: f32): %r = arith.mulf %v, %w : f32  linalg.yield %r : f32 } -> !m
  return %s : !m
}

// A tensor of one value is that value.
// CHECK-LABEL: func.func @splat(
// CHECK-SAME:    %[[A:.*]]: tensor<5x7xf32>
// CHECK:         %[[C:.*]] = arith.constant 2.000000e+00 : f32
// CHECK:         linalg.generic {{.*}} ins(%[[A]] : tensor<5x7xf32>)
// CHECK:           arith.mulf %{{.*}}, %[[C]]
func.func @splat(%a: !m) -> !m {
  %two = arith.constant dense<2.0> : !m
  %e = tensor.empty() : !m
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %two : !m, !m) outs(%e : !m) {
    ^bb0(%v: f32, %w: f32, %o: f32): %r = arith.mulf %v, %w : f32  linalg.yield %r : f32 } -> !m
  return %s : !m
}

// -----

#id = affine_map<(i) -> (i)>

// x sigmoid(x), where the backward wants both x and its sigmoid: one loop.
// CHECK-LABEL: func.func @two_results(
// CHECK:         %[[R:.*]]:3 = linalg.generic {{.*}} ins(%arg0 : tensor<7xf32>) outs(
// CHECK:           %[[X:.*]] = arith.mulf
// CHECK:           %[[S:.*]] = arith.divf
// CHECK:           %[[Y:.*]] = arith.mulf %[[X]], %[[S]]
// CHECK:           linalg.yield %[[X]], %[[S]], %[[Y]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @two_results(%a: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %x, %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a : tensor<7xf32>) outs(%e, %e : tensor<7xf32>, tensor<7xf32>) {
    ^bb0(%v: f32, %o: f32, %p: f32):
      %m = arith.mulf %v, %two : f32
      %q = arith.divf %two, %m : f32
      linalg.yield %m, %q : f32, f32 } -> (tensor<7xf32>, tensor<7xf32>)
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %s : tensor<7xf32>, tensor<7xf32>) outs(%e : tensor<7xf32>) {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %m = arith.mulf %v, %w : f32
      linalg.yield %m : f32 } -> tensor<7xf32>
  return %x, %s, %y : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
}
