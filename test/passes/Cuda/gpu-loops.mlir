// RUN: penstock-opt %s --pipeline-gpu-loops --canonicalize --cse --verify-diagnostics | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#outer = affine_map<(i, j) -> (i)>
#inner = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> ()>
#window = affine_map<(i, j) -> (j * 2 + i)>

// CHECK-LABEL: func.func @launches
// CHECK:         kernel.launch @kernels::@elementwise grid [3, 1, 1] block [128, 1, 1]
// CHECK:         kernel.launch @kernels::@elementwise grid [3, 1, 1] block [128, 1, 1]
// CHECK:         kernel.launch @kernels::@total grid [1, 1, 1] block [1, 1, 1]
func.func @launches(%x: memref<5x70xf32>, %y: memref<70x5xf32>, %s: memref<f32>) {
  kernel.launch @kernels::@elementwise grid [1, 1, 1] block [1, 1, 1](%x, %y) : memref<5x70xf32>, memref<70x5xf32>
  kernel.launch @kernels::@elementwise grid [1, 1, 1] block [1, 1, 1](%x, %y) : memref<5x70xf32>, memref<70x5xf32>
  kernel.launch @kernels::@total grid [1, 1, 1] block [1, 1, 1](%x, %s) : memref<5x70xf32>, memref<f32>
  return
}

