// RUN: penstock-opt %s --pipeline-gpu-updates --canonicalize --cse | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#line = affine_map<(i) -> (i)>

gpu.module @kernels {

// Two blocks for 700 elements, and one for each of the others.
// CHECK-LABEL: gpu.func @merged
// CHECK-SAME:    (%[[A:.*]]: memref<700xf32, 1> {{.*}}, %[[B:.*]]: memref<5x7xf32, 1> {{.*}}, %[[C:.*]]: memref<100xf32, 1> {{.*}})
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 4, 1, 1>
// CHECK:         %[[ISA:.*]] = arith.cmpi ult, %block_id_x, %c2
// CHECK:         %[[U:.*]]:3 = scf.if %[[ISA]] -> (memref<?xf32, 1>, index, index) {
// CHECK:           memref.cast %[[A]]
// CHECK:           scf.yield %{{.*}}, %c700, %c0
// CHECK:           %[[ISB:.*]] = arith.cmpi ult, %block_id_x, %c3
// CHECK-DAG:       arith.select %[[ISB]], %c35, %c100
// CHECK-DAG:       arith.select %[[ISB]], %c2, %c3
// CHECK:           scf.if %[[ISB]]
// CHECK:             memref.collapse_shape %[[B]]
// CHECK:             memref.cast %[[C]]
// CHECK:         %[[BLOCK:.*]] = arith.subi %block_id_x, %[[U]]#2
// CHECK:         %[[AT:.*]] = arith.muli %{{.*}}, %c4
// CHECK:         %[[END:.*]] = arith.addi %[[AT]], %c4
// CHECK:         %[[WHOLE:.*]] = arith.cmpi ule, %[[END]], %[[U]]#1
// CHECK:         scf.if %[[WHOLE]] {
// CHECK:           vector.load %[[U]]#0[%[[AT]]] {alignment = 16 : i64}
// CHECK:         } else {
// CHECK:           scf.for %[[I:.*]] = %[[AT]] to %[[U]]#1
// CHECK:             memref.load %[[U]]#0[%[[I]]]
gpu.func @merged(%a: memref<700xf32, 1> {llvm.align = 16 : i64}, %b: memref<5x7xf32, 1> {llvm.align = 16 : i64}, %c: memref<100xf32, 1> {llvm.align = 16 : i64}) kernel {
  scf.forall (%n) in (3) {
    scf.index_switch %n
    case 0 {
      linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%a : memref<700xf32, 1>) {
        ^bb0(%v: f32): %r = arith.negf %v : f32  linalg.yield %r : f32 }
      scf.yield
    }
    case 1 {
      linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<5x7xf32, 1>) {
        ^bb0(%v: f32): %r = arith.negf %v : f32  linalg.yield %r : f32 }
      scf.yield
    }
    case 2 {
      linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%c : memref<100xf32, 1>) {
        ^bb0(%v: f32): %r = arith.negf %v : f32  linalg.yield %r : f32 }
      scf.yield
    }
    default {
    }
  }
  gpu.return
}
}
