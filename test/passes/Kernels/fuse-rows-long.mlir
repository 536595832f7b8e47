// RUN: penstock-opt %s --pipeline-fuse-rows=most-operations=34 | FileCheck %s
// RUN: penstock-opt %s --pipeline-fuse-rows | FileCheck %s --check-prefix=WHOLE

#id = affine_map<(i, j) -> (i, j)>
!m = memref<128x64xf32>

// Loops over rows end after so many operations: 17 of each op.
// CHECK-LABEL: func.func @chain(
// CHECK:         scf.forall
// CHECK-COUNT-2: math.tanh
// CHECK:         scf.forall
// CHECK-COUNT-2: math.tanh
// CHECK-NOT:     scf.forall
// WHOLE-LABEL: func.func @chain(
// WHOLE:         scf.forall
// WHOLE-COUNT-4: math.tanh
// WHOLE-NOT:     scf.forall
func.func @chain(%x: !m, %a: !m, %b: !m, %c: !m, %d: !m) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%a : !m) {
    ^bb0(%s: f32, %o: f32): %r = math.tanh %s : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !m) outs(%b : !m) {
    ^bb0(%s: f32, %o: f32): %r = math.tanh %s : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : !m) outs(%c : !m) {
    ^bb0(%s: f32, %o: f32): %r = math.tanh %s : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%c : !m) outs(%d : !m) {
    ^bb0(%s: f32, %o: f32): %r = math.tanh %s : f32  linalg.yield %r : f32 }
  return
}