gpu.module @kernels {

// 350 iterations are 3 blocks, of which the last one is not full. That it had to
// be plain is no longer said.
// CHECK-LABEL: gpu.func @elementwise
// CHECK-SAME:    (%[[X:.*]]: memref<5x70xf32, 1>, %[[Y:.*]]: memref<70x5xf32, 1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 3, 1, 1>}
// CHECK-DAG:     %[[C128:.*]] = arith.constant 128 : index
// CHECK-DAG:     %[[C350:.*]] = arith.constant 350 : index
// CHECK-DAG:     %[[C70:.*]] = arith.constant 70 : index
// CHECK:         %[[BLOCK:.*]] = gpu.block_id x
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         %[[FIRST:.*]] = arith.muli %[[BLOCK]], %[[C128]]
// CHECK:         %[[N:.*]] = arith.addi %[[FIRST]], %[[THREAD]]
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[N]], %[[C350]]
// CHECK:         scf.if %[[IN]] {
// CHECK:           %[[J:.*]] = arith.remui %[[N]], %[[C70]]
// CHECK:           %[[I:.*]] = arith.divui %[[N]], %[[C70]]
// CHECK:           %[[V:.*]] = memref.load %[[X]][%[[I]], %[[J]]]
// CHECK:           %[[R:.*]] = arith.negf %[[V]]
// CHECK:           memref.store %[[R]], %[[Y]][%[[J]], %[[I]]]
// CHECK-NOT:     memref.load
gpu.func @elementwise(%x: memref<5x70xf32, 1>, %y: memref<70x5xf32, 1>) kernel attributes {cuda.plain} {
  linalg.generic {indexing_maps = [#id, #swap], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<5x70xf32, 1>) outs(%y : memref<70x5xf32, 1>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.negf %in : f32
    linalg.yield %r : f32
  }
  gpu.return
}

// A full block needs no guard. A result along the loop of the thread is stored
// there, the others stay in registers. Old values are read where they are used.
// CHECK-LABEL: gpu.func @results
// CHECK-SAME:    (%[[X:.*]]: memref<128x7xf32, 1>, %[[SUM:.*]]: memref<128xf32, 1>, %[[COPY:.*]]: memref<128x7xi64, 1>, %[[MAX:.*]]: memref<128xf32, 1>)
// CHECK-NOT:     scf.if
// CHECK:         %[[N:.*]] = arith.addi
// CHECK:         %[[OLD:.*]] = memref.load %[[SUM]][%[[N]]]
// CHECK:         %[[OLDMAX:.*]] = memref.load %[[MAX]][%[[N]]]
// CHECK:         %[[R:.*]]:2 = scf.for %[[J:.*]] = %c0 to %c7 step %c1 iter_args(%[[S:.*]] = %[[OLD]], %[[M:.*]] = %[[OLDMAX]]) -> (f32, f32) {
// CHECK:           %[[V:.*]] = memref.load %[[X]][%[[N]], %[[J]]]
// CHECK-NOT:       memref.load
// CHECK:           %[[NEXT:.*]] = arith.addf %[[S]], %[[V]]
// CHECK:           %[[NEXTMAX:.*]] = arith.maximumf %[[M]], %[[V]]
// CHECK:           %[[NUMBER:.*]] = arith.index_cast %[[J]] : index to i64
// CHECK:           memref.store %[[NUMBER]], %[[COPY]][%[[N]], %[[J]]]
// CHECK:           scf.yield %[[NEXT]], %[[NEXTMAX]]
// CHECK:         memref.store %[[R]]#0, %[[SUM]][%[[N]]]
// CHECK:         memref.store %[[R]]#1, %[[MAX]][%[[N]]]
gpu.func @results(%x: memref<128x7xf32, 1>, %sum: memref<128xf32, 1>,
                  %copy: memref<128x7xi64, 1>, %max: memref<128xf32, 1>) kernel {
  linalg.generic {indexing_maps = [#id, #outer, #id, #outer], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<128x7xf32, 1>)
      outs(%sum, %copy, %max : memref<128xf32, 1>, memref<128x7xi64, 1>, memref<128xf32, 1>) {
  ^bb0(%in: f32, %s: f32, %c: i64, %m: f32):
    %next = arith.addf %s, %in : f32
    %larger = arith.maximumf %m, %in : f32
    %j = linalg.index 1 : index
    %number = arith.index_cast %j : index to i64
    linalg.yield %next, %number, %larger : f32, i64, f32
  }
  gpu.return
}

// Columns are threads as well, whatever the order of the loops. A window reads
// at computed positions, and elsewhere.
// CHECK-LABEL: gpu.func @columns
// CHECK-SAME:    (%[[X:.*]]: memref<12xf32, 1>, %[[AT:.*]]: memref<9xf32, 1>, %[[Y:.*]]: memref<5xf32, 1>)
// CHECK:         scf.if
// CHECK:           %[[SUM:.*]] = scf.for %[[I:.*]] = %c0 to %c3
// CHECK:             %[[TWICE:.*]] = arith.muli %[[J:.*]], %c2
// CHECK:             %[[AT0:.*]] = arith.addi %[[TWICE]], %[[I]]
// CHECK:             memref.load %[[X]][%[[AT0]]]
// CHECK:             %[[K:.*]] = arith.addi %[[I]], %[[J]]
// CHECK:             memref.load %[[AT]][%[[K]]]
// CHECK:           memref.store %[[SUM]], %[[Y]][%[[J]]]
gpu.func @columns(%x: memref<12xf32, 1>, %at: memref<9xf32, 1>, %y: memref<5xf32, 1>) kernel {
  %c3 = arith.constant 3 : index
  %extent = memref.subview %at[0] [3] [1] : memref<9xf32, 1> to memref<3xf32, strided<[1]>, 1>
  linalg.generic {indexing_maps = [#window, #outer, #inner], iterator_types = ["reduction", "parallel"]}
      ins(%x, %extent : memref<12xf32, 1>, memref<3xf32, strided<[1]>, 1>) outs(%y : memref<5xf32, 1>) {
  ^bb0(%in: f32, %unused: f32, %s: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.addi %i, %j : index
    %v = memref.load %at[%k] : memref<9xf32, 1>
    %p = arith.mulf %in, %v : f32
    %next = arith.addf %s, %p : f32
    linalg.yield %next : f32
  }
  gpu.return
}

// Rows of a forall are threads; what is within runs in order.
// CHECK-LABEL: gpu.func @rows
// CHECK:         scf.if
// CHECK-DAG:       %[[J:.*]] = arith.remui %{{.*}}, %c9
// CHECK-DAG:       %[[I0:.*]] = arith.divui %{{.*}}, %c9
// CHECK:           %[[I1:.*]] = arith.muli %[[I0]], %c2
// CHECK:           %[[I:.*]] = arith.addi %[[I1]], %c1
// CHECK:           %[[ROW:.*]] = memref.subview %{{.*}}[%[[I]], %[[J]], 0]
// CHECK:           scf.for %[[K:.*]] = %c0 to %c7
// CHECK:             memref.store %{{.*}}, %[[ROW]][%[[K]]]
gpu.func @rows(%x: memref<5x9x7xf32, 1>) kernel {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i, %j) = (1, 0) to (5, 9) step (2, 1) {
    %row = memref.subview %x[%i, %j, 0] [1, 1, 7] [1, 1, 1]
        : memref<5x9x7xf32, 1> to memref<7xf32, strided<[1], offset: ?>, 1>
    linalg.fill ins(%zero : f32) outs(%row : memref<7xf32, strided<[1], offset: ?>, 1>)
  }
  gpu.return
}

// One element needs no loop, but a block as any other.
// CHECK-LABEL: gpu.func @scalar
// CHECK-SAME:    known_grid_size = array<i32: 1, 1, 1>
// CHECK:         %[[T:.*]] = gpu.thread_id x
// CHECK:         scf.if
// CHECK:           memref.store
gpu.func @scalar(%x: memref<f32, 1>) kernel {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%x : memref<f32, 1>)
  gpu.return
}

// CHECK-LABEL: gpu.func @total
// CHECK-SAME:    known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>
// CHECK-NOT:     gpu.thread_id
// CHECK:         scf.for
// CHECK:           scf.for
gpu.func @total(%x: memref<5x70xf32, 1>, %s: memref<f32, 1>) kernel {
  // expected-remark @below {{serial kernel: no loop of it is known to be parallel, so it runs on one thread}}
  linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<5x70xf32, 1>) outs(%s : memref<f32, 1>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %out, %in : f32
    linalg.yield %r : f32
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @recurrence
// CHECK-SAME:    known_block_size = array<i32: 1, 1, 1>
gpu.func @recurrence(%x: memref<9xf32, 1>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-remark @below {{serial kernel}}
  scf.for %i = %c0 to %c8 step %c1 {
    %next = arith.addi %i, %c1 : index
    %v = memref.load %x[%i] : memref<9xf32, 1>
    memref.store %v, %x[%next] : memref<9xf32, 1>
  }
  gpu.return
}

// Who mapped a kernel before has the last word.
// CHECK-LABEL: gpu.func @mapped
// CHECK-SAME:    known_block_size = array<i32: 32, 1, 1>
// CHECK-NEXT:    gpu.return
gpu.func @mapped() kernel attributes {known_block_size = array<i32: 32, 1, 1>,
                                      known_grid_size = array<i32: 5, 1, 1>} {
  gpu.return
}
}
