// RUN: penstock-opt %s --pipeline-parallelize=threshold=64 | FileCheck %s
// RUN: sed 's/threads(2)//' %s | penstock-opt --pipeline-parallelize=threshold=64 | FileCheck %s --check-prefix=ONE

// The large op goes to a function that both threads run; the small one stays.
// CHECK:         llvm.func @penstock_parallel(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64)
// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME:    %[[D:.*]]: !llvm.ptr,
// CHECK:         %[[C:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, ptr, f32)>
// CHECK:         %[[F:.*]] = constant @kernel.part : (!llvm.ptr, i64) -> ()
// CHECK:         %[[P:.*]] = builtin.unrealized_conversion_cast %[[F]]
// CHECK:         %[[N:.*]] = llvm.mlir.constant(2 : i64)
// CHECK:         llvm.call @penstock_parallel(%[[D]], %[[P]], %[[C]], %[[N]])
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : memref<5xf32>)
// CHECK:         return
// CHECK-LABEL: func.func private @kernel.part(%{{.*}}: !llvm.ptr, %{{.*}}: i64) attributes {pipeline.target = #cpu.target<threads(2)>}
// CHECK:         scf.for
// CHECK:           memref.subview {{.*}} memref<5x16xf32> to memref<1x16xf32
// CHECK:           linalg.generic

// ONE-NOT: penstock_parallel
// ONE-COUNT-2: linalg.generic
// ONE-NOT: penstock_parallel
#id = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i) -> (i)>
func.func private @kernel(%device: !llvm.ptr, %x: memref<5x16xf32>, %s: f32, %y: memref<5xf32>, %z: memref<5x16xf32>) attributes {pipeline.target = #cpu.target<threads(2)>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<5x16xf32>) outs(%z : memref<5x16xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.mulf %a, %s : f32  linalg.yield %r : f32 }
  linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%y : memref<5xf32>) {
    ^bb0(%a: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 }
  return
}
