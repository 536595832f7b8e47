// RUN: penstock-opt %s --pipeline-gpu-scatters --canonicalize --cse | FileCheck %s

gpu.module @kernels {

// Four owners times two parts of a row of 37 elements: 8 warps in 2 blocks.
// CHECK-LABEL: gpu.func @rows
// CHECK-SAME:    (%[[X:.*]]: memref<3x75x37xf32, 1>, %[[AT:.*]]: memref<3x75xindex, 1>, %[[Y:.*]]: memref<19x37xf32, 1>)
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK-DAG:     %[[LANE:.*]] = arith.remui %{{.*}}, %c32
// CHECK:         %[[ELEMENT:.*]] = arith.addi %{{.*}}, %[[LANE]]
// CHECK:         %[[HAS:.*]] = arith.cmpi ult, %[[ELEMENT]], %c37
// CHECK:         scf.for %[[B:.*]] = %c0 to %c3 step %c1 {
// CHECK:           scf.for %[[FIRST:.*]] = %c0 to %c75 step %c32 {
// CHECK:             %[[OWN:.*]] = arith.addi %[[FIRST]], %[[LANE]]
// CHECK:             %[[IS:.*]] = arith.cmpi slt, %[[OWN]], %c75
// CHECK:             %[[MINE:.*]] = scf.if %[[IS]] -> (i1) {
// CHECK:               %[[PLACE:.*]] = memref.load %[[AT]][%[[B]], %[[OWN]]]
// CHECK:               %[[REST:.*]] = arith.remui %[[PLACE]], %c4
// CHECK:               %[[EQ:.*]] = arith.cmpi eq, %[[REST]], %[[OWNER:.*]] : index
// CHECK:               scf.yield %[[EQ]]
// CHECK:             } else {
// CHECK:               scf.yield %false
// CHECK:             %[[VOTES:.*]] = nvvm.vote.sync ballot %c-1_i32, %[[MINE]] -> i32
// CHECK:             scf.while (%[[LEFT:.*]] = %[[VOTES]]) : (i32) -> i32 {
// CHECK:               arith.cmpi ne, %[[LEFT]], %c0_i32
// CHECK:             } do {
// CHECK:               %[[DISTANCE:.*]] = "llvm.intr.cttz"(%[[NOW:.*]]) <{is_zero_poison = true}>
// CHECK:               %[[FAR:.*]] = arith.index_castui %[[DISTANCE]] : i32 to index
// CHECK:               %[[I:.*]] = arith.addi %[[FIRST]], %[[FAR]]
// CHECK:               scf.if %[[HAS]] {
// CHECK:                 %[[PLACE:.*]] = memref.load %[[AT]][%[[B]], %[[I]]]
// CHECK:                 %[[V:.*]] = memref.load %[[X]][%[[B]], %[[I]], %[[ELEMENT]]]
// CHECK:                 memref.load %[[Y]][%[[PLACE]], %[[ELEMENT]]]
// CHECK:                 memref.store %{{.*}}, %[[Y]][%[[PLACE]], %[[ELEMENT]]]
// CHECK:               %[[LESS:.*]] = arith.subi %[[NOW]], %c1_i32
// CHECK:               %[[NEXT:.*]] = arith.andi %[[NOW]], %[[LESS]]
// CHECK:               scf.yield %[[NEXT]]
gpu.func @rows(%x: memref<3x75x37xf32, 1>, %at: memref<3x75xindex, 1>, %y: memref<19x37xf32, 1>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c75 = arith.constant 75 : index
  scf.forall (%owner, %element) in (4, 37) {
    scf.for %b = %c0 to %c3 step %c1 {
      scf.for %i = %c0 to %c75 step %c1 {
        %place = memref.load %at[%b, %i] : memref<3x75xindex, 1>
        %rest = arith.remui %place, %c4 : index
        %mine = arith.cmpi eq, %rest, %owner : index
        scf.if %mine {
          %v = memref.load %x[%b, %i, %element] : memref<3x75x37xf32, 1>
          %old = memref.load %y[%place, %element] : memref<19x37xf32, 1>
          %sum = arith.addf %old, %v : f32
          memref.store %sum, %y[%place, %element] : memref<19x37xf32, 1>
        }
      }
    }
  }
  gpu.return
}

// An index of its own for each element, a few indices, a thread per element, and
// a loop that is no scatter.
// CHECK-LABEL: gpu.func @elements
// CHECK-NOT:     nvvm.vote.sync
// CHECK:         scf.forall
gpu.func @elements(%x: memref<75x37xf32, 1>, %at: memref<75x37xindex, 1>, %y: memref<19x37xf32, 1>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c75 = arith.constant 75 : index
  scf.forall (%owner, %element) in (4, 37) {
    scf.for %i = %c0 to %c75 step %c1 {
      %place = memref.load %at[%i, %element] : memref<75x37xindex, 1>
      %rest = arith.remui %place, %c4 : index
      %mine = arith.cmpi eq, %rest, %owner : index
      scf.if %mine {
        %v = memref.load %x[%i, %element] : memref<75x37xf32, 1>
        memref.store %v, %y[%place, %element] : memref<19x37xf32, 1>
      }
    }
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @few
// CHECK-NOT:     nvvm.vote.sync
// CHECK:         scf.forall
gpu.func @few(%x: memref<3x37xf32, 1>, %at: memref<3xindex, 1>, %y: memref<19x37xf32, 1>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.forall (%owner, %element) in (4, 37) {
    scf.for %i = %c0 to %c3 step %c1 {
      %place = memref.load %at[%i] : memref<3xindex, 1>
      %rest = arith.remui %place, %c4 : index
      %mine = arith.cmpi eq, %rest, %owner : index
      scf.if %mine {
        %v = memref.load %x[%i, %element] : memref<3x37xf32, 1>
        memref.store %v, %y[%place, %element] : memref<19x37xf32, 1>
      }
    }
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @plain
// CHECK-NOT:     nvvm.vote.sync
// CHECK:         scf.forall
gpu.func @plain(%x: memref<75xf32, 1>, %at: memref<75xindex, 1>, %y: memref<19xf32, 1>) kernel attributes {cuda.plain} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c75 = arith.constant 75 : index
  scf.forall (%owner) in (4) {
    scf.for %i = %c0 to %c75 step %c1 {
      %place = memref.load %at[%i] : memref<75xindex, 1>
      %rest = arith.remui %place, %c4 : index
      %mine = arith.cmpi eq, %rest, %owner : index
      scf.if %mine {
        %v = memref.load %x[%i] : memref<75xf32, 1>
        memref.store %v, %y[%place] : memref<19xf32, 1>
      }
    }
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @other
// CHECK-NOT:     nvvm.vote.sync
// CHECK:         scf.forall
gpu.func @other(%x: memref<75xf32, 1>, %at: memref<75xindex, 1>, %y: memref<19xf32, 1>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c75 = arith.constant 75 : index
  scf.forall (%row) in (19) {
    scf.for %i = %c0 to %c75 step %c1 {
      %place = memref.load %at[%i] : memref<75xindex, 1>
      %mine = arith.cmpi eq, %place, %row : index
      scf.if %mine {
        %v = memref.load %x[%i] : memref<75xf32, 1>
        memref.store %v, %y[%row] : memref<19xf32, 1>
      }
    }
  }
  gpu.return
}

}
