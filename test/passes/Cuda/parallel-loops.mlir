// RUN: penstock-opt %s --pipeline-parallel-loops | FileCheck %s

// The gradient of a maximum pooling: planes share nothing; windows of a plane
// may add to the same element.
// CHECK-LABEL: func.func @planes
// CHECK:         scf.forall (%[[PLANE:.*]]) in (5) {
// CHECK:           scf.for %[[WINDOW:.*]] = %c0 to %c7 step %c1 {
// CHECK:             memref.load %{{.*}}[%[[PLANE]], %[[WINDOW]]] : memref<5x7xi32>
// CHECK:             memref.store %{{.*}}, %{{.*}}[%[[PLANE]], %{{.*}}] : memref<5x9xf32>
func.func @planes(%at: memref<5x7xi32>, %dy: memref<5x7xf32>,
                  %dx: memref<5x9xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  scf.for %plane = %c0 to %c5 step %c1 {
    scf.for %window = %c0 to %c7 step %c1 {
      %number = memref.load %at[%plane, %window] : memref<5x7xi32>
      %i = arith.index_cast %number : i32 to index
      %old = memref.load %dx[%plane, %i] : memref<5x9xf32>
      %more = memref.load %dy[%plane, %window] : memref<5x7xf32>
      %sum = arith.addf %old, %more : f32
      memref.store %sum, %dx[%plane, %i] : memref<5x9xf32>
    }
  }
  return
}

// Nested loops become one; arithmetic between them goes along. Bounds need not
// begin at zero.
// CHECK-LABEL: func.func @nest
// CHECK:         scf.forall (%[[I:.*]], %[[J:.*]]) = (1, 0) to (5, 9) step (2, 1) {
// CHECK:           %[[K:.*]] = arith.muli %[[I]], %[[I]]
// CHECK:           %[[V:.*]] = memref.load %{{.*}}[%[[K]]]
// CHECK:           memref.store %[[V]], %{{.*}}[%[[J]], %[[I]]]
// CHECK-NOT:     scf.for
func.func @nest(%x: memref<17xf32>, %y: memref<9x5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c5 step %c2 {
    %k = arith.muli %i, %i : index
    scf.for %j = %c0 to %c9 step %c1 {
      %v = memref.load %x[%k] : memref<17xf32>
      memref.store %v, %y[%j, %i] : memref<9x5xf32>
    }
  }
  return
}

// Rows that are taken by an index from memory are read, not written.
#row = affine_map<(d) -> (d)>
// CHECK-LABEL: func.func @gather
// CHECK:         scf.forall (%[[I:.*]]) in (5) {
// CHECK:           linalg.generic
func.func @gather(%at: memref<5xindex>, %x: memref<11x7xf32>,
                  %y: memref<5x7xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %k = memref.load %at[%i] : memref<5xindex>
    %from = memref.subview %x[%k, 0] [1, 7] [1, 1]
        : memref<11x7xf32> to memref<7xf32, strided<[1], offset: ?>>
    %to = memref.subview %y[%i, 0] [1, 7] [1, 1]
        : memref<5x7xf32> to memref<7xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
        ins(%from : memref<7xf32, strided<[1], offset: ?>>)
        outs(%to : memref<7xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
  }
  return
}

