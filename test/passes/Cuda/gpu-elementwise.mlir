// RUN: penstock-opt %s --pipeline-gpu-elementwise --canonicalize --cse | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#last = affine_map<(i, j) -> (j)>

gpu.module @kernels {

// 350 elements are 87 vectors and a rest of two.
// CHECK-LABEL: gpu.func @whole
// CHECK-SAME:    (%[[X:.*]]: memref<5x70xf32, 1> {{.*}}, %[[Y:.*]]: memref<5x70xf32, 1> {{.*}}) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 1, 1, 1>}
// CHECK:         scf.if
// CHECK:           %[[AT:.*]] = arith.muli %[[N:.*]], %c4
// CHECK:           %[[FULL:.*]] = arith.cmpi ult, %[[N]], %c87
// CHECK:           scf.if %[[FULL]] {
// CHECK:             vector.load %{{.*}}[%[[AT]]] {alignment = 16 : i64} : memref<350xf32, 1>, vector<4xf32>
// CHECK-COUNT-4:     arith.negf
// CHECK:             vector.store %{{.*}}, %{{.*}}[%[[AT]]] {alignment = 16 : i64}
// CHECK:           } else {
// CHECK:             memref.load %{{.*}}[%c348]
// CHECK:             memref.store %{{.*}}, %{{.*}}[%c348]
// CHECK:             memref.load %{{.*}}[%c349]
// CHECK:             memref.store %{{.*}}, %{{.*}}[%c349]
gpu.func @whole(%x: memref<5x70xf32, 1> {llvm.align = 16 : i64}, %y: memref<5x70xf32, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<5x70xf32, 1>) outs(%y : memref<5x70xf32, 1>) {
    ^bb0(%in: f32, %out: f32): %r = arith.negf %in : f32  linalg.yield %r : f32 }
  gpu.return
}

// Rows of 16 vectors; numbers of elements follow each other.
// CHECK-LABEL: gpu.func @bias
// CHECK:         %[[Q:.*]] = arith.remui %{{.*}}, %c16
// CHECK:         %[[I:.*]] = arith.divui %{{.*}}, %c16
// CHECK:         %[[J:.*]] = arith.muli %[[Q]], %c4
// CHECK:         vector.load %{{.*}}[%[[I]], %[[J]]] {alignment = 16 : i64}
// CHECK:         vector.load %{{.*}}[%[[J]]] {alignment = 16 : i64}
// CHECK:         arith.index_cast %[[J]] : index to i8
// CHECK:         arith.addi %[[J]], %c3
// CHECK:         vector.store %{{.*}}[%[[I]], %[[J]]] {alignment = 4 : i64} : memref<7x64xi8, 1>, vector<4xi8>
gpu.func @bias(%x: memref<7x64xf32, 1> {llvm.align = 16 : i64}, %b: memref<64xf32, 1> {llvm.align = 16 : i64}, %y: memref<7x64xi8, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : memref<7x64xf32, 1>, memref<64xf32, 1>) outs(%y : memref<7x64xi8, 1>) {
    ^bb0(%in: f32, %s: f32, %out: i8): %r = arith.addf %in, %s : f32  %j = linalg.index 1 : index  %k = arith.index_cast %j : index to i8  %q = arith.fptosi %r : f32 to i8  %t = arith.addi %k, %q : i8  linalg.yield %t : i8 }
  gpu.return
}

