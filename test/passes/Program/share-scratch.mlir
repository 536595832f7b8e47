// RUN: penstock-opt %s --pipeline-share-scratch --split-input-file | FileCheck %s
// RUN: not penstock-opt %S/inputs/called-kernel.mlir --pipeline-share-scratch \
// RUN:   2>&1 | FileCheck %s --check-prefix=CALLED

// What is alive at a library call lies behind the call's scratch. What is not
// may lie in it.

// CHECK-LABEL: func.func private @product.kernel
// CHECK-SAME: memref<[[END:[0-9]+]]xi8> {pipeline.scratch}
// CHECK: %[[FIRST:.*]] = memref.view %arg3[%[[AT:[a-z0-9_]+]]][] : memref<[[END]]xi8> to memref<64x96xf32>
// CHECK: %c0{{.*}} = arith.constant 0 : index
// CHECK: memref.view %arg3[%c0{{.*}}][] : memref<[[END]]xi8> to memref<16x96xf32>
// CHECK: pipeline.gemm %[[FIRST]],
func.func private @product.kernel(%a: memref<64x96xf32>, %b: memref<96x80xf32>, %c: memref<64x80xf32> {pipeline.out}, %s: memref<30720xi8> {pipeline.scratch}) {
  %c0 = arith.constant 0 : index
  %0 = memref.view %s[%c0][] : memref<30720xi8> to memref<64x96xf32>
  %c24576 = arith.constant 24576 : index
  %1 = memref.view %s[%c24576][] : memref<30720xi8> to memref<16x96xf32>
  linalg.copy ins(%a : memref<64x96xf32>) outs(%0 : memref<64x96xf32>)
  pipeline.gemm %0, %b, %c sizes [64, 80, 96] strides [1, 64] [1, 96] [80, 1] : memref<64x96xf32>, memref<96x80xf32>, memref<64x80xf32>
  %cst = arith.constant 0.0 : f32
  linalg.fill ins(%cst : f32) outs(%1 : memref<16x96xf32>)
  return
}

// -----

// Without library calls, only what is never alive together shares bytes.

// CHECK-LABEL: func.func private @plain.kernel
// CHECK-SAME: memref<64xi8> {pipeline.scratch}
func.func private @plain.kernel(%a: memref<7xf32> {pipeline.out}, %s: memref<128xi8> {pipeline.scratch}) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %cst = arith.constant 0.0 : f32
  %0 = memref.view %s[%c0][] : memref<128xi8> to memref<7xf32>
  %1 = memref.view %s[%c64][] : memref<128xi8> to memref<7xf32>
  linalg.fill ins(%cst : f32) outs(%0 : memref<7xf32>)
  linalg.copy ins(%0 : memref<7xf32>) outs(%a : memref<7xf32>)
  linalg.fill ins(%cst : f32) outs(%1 : memref<7xf32>)
  return
}

// CALLED: error: is called already: its temporaries are placed before pipeline-lower-schedule
