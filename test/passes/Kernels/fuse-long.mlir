// RUN: penstock-opt %s --pipeline-fuse=most-operations=56 | FileCheck %s
// RUN: penstock-opt %s --pipeline-fuse | FileCheck %s --check-prefix=WHOLE

#id = affine_map<(i, j) -> (i, j)>
!t = tensor<3x5xf32>

// A chain becomes several kernels of at most 56 operations: a function of math
// counts as 16, the end of a body as 1.
// CHECK-LABEL: func.func @chain(
// CHECK:         linalg.generic
// CHECK-COUNT-3: math.tanh
// CHECK-NEXT:    linalg.yield
// CHECK:         linalg.generic
// CHECK-COUNT-3: math.tanh
// CHECK-NEXT:    linalg.yield
// CHECK:         linalg.generic
// CHECK-COUNT-1: math.tanh
// CHECK-NEXT:    linalg.yield
// CHECK-NOT:     linalg.generic
// WHOLE-LABEL: func.func @chain(
// WHOLE:         linalg.generic
// WHOLE-COUNT-7: math.tanh
// WHOLE-NEXT:    linalg.yield
// WHOLE-NOT:     linalg.generic
func.func @chain(%x: !t) -> !t {
  %e = tensor.empty() : !t
  %v1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  %v2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v1 : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  %v3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v2 : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  %v4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v3 : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  %v5 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v4 : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  %v6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v5 : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  %v7 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v6 : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32): %r = math.tanh %a : f32  linalg.yield %r : f32 } -> !t
  return %v7 : !t
}
