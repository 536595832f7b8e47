// RUN: penstock-opt %s --pipeline-vector-loops='width=8' --split-input-file | FileCheck %s
// RUN: %expect-error --any-lines "the vector width must be a power of two, got 6" -- penstock-opt %s --pipeline-vector-loops='width=6' --split-input-file

// Whole dense buffers are one dimension: 3 x 7 = 21 = 2 vectors and 5 lanes.
// CHECK-LABEL: func.func @flat(
// CHECK:         memref.collapse_shape {{.*}} into memref<21xf32>
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} step %c8
// CHECK:           vector.load
// CHECK:           arith.negf {{.*}} : vector<8xf32>
// CHECK:           vector.store
// CHECK:         %[[MASK:.*]] = arith.constant dense<[true, true, true, true, true, false, false, false]>
// CHECK:         vector.maskedload {{.*}}, %[[MASK]], %{{.*}}
// CHECK:         vector.maskedstore
#id = affine_map<(i, j) -> (i, j)>
func.func @flat(%x: memref<3x7xf32>, %y: memref<3x7xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<3x7xf32>) outs(%y : memref<3x7xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  return
}

// -----

// A row sum: four accumulators, 70 = 2 blocks of 32 and 6 lanes; pairs, then
// halves; the old value last.
// CHECK-LABEL: func.func @row_sum(
// CHECK:         scf.for
// CHECK:           %[[A:.*]]:4 = scf.for %{{.*}} to %c64{{.*}} step %c32{{.*}} iter_args
// CHECK-COUNT-4:     vector.load
// CHECK:           %[[T:.*]] = vector.maskedload
// CHECK:           %[[S:.*]] = arith.addf %[[T]], %[[A]]#0
// CHECK:           %[[M:.*]] = arith.select %{{.*}}, %[[S]], %[[A]]#0
// CHECK:           %[[P:.*]] = arith.addf %[[M]], %[[A]]#1
// CHECK:           %[[Q:.*]] = arith.addf %[[A]]#2, %[[A]]#3
// CHECK:           %[[R:.*]] = arith.addf %[[P]], %[[Q]] : vector<8xf32>
// CHECK:           %[[OLD:.*]] = memref.load
// CHECK:           vector.shuffle %[[R]], %[[R]] [0, 1, 2, 3]
// CHECK:           vector.shuffle %[[R]], %[[R]] [4, 5, 6, 7]
// CHECK:           arith.addf {{.*}} : vector<4xf32>
// CHECK:           arith.addf {{.*}} : vector<2xf32>
// CHECK:           arith.addf {{.*}} : vector<1xf32>
// CHECK:           arith.addf %[[OLD]], %{{.*}} : f32
// CHECK:           memref.store
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @row_sum(%x: memref<3x70xf32>, %y: memref<3xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<3x70xf32>) outs(%y : memref<3xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

// Column sums: rows in order, a vector of columns at a time.
// CHECK-LABEL: func.func @column_sum(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[X:.*]] = vector.load {{.*}} memref<5x16xf32>
// CHECK:             %[[Y:.*]] = vector.load {{.*}} memref<16xf32>
// CHECK:             arith.addf %[[X]], %[[Y]]
// CHECK:             vector.store
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @column_sum(%x: memref<5x16xf32>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
    ins(%x : memref<5x16xf32>) outs(%y : memref<16xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

// The number of a column: the counter plus the lane. The row's label is loaded
// once per row.
// CHECK-LABEL: func.func @one_hot(
// CHECK:         scf.for
// CHECK:           %[[L:.*]] = memref.load
// CHECK:           vector.broadcast %[[L]] : i64 to vector<8xi64>
// CHECK:           scf.for
// CHECK-DAG:         vector.step : vector<8xindex>
// CHECK:             arith.index_cast {{.*}} : vector<8xindex> to vector<8xi64>
// CHECK:             arith.cmpi eq
// CHECK:             vector.store
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @one_hot(%y: memref<5xi64>, %o: memref<5x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%y : memref<5xi64>) outs(%o : memref<5x16xf32>) {
    ^bb0(%a: i64, %b: f32):
      %i = linalg.index 1 : index
      %j = arith.index_cast %i : index to i64
      %h = arith.cmpi eq, %j, %a : i64
      %r = arith.select %h, %one, %zero : f32
      linalg.yield %r : f32 }
  return
}

// -----

// A gather reads memory in its body: scalar loops.
// CHECK-LABEL: func.func @gather(
// CHECK-NOT:     vector
// CHECK:         scf.for
// CHECK:           memref.load
#i = affine_map<(i) -> (i)>
func.func @gather(%t: memref<9xf32>, %y: memref<20xindex>, %o: memref<20xf32>) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]}
    ins(%y : memref<20xindex>) outs(%o : memref<20xf32>) {
    ^bb0(%a: index, %b: f32): %r = memref.load %t[%a] : memref<9xf32>  linalg.yield %r : f32 }
  return
}