// Rows that are written by an index from memory keep their order. Each of their
// elements is a thread.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME:    (%{{.*}}: memref<5xindex>, %[[X:.*]]: memref<5x7xf32>, %[[Y:.*]]: memref<11x7xf32>)
// CHECK:         scf.forall (%[[E:.*]]) in (7) {
// CHECK-NEXT:      scf.for %[[I:.*]] = %c0 to %c5 step %c1 {
// CHECK:             %[[K:.*]] = memref.load
// CHECK-DAG:         %[[FROM:.*]] = memref.subview %[[X]][%[[I]], 0] [1, 7] [1, 1]
// CHECK-DAG:         %[[TO:.*]] = memref.subview %[[Y]][%[[K]], 0] [1, 7] [1, 1]
// CHECK-DAG:         %[[A:.*]] = memref.subview %[[FROM]][%[[E]]] [1] [1]
// CHECK-DAG:         %[[B:.*]] = memref.subview %[[TO]][%[[E]]] [1] [1]
// CHECK:             linalg.generic {{.*}} ins(%[[A]] : memref<1xf32, strided<[1], offset: ?>>) outs(%[[B]] : memref<1xf32, strided<[1], offset: ?>>)
func.func @scatter(%at: memref<5xindex>, %x: memref<5x7xf32>,
                   %y: memref<11x7xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %k = memref.load %at[%i] : memref<5xindex>
    %from = memref.subview %x[%i, 0] [1, 7] [1, 1]
        : memref<5x7xf32> to memref<7xf32, strided<[1], offset: ?>>
    %to = memref.subview %y[%k, 0] [1, 7] [1, 1]
        : memref<11x7xf32> to memref<7xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
        ins(%from : memref<7xf32, strided<[1], offset: ?>>)
        outs(%to : memref<7xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %out, %in : f32
      linalg.yield %sum : f32
    }
  }
  return
}

// An element of one row may be another one of the next row.
// CHECK-LABEL: func.func @windows
// CHECK-NOT:     scf.forall
// CHECK:         return
func.func @windows(%at: memref<5xindex>, %x: memref<5x7xf32>,
                   %y: memref<17xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %k = memref.load %at[%i] : memref<5xindex>
    %from = memref.subview %x[%i, 0] [1, 7] [1, 1]
        : memref<5x7xf32> to memref<7xf32, strided<[1], offset: ?>>
    %to = memref.subview %y[%k] [7] [1]
        : memref<17xf32> to memref<7xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
        ins(%from : memref<7xf32, strided<[1], offset: ?>>)
        outs(%to : memref<7xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %out, %in : f32
      linalg.yield %sum : f32
    }
  }
  return
}

// Iterations that read what another one wrote: by another index, through
// another view of the same memory, or in another dimension.
// CHECK-LABEL: func.func @sequential
// CHECK-NOT:     scf.forall
// CHECK:         return
func.func @sequential(%x: memref<9xf32>, %square: memref<9x9xf32>,
                      %scratch: memref<72xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c36 = arith.constant 36 : index
  scf.for %i = %c1 to %c9 step %c1 {
    %before = arith.subi %i, %c1 : index
    %v = memref.load %x[%before] : memref<9xf32>
    memref.store %v, %x[%i] : memref<9xf32>
  }
  scf.for %i = %c0 to %c9 step %c1 {
    %v = memref.load %square[%c0, %i] : memref<9x9xf32>
    memref.store %v, %square[%i, %c0] : memref<9x9xf32>
  }
  %all = memref.view %scratch[%c0][] : memref<72xi8> to memref<18xf32>
  %half = memref.view %scratch[%c36][] : memref<72xi8> to memref<9xf32>
  scf.for %i = %c0 to %c9 step %c1 {
    %v = memref.load %all[%i] : memref<18xf32>
    memref.store %v, %half[%i] : memref<9xf32>
  }
  return
}

// Distinct ranges of bytes of the same memory do not overlap.
// CHECK-LABEL: func.func @ranges
// CHECK:         scf.forall (%{{.*}}) in (9) {
func.func @ranges(%scratch: memref<72xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c36 = arith.constant 36 : index
  %first = memref.view %scratch[%c0][] : memref<72xi8> to memref<9xf32>
  %second = memref.view %scratch[%c36][] : memref<72xi8> to memref<9xf32>
  scf.for %i = %c0 to %c9 step %c1 {
    %v = memref.load %first[%i] : memref<9xf32>
    memref.store %v, %second[%i] : memref<9xf32>
  }
  return
}
