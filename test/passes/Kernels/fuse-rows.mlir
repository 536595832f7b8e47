// RUN: penstock-opt %s --pipeline-fuse-rows --split-input-file | FileCheck %s
// RUN: sed '/^func/s/{$/attributes {pipeline.target = #cpu.target<threads(2)>} {/' %s > %t.mlir
// RUN: penstock-opt %t.mlir --pipeline-fuse-rows --split-input-file | FileCheck %s --check-prefix=THREADS
// RUN: penstock-opt %t.mlir --pipeline-fuse-rows=kind=other --split-input-file | FileCheck %s --check-prefix=OTHER

// OTHER-NOT: scf.for

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>

// Sum and division, a row at a time, with the start of the sum.
// CHECK-LABEL: func.func @normalize(
// CHECK:         scf.forall (%[[I:.*]]) in (128) {
// CHECK-DAG:       memref.subview %{{.*}}[%[[I]]] [1] [1]
// CHECK:           linalg.generic
// CHECK-DAG:       memref.subview %{{.*}}[%[[I]], 0] [1, 64] [1, 1]
// CHECK:           linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK:           linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK-NOT:     linalg.generic
func.func @normalize(%x: memref<128x64xf32>, %s: memref<128xf32>, %y: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<128xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<128x64xf32>) outs(%s : memref<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<128x64xf32>, memref<128xf32>) outs(%y : memref<128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.divf %a, %b : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>

// The second op reads whole columns of what the first writes by rows.
// CHECK-LABEL: func.func @transpose(
// CHECK-NOT:     scf.forall
func.func @transpose(%x: memref<128x128xf32>, %y: memref<128x128xf32>, %z: memref<128x128xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<128x128xf32>) outs(%y : memref<128x128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%y : memref<128x128xf32>) outs(%z : memref<128x128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Two temporaries in the same bytes: row 0 of the second would overwrite rows of
// the first that are still to be read. In bytes of their own they may.
// CHECK-LABEL: func.func @shared_scratch(
// CHECK-NOT:     scf.forall
// CHECK-LABEL: func.func @own_scratch(
// CHECK:         scf.forall
func.func @shared_scratch(%x: memref<128x128xf32>, %y: memref<128x128xf32>, %s: memref<65536xi8>) {
  %c0 = arith.constant 0 : index
  %a = memref.view %s[%c0][] : memref<65536xi8> to memref<128x128xf32>
  %b = memref.view %s[%c0][] : memref<65536xi8> to memref<128x64xf64>
  %zero = arith.constant 0.0 : f64
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : memref<128x128xf32>) outs(%y : memref<128x128xf32>) {
    ^bb0(%v: f32, %o: f32): %r = arith.negf %v : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<128x64xf64>) {
    ^bb0(%o: f64): linalg.yield %zero : f64 }
  return
}
func.func @own_scratch(%x: memref<128x128xf32>, %y: memref<128x128xf32>, %s: memref<131072xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 65536 : index
  %a = memref.view %s[%c0][] : memref<131072xi8> to memref<128x128xf32>
  %b = memref.view %s[%c1][] : memref<131072xi8> to memref<128x64xf64>
  %zero = arith.constant 0.0 : f64
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : memref<128x128xf32>) outs(%y : memref<128x128xf32>) {
    ^bb0(%v: f32, %o: f32): %r = arith.negf %v : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<128x64xf64>) {
    ^bb0(%o: f64): linalg.yield %zero : f64 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>

// One thread adds a row of x to the sums, as before in the order of the rows,
// and then scales it, by numbers whose buffer has the type of the sums': what is
// read after the sums were written is no memory of theirs. Several threads
// would add at once.
// CHECK-LABEL: func.func @sum_over_rows(
// CHECK-SAME:    %{{[^:]*}}: memref<128x64xf32>, %[[S:[^:]*]]: memref<64xf32>,
// CHECK:         linalg.generic {{.*}} outs(%[[S]] : memref<64xf32>)
// CHECK:         scf.for %[[I:.*]] = %c0 to %c128 step %c1 {
// CHECK:           memref.subview %{{.*}}[%[[I]], 0] [1, 64] [1, 1]
// CHECK:           linalg.generic {{.*}} ["reduction", "parallel"]} {{.*}} outs(%[[S]] : memref<64xf32>)
// CHECK:           linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK-NOT:     linalg.generic
// THREADS-LABEL: func.func @sum_over_rows(
// THREADS-NOT:     scf.for
func.func @sum_over_rows(%x: memref<128x64xf32>, %s: memref<64xf32>, %w: memref<64xf32>, %y: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<64xf32>)
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%x : memref<128x64xf32>) outs(%s : memref<64xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : memref<128x64xf32>, memref<64xf32>) outs(%y : memref<128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.mulf %a, %b : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>

// Sums that the second op reads are not complete before the last row; and those
// behind a reader of the same type might replace what it still reads.
// CHECK-LABEL: func.func @sum_is_read(
// THREADS-LABEL: func.func @sum_is_read(
// CHECK-NOT:     scf.for
// CHECK-LABEL: func.func @read_may_be_sum(
// CHECK-NOT:     scf.for
func.func @sum_is_read(%x: memref<128x64xf32>, %s: memref<64xf32>, %y: memref<128x64xf32>) {
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%x : memref<128x64xf32>) outs(%s : memref<64xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<128x64xf32>, memref<64xf32>) outs(%y : memref<128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.mulf %a, %b : f32  linalg.yield %r : f32 }
  return
}
func.func @read_may_be_sum(%x: memref<128x64xf32>, %s: memref<64xf32>, %w: memref<64xf32>, %y: memref<128x64xf32>) {
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : memref<128x64xf32>, memref<64xf32>) outs(%y : memref<128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.mulf %a, %b : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%x : memref<128x64xf32>) outs(%s : memref<64xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j, k) -> (i, j, k)>
#mid = affine_map<(i, j, k) -> (j)>

// These sums go along the vector as well, in partial sums over several rows: row
// by row they would be rounded otherwise.
// CHECK-LABEL: func.func @sum_along_vector(
// CHECK-NOT:     scf.for
func.func @sum_along_vector(%x: memref<128x8x16xf32>, %s: memref<8xf32>, %y: memref<128x8x16xf32>) {
  linalg.generic {indexing_maps = [#id, #mid], iterator_types = ["reduction", "parallel", "reduction"]} ins(%x : memref<128x8x16xf32>) outs(%s : memref<8xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<128x8x16xf32>) outs(%y : memref<128x8x16xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
#mask = affine_map<(b, h, i, j) -> (j)>

// Rows of the first loop would leave the cache: all loops but that of the sum
// number them. Small ones stay in one piece.
// CHECK-LABEL: func.func @long_rows(
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) in (8, 6, 128) {
// CHECK:           memref.subview %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 1, 1, 64] [1, 1, 1, 1]
// CHECK:           linalg.generic {{.*}}"parallel", "reduction"]}
// CHECK:           linalg.generic {{.*}}"parallel", "parallel"]}
// CHECK-LABEL: func.func @short_rows(
// CHECK:         scf.forall (%{{[^,]*}}) in (64) {
func.func @long_rows(%x: memref<8x6x128x64xf32>, %m: memref<64xf32>, %s: memref<8x6x128xf32>, %y: memref<8x6x128x64xf32>) {
  linalg.generic {indexing_maps = [#id, #mask, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %m : memref<8x6x128x64xf32>, memref<64xf32>) outs(%s : memref<8x6x128xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %p = arith.mulf %a, %b : f32  %r = arith.addf %p, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %s : memref<8x6x128x64xf32>, memref<8x6x128xf32>) outs(%y : memref<8x6x128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.divf %a, %b : f32  linalg.yield %r : f32 }
  return
}
func.func @short_rows(%x: memref<64x4x4x64xf32>, %s: memref<64x4x4xf32>, %y: memref<64x4x4x64xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : memref<64x4x4x64xf32>) outs(%s : memref<64x4x4xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %s : memref<64x4x4x64xf32>, memref<64x4x4xf32>) outs(%y : memref<64x4x4x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.divf %a, %b : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(b, i, j) -> (b, i, j)>
#mask = affine_map<(b, i, j) -> (i, j)>

// Each row has its row of the mask, which only the second loop numbers.
// CHECK-LABEL: func.func @rows_of_a_mask(
// CHECK-SAME:    %{{[^:]*}}: memref<8x128x64xf32>, %[[M:[^:]*]]: memref<128x64xf32>
// CHECK:         scf.forall (%{{.*}}, %[[I:.*]]) in (8, 128) {
// CHECK:           memref.subview %[[M]][%[[I]], 0] [1, 64] [1, 1]
func.func @rows_of_a_mask(%x: memref<8x128x64xf32>, %m: memref<128x64xf32>, %y: memref<8x128x64xf32>, %z: memref<8x128x64xf32>) {
  linalg.generic {indexing_maps = [#id, #mask, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %m : memref<8x128x64xf32>, memref<128x64xf32>) outs(%y : memref<8x128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.addf %a, %b : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : memref<8x128x64xf32>) outs(%z : memref<8x128x64xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>

// A column of w belongs to each row.
// CHECK-LABEL: func.func @reads_columns(
// CHECK-SAME:    %{{[^:]*}}: memref<128x64xf32>, %[[W:[^:]*]]: memref<64x128xf32>
// CHECK:         scf.forall (%[[I:.*]]) in (128) {
// CHECK:           memref.subview %[[W]][0, %[[I]]] [64, 1] [1, 1]
func.func @reads_columns(%x: memref<128x64xf32>, %w: memref<64x128xf32>, %y: memref<128x64xf32>, %z: memref<128x64xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<128x64xf32>) outs(%y : memref<128x64xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #swap, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %w : memref<128x64xf32>, memref<64x128xf32>) outs(%z : memref<128x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.mulf %a, %b : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Short rows that take long to compute come several at once, a divisor of all;
// for several threads so many blocks are left that all have work.
// CHECK-LABEL: func.func @short_rows(
// CHECK-NOT:     memref.prefetch
// CHECK:         scf.forall (%[[I:.*]]) = (0) to (126) step (14) {
// CHECK-DAG:       memref.subview %{{.*}}[%[[I]], 0] [14, 67] [1, 1]
// CHECK-DAG:       memref.subview %{{.*}}[%[[I]]] [14] [1]
// THREADS-LABEL: func.func @short_rows(
// THREADS:         scf.forall (%{{.*}}) = (0) to (126) step (3) {
func.func @short_rows(%x: memref<126x67xf32>, %s: memref<126xf32>, %y: memref<126x67xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<126x67xf32>) outs(%y : memref<126x67xf32>) {
    ^bb0(%a: f32, %o: f32): %r = math.exp %a : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : memref<126x67xf32>) outs(%s : memref<126xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// Long ones one by one; before the last op every line of the next row of x is
// asked for, which nothing in the group writes, as it does y.
// CHECK-LABEL: func.func @long_rows(
// CHECK-SAME:    %[[X:[^:]*]]: memref<126x257xf32>
// CHECK:         scf.forall (%[[I:.*]]) in (126) {
// CHECK:           linalg.generic
// CHECK:           %[[AFTER:.*]] = arith.addi %[[I]], %c1
// CHECK:           %[[NEXT:.*]] = arith.minsi %c125{{[^,]*}}, %[[AFTER]]
// CHECK:           scf.for %[[J:.*]] = %c0{{.*}} to %c257{{.*}} step %c16
// CHECK-NEXT:        memref.prefetch %[[X]][%[[NEXT]], %[[J]]], read
// CHECK-NOT:       memref.prefetch
// CHECK:           linalg.generic
func.func @long_rows(%x: memref<126x257xf32>, %s: memref<126xf32>, %y: memref<126x257xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<126x257xf32>) outs(%y : memref<126x257xf32>) {
    ^bb0(%a: f32, %o: f32): %r = math.exp %a : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : memref<126x257xf32>) outs(%s : memref<126xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}