// Eight elements of bf16 at once, beside a number of f32 per row; sixteen truth
// values, as bytes; half as many of bf16 where a row begins only there.
// CHECK-LABEL: gpu.func @narrow
// CHECK-SAME:    known_grid_size = array<i32: 1, 1, 1>
// CHECK:         arith.remui %{{.*}}, %c10
// CHECK:         vector.load %{{.*}} {alignment = 16 : i64} : memref<7x80xbf16, 1>, vector<8xbf16>
// CHECK:         vector.load %{{.*}} {alignment = 16 : i64} : memref<80xf32, 1>, vector<8xf32>
// CHECK:         vector.store %{{.*}} {alignment = 16 : i64} : memref<7x80xbf16, 1>, vector<8xbf16>
// CHECK-LABEL: gpu.func @truth
// CHECK:         %[[BYTES:.*]] = builtin.unrealized_conversion_cast %{{.*}} : memref<560xi1, 1> to memref<560xi8, 1>
// CHECK:         vector.load %[[BYTES]]{{.*}} {alignment = 16 : i64} : memref<560xi8, 1>, vector<16xi8>
// CHECK-COUNT-16: arith.trunci %{{.*}} : i8 to i1
// CHECK:         arith.extui %{{.*}} : i1 to i8
// CHECK:         vector.store %{{.*}} {alignment = 16 : i64} : memref<560xi8, 1>, vector<16xi8>
// CHECK-LABEL: gpu.func @halves
// CHECK:         vector.load %{{.*}} {alignment = 8 : i64} : memref<7x80xbf16, strided<[84, 1]>, 1>, vector<4xbf16>
gpu.func @narrow(%x: memref<7x80xbf16, 1> {llvm.align = 16 : i64}, %b: memref<80xf32, 1> {llvm.align = 16 : i64}, %y: memref<7x80xbf16, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : memref<7x80xbf16, 1>, memref<80xf32, 1>) outs(%y : memref<7x80xbf16, 1>) {
    ^bb0(%in: bf16, %s: f32, %out: bf16): %w = arith.extf %in : bf16 to f32  %r = arith.addf %w, %s : f32  %n = arith.truncf %r : f32 to bf16  linalg.yield %n : bf16 }
  gpu.return
}
gpu.func @truth(%x: memref<7x80xi1, 1> {llvm.align = 16 : i64}, %y: memref<7x80xi1, 1> {llvm.align = 16 : i64}) kernel {
  %true = arith.constant true
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<7x80xi1, 1>) outs(%y : memref<7x80xi1, 1>) {
    ^bb0(%in: i1, %out: i1): %r = arith.xori %in, %true : i1  linalg.yield %r : i1 }
  gpu.return
}
gpu.func @halves(%x: memref<7x80xbf16, strided<[84, 1]>, 1> {llvm.align = 16 : i64}, %y: memref<7x80xbf16, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<7x80xbf16, strided<[84, 1]>, 1>) outs(%y : memref<7x80xbf16, 1>) {
    ^bb0(%in: bf16, %out: bf16): linalg.yield %in : bf16 }
  gpu.return
}

// Rows that begin anywhere, buffers that do, other orders, and who shall be plain.
// CHECK-LABEL: gpu.func @strided
// CHECK-NOT:     vector
// CHECK-LABEL: gpu.func @unaligned
// CHECK-NOT:     vector
// CHECK-LABEL: gpu.func @turned
// CHECK-NOT:     vector
// CHECK-LABEL: gpu.func @plain
// CHECK-NOT:     vector
gpu.func @strided(%x: memref<7x64xf32, strided<[66, 1]>, 1> {llvm.align = 16 : i64}, %y: memref<7x64xf32, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<7x64xf32, strided<[66, 1]>, 1>) outs(%y : memref<7x64xf32, 1>) {
    ^bb0(%in: f32, %out: f32): %r = arith.negf %in : f32  linalg.yield %r : f32 }
  gpu.return
}

gpu.func @unaligned(%x: memref<350xf32, 1>, %y: memref<350xf32, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<350xf32, 1>) outs(%y : memref<350xf32, 1>) {
    ^bb0(%in: f32, %out: f32): %r = arith.negf %in : f32  linalg.yield %r : f32 }
  gpu.return
}

gpu.func @turned(%x: memref<8x4xf32, 1> {llvm.align = 16 : i64}, %y: memref<4x8xf32, 1> {llvm.align = 16 : i64}) kernel {
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32, 1>) outs(%y : memref<4x8xf32, 1>) {
    ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 }
  gpu.return
}

gpu.func @plain(%x: memref<352xf32, 1> {llvm.align = 16 : i64}) kernel attributes {cuda.plain} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%x : memref<352xf32, 1>)
  gpu.return
}
}
