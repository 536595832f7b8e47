// RUN: penstock-opt %s --pipeline-share-scratch --split-input-file | FileCheck %s
// RUN: not penstock-opt %S/inputs/called-kernel.mlir --pipeline-share-scratch \
// RUN:   2>&1 | FileCheck %s --check-prefix=CALLED

// A library call without scratch takes nothing.

// CHECK-LABEL: func.func private @product.kernel
// CHECK-SAME: memref<[[END:[0-9]+]]xi8> {pipeline.scratch}
// CHECK: %[[FIRST:.*]] = memref.view %arg3[%[[AT:[a-z0-9_]+]]][] : memref<[[END]]xi8> to memref<64x96xf32>
// CHECK: %c0{{.*}} = arith.constant 0 : index
// CHECK: memref.view %arg3[%c0{{.*}}][] : memref<[[END]]xi8> to memref<16x96xf32>
// CHECK: kernel.gemm %[[FIRST]],
func.func private @product.kernel(%a: memref<64x96xf32>, %b: memref<96x80xf32>, %c: memref<64x80xf32> {pipeline.out}, %s: memref<30720xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %c0 = arith.constant 0 : index
  %0 = memref.view %s[%c0][] : memref<30720xi8> to memref<64x96xf32>
  %c24576 = arith.constant 24576 : index
  %1 = memref.view %s[%c24576][] : memref<30720xi8> to memref<16x96xf32>
  linalg.copy ins(%a : memref<64x96xf32>) outs(%0 : memref<64x96xf32>)
  kernel.gemm %0, %b, %c sizes [64, 80, 96] strides [1, 64] [1, 96] [80, 1] config(#cpu.gemm<>) : memref<64x96xf32>, memref<96x80xf32>, memref<64x80xf32>
  %cst = arith.constant 0.0 : f32
  linalg.fill ins(%cst : f32) outs(%1 : memref<16x96xf32>)
  return
}

// -----

// Without library calls, only what is never alive together shares bytes.

// CHECK-LABEL: func.func private @plain.kernel
// CHECK-SAME: memref<64xi8> {pipeline.scratch}
func.func private @plain.kernel(%a: memref<7xf32> {pipeline.out}, %s: memref<128xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
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

// -----

// The scratch of a library call lies beside what is alive at the call, and where
// other temporaries lie that are not. A kernel without temporaries gets the
// argument for it.

// CHECK-LABEL: func.func private @convolution.kernel
// CHECK-SAME: memref<[[END:[0-9]+]]xi8> {pipeline.scratch}
// CHECK: %[[X:.*]] = memref.view %{{.*}}[%[[AT:c[0-9]+]]{{.*}}][] : memref<[[END]]xi8> to memref<2x8x16x24xf32>
// CHECK: kernel.conv forward %[[X]], {{.*}} config(#cpu.conv<tiles_4x4>) scratch <{{[0-9]+}} at {{[0-9]+}}> :
func.func private @convolution.kernel(%a: memref<2x8x16x24xf32>, %b: memref<16x8x3x3xf32>, %c: memref<2x16x16x24xf32> {pipeline.out}, %s: memref<24704xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %c0 = arith.constant 0 : index
  %0 = memref.view %s[%c0][] : memref<24704xi8> to memref<2x8x16x24xf32>
  linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
  kernel.conv forward %0, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
  return
}

// CHECK-LABEL: func.func private @alone.kernel
// CHECK-SAME: %{{.*}}: memref<2x16x16x24xf32> {pipeline.out}, %{{.*}}: memref<{{[0-9]+}}xi8> {pipeline.scratch})
// CHECK: kernel.conv {{.*}} config(#cpu.conv<tiles_4x4>) scratch <{{[0-9]+}} at 0> :
func.func private @alone.kernel(%a: memref<2x8x16x24xf32>, %b: memref<16x8x3x3xf32>, %c: memref<2x16x16x24xf32> {pipeline.out}) attributes {pipeline.target = #cpu.target<>} {
  kernel.conv forward %a, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
  return
}


// -----

// What is on tensors, and called, is no kernel.

// CHECK-LABEL: func.func private @tensors(
// CHECK-NOT: pipeline.scratch
// CHECK: call @tensors
func.func private @tensors(%a: tensor<2x8x16x24xf32>, %b: tensor<16x8x3x3xf32>, %c: tensor<2x16x16x24xf32>) -> tensor<2x16x16x24xf32> {
  %0 = nn.conv %a, %b outs(%c) strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) : tensor<2x8x16x24xf32>, tensor<16x8x3x3xf32>, tensor<2x16x16x24xf32> -> tensor<2x16x16x24xf32>
  return %0 : tensor<2x16x16x24xf32>
}
func.func @caller(%a: tensor<2x8x16x24xf32>, %b: tensor<16x8x3x3xf32>, %c: tensor<2x16x16x24xf32>) -> tensor<2x16x16x24xf32> {
  %0 = func.call @tensors(%a, %b, %c) : (tensor<2x8x16x24xf32>, tensor<16x8x3x3xf32>, tensor<2x16x16x24xf32>) -> tensor<2x16x16x24xf32>
  return %0 : tensor<2x16x16x24xf32>
}

// CALLED: error: is called already: its temporaries are placed before pipeline-lower-schedule
