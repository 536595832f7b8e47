// RUN: penstock-opt %s --pipeline-form-rows --split-input-file | FileCheck %s
// RUN: sed 's/^func.*) {$/&/; s/^\(func.*)\) {$/\1 attributes {pipeline.target = #cuda.target<"sm_90" plain(true)>} {/' %s > %t.mlir
// RUN: penstock-opt %t.mlir --pipeline-form-rows --split-input-file | FileCheck %s --check-prefix=PLAIN

// PLAIN-NOT: scf.forall

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#number = affine_map<(i) -> (i)>

// Fills, sums, numbers and elements of a row; the number of the row is known.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<128x64xf32>, %[[M:[a-z0-9]+]]: memref<128xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         scf.forall (%[[I:.*]]) in (128) {
// CHECK:           %[[MI:.*]] = memref.subview %[[M]][%[[I]]] [1] [1]
// CHECK:           linalg.generic {{.*}} outs(%[[MI]] :
// CHECK:           %[[XI:.*]] = memref.subview %[[X]][%[[I]], 0] [1, 64] [1, 1]
// CHECK:           linalg.generic {{.*}} ["parallel", "reduction"]} ins(%[[XI]] : {{.*}} outs(%[[MI]] :
// CHECK:           linalg.generic
// CHECK:           linalg.generic {{.*}} ["parallel", "reduction"]} ins(%[[XI]], %[[MI]] :
// CHECK:           linalg.generic {{.*}} ["parallel"]
// CHECK:           linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK-NOT:         linalg.index
// CHECK:             arith.index_cast %[[I]]
// CHECK:         } {mapping = [#gpu.warp<linear_dim_0>]}
// CHECK-NOT:     linalg.generic
func.func @softmax(%x: memref<128x64xf32>, %m: memref<128xf32>, %s: memref<128xf32>, %y: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  linalg.fill ins(%low : f32) outs(%m : memref<128xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<128x64xf32>) outs(%m : memref<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.maximumf %a, %o : f32  linalg.yield %r : f32 }
  linalg.fill ins(%zero : f32) outs(%s : memref<128xf32>)
  linalg.generic {indexing_maps = [#id, #row, #id, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : memref<128x64xf32>, memref<128xf32>) outs(%y, %s : memref<128x64xf32>, memref<128xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32, %p: f32): %d = arith.subf %a, %b : f32  %e = math.exp %d : f32  %r = arith.addf %e, %p : f32  linalg.yield %e, %r : f32, f32 }
  linalg.generic {indexing_maps = [#number, #number], iterator_types = ["parallel"]} ins(%s : memref<128xf32>) outs(%s : memref<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = math.sqrt %a : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %s : memref<128x64xf32>, memref<128xf32>) outs(%y : memref<128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %i = linalg.index 0 : index  %j = arith.index_cast %i : index to i32  %k = arith.sitofp %j : i32 to f32  %r = arith.divf %a, %b : f32  %t = arith.addf %r, %k : f32  linalg.yield %t : f32 }
  return
}

// -----

#id = affine_map<(n, c, w) -> (n, c, w)>
#channel = affine_map<(n, c, w) -> (c)>

// Rows come first; 33600 elements are a block's.
// CHECK-LABEL: func.func @channels(
// CHECK:         scf.forall (%[[C:.*]]) in (5) {
// CHECK:           memref.subview %arg0[0, %[[C]], 0] [16, 1, 2100] [1, 1, 1]
// CHECK:           linalg.generic {{.*}} ["parallel", "reduction", "reduction"]
// CHECK:         } {mapping = [#gpu.block<linear_dim_0>]}
func.func @channels(%x: memref<16x5x2100xf32>, %s: memref<5xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<5xf32>)
  linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]} ins(%x : memref<16x5x2100xf32>) outs(%s : memref<5xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Neighboring columns are neighboring threads, whose elements are nobody's row.
// CHECK-LABEL: func.func @columns(
// CHECK:         scf.forall (%[[J:.*]]) in (70) {
// CHECK:           linalg.generic {{.*}} ["parallel"]
// CHECK:           memref.subview %arg0[0, %[[J]]] [40, 1] [1, 1]
// CHECK:           linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK-NOT:       linalg.generic
// CHECK:         }
// CHECK-NOT:     mapping
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel"]
func.func @columns(%x: memref<40x70xf32>, %y: memref<40x70xf32>, %s: memref<70xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<70xf32>)
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<40x70xf32>) outs(%s : memref<70xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<40x70xf32>, memref<70xf32>) outs(%y : memref<40x70xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.divf %a, %b : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#scalar = affine_map<() -> ()>

// All in one row.
// CHECK-LABEL: func.func @total(
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           linalg.generic {{.*}} outs(%arg1 : memref<f32>)
// CHECK:           linalg.generic {{.*}} ["reduction"]} ins(%arg0 : memref<40xf32>) outs(%arg1 : memref<f32>)
// CHECK:           arith.divf
// CHECK:         } {mapping = [#gpu.warp<linear_dim_0>]}
func.func @total(%x: memref<40xf32>, %s: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 40.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<f32>)
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : memref<40xf32>) outs(%s : memref<f32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s : memref<f32>) outs(%s : memref<f32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.divf %a, %count : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>

// What changes rows of others does not join, and a sum that cannot be combined
// is no team's.
// CHECK-LABEL: func.func @apart(
// CHECK:         scf.forall
// CHECK:           ["parallel", "reduction"]
// CHECK-NOT:       linalg.generic
// CHECK:         mapping
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK-NOT:     scf.forall
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]
func.func @apart(%x: memref<128x128xf32>, %y: memref<128x128xf32>, %s: memref<128xf32>, %t: memref<128xf32>, %at: memref<128xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<128x128xf32>) outs(%s : memref<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #swap], iterator_types = ["parallel", "parallel"]} ins(%y : memref<128x128xf32>) outs(%x : memref<128x128xf32>) {
    ^bb0(%a: f32, %o: f32): linalg.yield %a : f32 }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : memref<128x128xf32>) outs(%t : memref<128xf32>) {
    ^bb0(%a: f32, %o: f32): %g = arith.cmpf ogt, %a, %o : f32  %r = arith.select %g, %a, %o : f32  linalg.yield %r : f32 }
  return
}
