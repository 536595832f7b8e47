// RUN: penstock-opt %s --pipeline-merge-reductions --split-input-file | FileCheck %s

#id = affine_map<(n, c, w) -> (n, c, w)>
#channel = affine_map<(n, c, w) -> (c)>

// The backward of a ReLU and a batch norm: the masked cotangent, which only the
// second op wanted, is not written; the third has its own start.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[R:.*]]:3 = linalg.generic {{.*}} ["reduction", "parallel", "reduction"]} ins(%arg0, %arg1, %arg2 : tensor<3x5x7xf32>, tensor<3x5x7xf32>, tensor<3x5x7xf32>) outs(%arg3, %arg4, %arg5 :
// CHECK:           %[[M:.*]] = arith.select
// CHECK:           arith.addf %{{.*}}, %[[M]]
// CHECK:           %[[P:.*]] = arith.mulf %[[M]], %{{.*}}
// CHECK:           arith.addf %[[P]], %{{.*}}
// CHECK:           arith.mulf %{{.*}}, %{{.*}}
// CHECK:           linalg.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @backward(%dy: tensor<3x5x7xf32>, %y: tensor<3x5x7xf32>, %x: tensor<3x5x7xf32>, %b0: tensor<5xf32>, %g0: tensor<5xf32>, %s0: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5x7xf32>
  %d, %b = linalg.generic {indexing_maps = [#id, #id, #id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%dy, %y : tensor<3x5x7xf32>, tensor<3x5x7xf32>) outs(%e, %b0 : tensor<3x5x7xf32>, tensor<5xf32>) {
    ^bb0(%a: f32, %v: f32, %o: f32, %s: f32):
      %p = arith.cmpf ogt, %v, %zero : f32
      %m = arith.select %p, %a, %zero : f32
      %r = arith.addf %s, %m : f32
      linalg.yield %m, %r : f32, f32 } -> (tensor<3x5x7xf32>, tensor<5xf32>)
  %g = linalg.generic {indexing_maps = [#id, #id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%d, %x : tensor<3x5x7xf32>, tensor<3x5x7xf32>) outs(%g0 : tensor<5xf32>) {
    ^bb0(%a: f32, %v: f32, %s: f32):
      %m = arith.mulf %a, %v : f32
      %r = arith.addf %m, %s : f32
      linalg.yield %r : f32 } -> tensor<5xf32>
  %q = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%x : tensor<3x5x7xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %s: f32):
      %m = arith.mulf %v, %v : f32
      %r = arith.addf %m, %s : f32
      linalg.yield %r : f32 } -> tensor<5xf32>
  return %b, %g, %q : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}

// -----

#id = affine_map<(n, c, w) -> (n, c, w)>
#channel = affine_map<(n, c, w) -> (c)>
#sample = affine_map<(n, c, w) -> (n)>

// The second needs the sum of the first, the third the result of an op that
// does; sums that go elsewhere and sums of other tensors have loops of their own.
// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-3: linalg.generic {{.*}} ["reduction", "parallel", "reduction"]
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction", "reduction"]
// CHECK:         linalg.generic {{.*}} ["reduction", "parallel", "reduction"]
func.func @apart(%x: tensor<3x5x7xf32>, %z: tensor<3x5x7xf32>, %s0: tensor<5xf32>, %t0: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>, tensor<5xf32>) {
  %a = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%x : tensor<3x5x7xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %s: f32): %r = arith.addf %v, %s : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  %b = linalg.generic {indexing_maps = [#id, #channel, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%x, %a : tensor<3x5x7xf32>, tensor<5xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %m: f32, %s: f32):
      %d = arith.subf %v, %m : f32
      %r = arith.addf %d, %s : f32
      linalg.yield %r : f32 } -> tensor<5xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
    ins(%b : tensor<5xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %s: f32): %r = arith.negf %v : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  %c = linalg.generic {indexing_maps = [#id, #channel, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%x, %n : tensor<3x5x7xf32>, tensor<5xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %m: f32, %s: f32):
      %d = arith.subf %v, %m : f32
      %r = arith.addf %d, %s : f32
      linalg.yield %r : f32 } -> tensor<5xf32>
  %t = linalg.generic {indexing_maps = [#id, #sample], iterator_types = ["parallel", "reduction", "reduction"]}
    ins(%x : tensor<3x5x7xf32>) outs(%t0 : tensor<3xf32>) {
    ^bb0(%v: f32, %s: f32): %r = arith.addf %v, %s : f32  linalg.yield %r : f32 } -> tensor<3xf32>
  %u = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%z : tensor<3x5x7xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %s: f32): %r = arith.addf %v, %s : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  return %a, %b, %c, %t, %u : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>, tensor<5xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Over a product, what both read would have to be kept.
// CHECK-LABEL: func.func @far(
// CHECK:         linalg.generic
// CHECK:         linalg.matmul
// CHECK:         linalg.generic
func.func @far(%x: tensor<3x5xf32>, %w: tensor<5x7xf32>, %z: tensor<3x7xf32>, %s0: tensor<5xf32>) -> (tensor<5xf32>, tensor<3x7xf32>, tensor<5xf32>) {
  %a = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<3x5xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %s: f32): %r = arith.addf %v, %s : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  %p = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x7xf32>) outs(%z : tensor<3x7xf32>) -> tensor<3x7xf32>
  %b = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<3x5xf32>) outs(%s0 : tensor<5xf32>) {
    ^bb0(%v: f32, %s: f32): %r = arith.subf %s, %v : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  return %a, %p, %b : tensor<5xf32>, tensor<3x7xf32>, tensor<5xf32>
}
