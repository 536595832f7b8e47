// RUN: penstock-opt %s --pipeline-gpu-transposes --canonicalize --cse | FileCheck %s

#id = affine_map<(n, i, j) -> (n, i, j)>
#swap = affine_map<(n, i, j) -> (n, j, i)>
#last = affine_map<(n, i, j) -> (j)>

gpu.module @kernels {

// Three times two by three tiles. The tile is read along the rows of x, and
// written along those of z.
// CHECK-LABEL: gpu.func @fused
// CHECK-SAME:    (%[[X:.*]]: memref<3x70x33xf32, 1>, %[[Y:.*]]: memref<3x33x70xf32, 1>, %[[B:.*]]: memref<70xf32, 1>, %[[Z:.*]]: memref<3x33x70xf32, 1>)
// CHECK-SAME:    workgroup(%[[TILE:.*]] : memref<32x33xf32, 3>)
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>
// CHECK-DAG:     %[[COLUMN:.*]] = arith.remui %thread_id_x, %c32
// CHECK-DAG:     %[[FIRST:.*]] = arith.divui %thread_id_x, %c32
// CHECK:         scf.for %{{.*}} = %c0 to %c4
// CHECK:           %[[ROW:.*]] = arith.addi %[[FIRST]], %{{.*}}
// CHECK:           scf.if
// CHECK:             %[[V:.*]] = memref.load %[[X]][%[[N:.*]], %{{.*}}, %{{.*}}]
// CHECK:             memref.store %[[V]], %[[TILE]][%[[ROW]], %[[COLUMN]]]
// CHECK:         gpu.barrier
// CHECK:         scf.for %{{.*}} = %c0 to %c4
// CHECK:           %[[ROW2:.*]] = arith.addi %[[FIRST]], %{{.*}}
// CHECK:           scf.if
// CHECK:             %[[P:.*]] = memref.load %[[TILE]][%[[COLUMN]], %[[ROW2]]]
// CHECK:             %[[Q:.*]] = memref.load %[[Y]][%[[N]], %[[I:.*]], %[[J:.*]]]
// CHECK:             memref.load %[[B]][%[[J]]]
// CHECK:             arith.addf %[[P]], %[[Q]]
// CHECK:             memref.store %{{.*}}, %[[Z]][%[[N]], %[[I]], %[[J]]]
gpu.func @fused(%x: memref<3x70x33xf32, 1>, %y: memref<3x33x70xf32, 1>, %b: memref<70xf32, 1>, %z: memref<3x33x70xf32, 1>) kernel {
  linalg.generic {indexing_maps = [#swap, #id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %b : memref<3x70x33xf32, 1>, memref<3x33x70xf32, 1>, memref<70xf32, 1>) outs(%z : memref<3x33x70xf32, 1>) {
    ^bb0(%p: f32, %q: f32, %s: f32, %out: f32): %r = arith.addf %p, %q : f32  %t = arith.mulf %r, %s : f32  linalg.yield %t : f32 }
  gpu.return
}

// Full tiles need no guard.
// CHECK-LABEL: gpu.func @whole
// CHECK-SAME:    memref<32x33xi64, 3>
// CHECK-SAME:    known_grid_size = array<i32: 2, 1, 1>
// CHECK-NOT:     scf.if
gpu.func @whole(%x: memref<64x32xi64, 1>, %z: memref<32x64xi64, 1>) kernel {
  linalg.transpose ins(%x : memref<64x32xi64, 1>) outs(%z : memref<32x64xi64, 1>) permutation = [1, 0]
  gpu.return
}

// CHECK-LABEL: gpu.func @narrow
// CHECK-NOT:     workgroup
gpu.func @narrow(%x: memref<64x4xf32, 1>, %z: memref<4x64xf32, 1>) kernel {
  linalg.transpose ins(%x : memref<64x4xf32, 1>) outs(%z : memref<4x64xf32, 1>) permutation = [1, 0]
  gpu.return
}
}
