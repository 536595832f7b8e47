// RUN: penstock-opt %s --pipeline-gpu-rows --canonicalize --cse | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
#number = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @launches
// CHECK:         kernel.launch @kernels::@warps grid [2, 1, 1] block [128, 1, 1]
func.func @launches(%x: memref<7x64xf32>, %s: memref<7xf32>) {
  kernel.launch @kernels::@warps grid [1, 1, 1] block [1, 1, 1](%x, %s) : memref<7x64xf32>, memref<7xf32>
  return
}

gpu.module @kernels {

// Four rows to a block, of which the last has three. 64 elements are 16 vectors.
// The old value is the first thread's.
// CHECK-LABEL: gpu.func @warps
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK-DAG:     %[[NONE:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[WARP:.*]] = arith.divui %thread_id_x, %c32
// CHECK-DAG:     %[[LANE:.*]] = arith.remui %thread_id_x, %c32
// CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[WARP]]
// CHECK:         %[[ISROW:.*]] = arith.cmpi ult, %[[ROW]], %c7
// CHECK:         scf.if %[[ISROW]] {
// CHECK:           %[[HAS:.*]] = arith.cmpi ult, %[[LANE]], %c16
// CHECK:           %[[SUMS:.*]]:4 = scf.if %[[HAS]] -> (f32, f32, f32, f32) {
// CHECK:             vector.load %{{.*}} {alignment = 16 : i64}
// CHECK-COUNT-4:     arith.addf
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[NONE]], %[[NONE]], %[[NONE]], %[[NONE]]
// CHECK:           arith.addf %[[SUMS]]#0, %[[SUMS]]#1
// CHECK:           arith.addf %[[SUMS]]#2, %[[SUMS]]#3
// CHECK:           %[[OLD:.*]] = memref.load
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK:           arith.select %[[FIRST]]
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK:           nvvm.bar.warp.sync
// CHECK:           scf.if %[[FIRST]] {
// CHECK:             memref.store
gpu.func @warps(%x: memref<7x64xf32, 1> {llvm.align = 16 : i64}, %s: memref<7xf32, 1>) kernel {
  scf.forall (%i) in (7) {
    %r = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<7x64xf32, 1> to memref<1x64xf32, strided<[64, 1], offset: ?>, 1>
    %t = memref.subview %s[%i] [1] [1] : memref<7xf32, 1> to memref<1xf32, strided<[1], offset: ?>, 1>
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r : memref<1x64xf32, strided<[64, 1], offset: ?>, 1>) outs(%t : memref<1xf32, strided<[1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32): %n = arith.addf %a, %o : f32  linalg.yield %n : f32 }
  } {mapping = [#gpu.warp<linear_dim_0>]}
  gpu.return
}

// Numbers of the row are in registers: nobody loads them, and what there was
// before is not read. 37 elements are one and a rest.
// CHECK-LABEL: gpu.func @numbers
// CHECK-SAME:    (%[[X:.*]]: memref<8x37xf32, 1>, %[[S:.*]]: memref<8xf32, 1>, %[[Y:.*]]: memref<8x37xf32, 1>)
// CHECK-DAG:     %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         memref.load
// CHECK:         arith.maximumf %{{.*}}, %[[LOW]]
// CHECK:         gpu.shuffle xor
// CHECK-NOT:     bar.warp.sync
// CHECK:         %[[N:.*]] = arith.divf %{{.*}}, %{{.*}}
// CHECK:         arith.divf %{{.*}}, %[[N]]
// CHECK:         memref.store
// CHECK:         scf.if
// CHECK:           arith.divf %{{.*}}, %[[N]]
// CHECK:           memref.store
// CHECK:         scf.if
// CHECK-NEXT:      memref.store %[[N]]
gpu.func @numbers(%x: memref<8x37xf32, 1>, %s: memref<8xf32, 1>, %y: memref<8x37xf32, 1>) kernel {
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 37.0 : f32
  scf.forall (%i) in (8) {
    %r = memref.subview %x[%i, 0] [1, 37] [1, 1] : memref<8x37xf32, 1> to memref<1x37xf32, strided<[37, 1], offset: ?>, 1>
    %t = memref.subview %s[%i] [1] [1] : memref<8xf32, 1> to memref<1xf32, strided<[1], offset: ?>, 1>
    %q = memref.subview %y[%i, 0] [1, 37] [1, 1] : memref<8x37xf32, 1> to memref<1x37xf32, strided<[37, 1], offset: ?>, 1>
    linalg.generic {indexing_maps = [affine_map<(i) -> ()>, #number], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%t : memref<1xf32, strided<[1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32): linalg.yield %a : f32 }
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r : memref<1x37xf32, strided<[37, 1], offset: ?>, 1>) outs(%t : memref<1xf32, strided<[1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32): %n = arith.maximumf %a, %o : f32  linalg.yield %n : f32 }
    linalg.generic {indexing_maps = [#number, #number], iterator_types = ["parallel"]}
      ins(%t : memref<1xf32, strided<[1], offset: ?>, 1>) outs(%t : memref<1xf32, strided<[1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32): %n = arith.divf %a, %size : f32  linalg.yield %n : f32 }
    linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r, %t : memref<1x37xf32, strided<[37, 1], offset: ?>, 1>, memref<1xf32, strided<[1], offset: ?>, 1>) outs(%q : memref<1x37xf32, strided<[37, 1], offset: ?>, 1>) {
      ^bb0(%a: f32, %b: f32, %o: f32): %n = arith.divf %a, %b : f32  linalg.yield %n : f32 }
  } {mapping = [#gpu.warp<linear_dim_0>]}
  gpu.return
}

// 256 threads have two vectors each. Eight warps add up what they left in shared
// memory, in their order; each of the sums has memory of its own.
// CHECK-LABEL: gpu.func @blocks
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<8xf32, 3>, %[[B:.*]] : memref<8xi64, 3>)
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 3, 1, 1>
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args(
// CHECK:           vector.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         memref.store %{{.*}}, %[[A]][
// CHECK:         gpu.barrier
// CHECK-COUNT-8: memref.load %[[A]][
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         memref.store %{{.*}}, %[[B]][
// CHECK:         gpu.barrier
// CHECK-COUNT-8: memref.load %[[B]][
// CHECK:         scf.if
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      memref.store
gpu.func @blocks(%x: memref<3x2048xf32, 1>, %s: memref<3xf32, 1>, %m: memref<3xi64, 1>) kernel {
  scf.forall (%i) in (3) {
    %r = memref.subview %x[%i, 0] [1, 2048] [1, 1] : memref<3x2048xf32, 1> to memref<1x2048xf32, strided<[2048, 1], offset: ?>, 1>
    %t = memref.subview %s[%i] [1] [1] : memref<3xf32, 1> to memref<1xf32, strided<[1], offset: ?>, 1>
    %u = memref.subview %m[%i] [1] [1] : memref<3xi64, 1> to memref<1xi64, strided<[1], offset: ?>, 1>
    linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r : memref<1x2048xf32, strided<[2048, 1], offset: ?>, 1>) outs(%t, %u : memref<1xf32, strided<[1], offset: ?>, 1>, memref<1xi64, strided<[1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32, %p: i64): %n = arith.addf %a, %o : f32  %k = arith.fptosi %a : f32 to i64  %l = arith.maxsi %k, %p : i64  linalg.yield %n, %l : f32, i64 }
  } {mapping = [#gpu.block<linear_dim_0>]}
  gpu.return
}

// The second op has the elements in another order, so it has those of other
// threads.
// CHECK-LABEL: gpu.func @order
// CHECK:         vector.store
// CHECK:         nvvm.bar.warp.sync
// CHECK:         memref.load
gpu.func @order(%x: memref<4x64x8xf32, 1>, %y: memref<4x64x8xf32, 1>, %s: memref<4xf32, 1>) kernel {
  scf.forall (%i) in (4) {
    %r = memref.subview %x[%i, 0, 0] [1, 64, 8] [1, 1, 1] : memref<4x64x8xf32, 1> to memref<1x64x8xf32, strided<[512, 8, 1], offset: ?>, 1>
    %q = memref.subview %y[%i, 0, 0] [1, 64, 8] [1, 1, 1] : memref<4x64x8xf32, 1> to memref<1x64x8xf32, strided<[512, 8, 1], offset: ?>, 1>
    %t = memref.subview %s[%i] [1] [1] : memref<4xf32, 1> to memref<1xf32, strided<[1], offset: ?>, 1>
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r : memref<1x64x8xf32, strided<[512, 8, 1], offset: ?>, 1>) outs(%q : memref<1x64x8xf32, strided<[512, 8, 1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32): %n = math.sqrt %a : f32  linalg.yield %n : f32 }
    linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i, j, k)>, affine_map<(i, k, j) -> (i)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%q : memref<1x64x8xf32, strided<[512, 8, 1], offset: ?>, 1>) outs(%t : memref<1xf32, strided<[1], offset: ?>, 1>) {
      ^bb0(%a: f32, %o: f32): %n = arith.addf %a, %o : f32  linalg.yield %n : f32 }
  } {mapping = [#gpu.warp<linear_dim_0>]}
  gpu.return
}
}