// -----

// Batch statistics: one accumulator for all rows of a channel, folded once. The
// mean is loaded once per channel.
// CHECK-LABEL: func.func @channel_sum(
// CHECK:         scf.for %[[C:.*]] = %c0{{.*}} to %c5
// CHECK:           memref.load %{{.*}}[%[[C]]] : memref<5xf32>
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c3{{.*}} iter_args
// CHECK:             scf.for %[[H:.*]] = %c0{{.*}} to %c7{{.*}} iter_args
// CHECK-NOT:           memref.load
// CHECK:               vector.load {{.*}}[%[[N]], %[[C]], %[[H]], %{{.*}}] : memref<3x5x7x11xf32>, vector<8xf32>
// CHECK:               vector.maskedload
// CHECK-NOT:           vector.shuffle
// CHECK:               scf.yield
// CHECK:             scf.yield
// CHECK:           vector.shuffle
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[C]]] : memref<5xf32>
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @channel_sum(%x: memref<3x5x7x11xf32>, %mean: memref<5xf32>, %y: memref<5xf32>) {
  linalg.generic {indexing_maps = [#id, #channel, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
    ins(%x, %mean : memref<3x5x7x11xf32>, memref<5xf32>) outs(%y : memref<5xf32>) {
    ^bb0(%a: f32, %m: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %r = arith.addf %d, %o : f32
      linalg.yield %r : f32 }
  return
}

// -----

// From 256 elements on, a plane is folded by itself: memory is read as it lies.
// CHECK-LABEL: func.func @plane_sum(
// CHECK:         scf.for %[[N:.*]] = %c0{{.*}} to %c3
// CHECK:           scf.for %[[C:.*]] = %c0{{.*}} to %c5
// CHECK:             scf.for %[[H:.*]] = %c0{{.*}} to %c17{{.*}} iter_args
// CHECK:               vector.load {{.*}}[%[[N]], %[[C]], %[[H]], %{{.*}}]
// CHECK-NOT:           vector.shuffle
// CHECK:               scf.yield
// CHECK:             vector.shuffle
// CHECK:             memref.store %{{.*}}, %{{.*}}[%[[C]]] : memref<5xf32>
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @plane_sum(%x: memref<3x5x17x19xf32>, %y: memref<5xf32>) {
  linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
    ins(%x : memref<3x5x17x19xf32>) outs(%y : memref<5xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

// A scale per channel: the plane is one row of 7 x 11 = 77.
// CHECK-LABEL: func.func @scale(
// CHECK:         memref.collapse_shape %{{.*}} {{\[}}[0], [1], [2, 3]] : memref<3x5x7x11xf32> into memref<3x5x77xf32>
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c3
// CHECK:           scf.for %[[C:.*]] = %c0{{.*}} to %c5
// CHECK:             memref.load %{{.*}}[%[[C]]]
// CHECK:             scf.for %{{.*}} = %c0{{.*}} to %c72{{.*}} step %c8
// CHECK:             vector.maskedload
// CHECK-NOT:         scf.for
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @scale(%x: memref<3x5x7x11xf32>, %s: memref<5xf32>, %y: memref<3x5x7x11xf32>) {
  linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x, %s : memref<3x5x7x11xf32>, memref<5xf32>) outs(%y : memref<3x5x7x11xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %r = arith.mulf %a, %b : f32
      linalg.yield %r : f32 }
  return
}

// -----

// Rows with a gap between them, numbers of a loop in the body, and a diagonal:
// these loops stay.
// CHECK-LABEL: func.func @gaps(
// CHECK-NOT:     memref.collapse_shape
// CHECK-LABEL: func.func @numbered(
// CHECK-NOT:     memref.collapse_shape
// CHECK-LABEL: func.func @diagonal(
// CHECK:         memref.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : memref<3x7x11xf32> into memref<3x77xf32>
// CHECK-NOT:     memref.collapse_shape %{{.*}} memref<3x3xf32>
#id = affine_map<(i, j) -> (i, j)>
func.func @gaps(%x: memref<3x7xf32, strided<[8, 1]>>, %y: memref<3x7xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<3x7xf32, strided<[8, 1]>>) outs(%y : memref<3x7xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  return
}
func.func @numbered(%y: memref<3x7xi64>) {
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
    outs(%y : memref<3x7xi64>) {
    ^bb0(%o: i64):
      %n = linalg.index 1 : index
      %r = arith.index_cast %n : index to i64
      linalg.yield %r : i64 }
  return
}
func.func @diagonal(%d: memref<3x3xf32>, %x: memref<3x7x11xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, i)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%d : memref<3x3xf32>) outs(%x : memref<3x7x11xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

// A row maximum that leaves out NaN: partial results begin at -inf and are
// never NaN, so that the greater of two is a choice by one comparison. What was
// there before may be NaN.
// CHECK-LABEL: func.func @row_max(
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<0xFF800000> : vector<8xf32>
// CHECK:         %[[A:.*]]:4 = scf.for {{.*}} iter_args(%[[PART:[a-z0-9]+]] = %[[LEAST]],
// CHECK:           %[[X:.*]] = vector.load
// CHECK:           %[[GREATER:.*]] = arith.cmpf ogt, %[[X]], %[[PART]]
// CHECK:           arith.select %[[GREATER]], %[[X]], %[[PART]]
// CHECK-NOT:     arith.maxnumf {{.*}} : vector
// CHECK:         %[[OLD:.*]] = memref.load
// CHECK:         arith.maxnumf %[[OLD]], %{{.*}} : f32
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @row_max(%x: memref<1x64xf32>, %y: memref<1xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<1x64xf32>) outs(%y : memref<1xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.maxnumf %a, %o : f32  linalg.yield %r : f32 }
  return
}

// -----

// Partial sums of products are joined by additions, as is what was there.
// CHECK-LABEL: func.func @dot(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK:         %[[A:.*]]:2 = scf.for {{.*}} iter_args(%[[P:[a-z0-9]+]] = %[[ZERO]], %[[Q:[a-z0-9]+]] = %[[ZERO]])
// CHECK:           math.fma %{{.*}}, %{{.*}}, %[[P]] : vector<8xf32>
// CHECK:           math.fma %{{.*}}, %{{.*}}, %[[Q]] : vector<8xf32>
// CHECK-NOT:     math.fma
// CHECK:         arith.addf %[[A]]#0, %[[A]]#1 : vector<8xf32>
// CHECK:         %[[OLD:.*]] = memref.load
// CHECK:         arith.addf %[[OLD]], %{{.*}} : f32
#i = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @dot(%x: memref<16xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#i, #i, #none], iterator_types = ["reduction"]}
    ins(%x, %x : memref<16xf32>, memref<16xf32>) outs(%y : memref<f32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = math.fma %a, %b, %o : f32  linalg.yield %r : f32 }
  return
}
