// RUN: penstock-opt %s --verify-roundtrip | FileCheck %s

// Library calls: as pipeline-select-library makes them, with scratch, and with
// packed weights.

// CHECK: kernel.gemm %{{.*}}, %{{.*}}, %{{.*}} sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] :
// CHECK: kernel.gemm {{.*}} accumulate config(#cpu.gemm<>) scratch <4096 at 64> :
// CHECK: kernel.gemm %{{.*}}, %{{.*}}, %{{.*}} packed(%{{.*}} : memref<176xf32>) sizes [5, 11, 7] {{.*}} config(#cpu.gemm<panels(11 by 16)>) :
func.func @products(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>, %p: memref<176xf32>) {
  kernel.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
  kernel.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] accumulate config(#cpu.gemm<>) scratch <4096 at 64> : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
  kernel.gemm %a, %b, %c packed(%p : memref<176xf32>) sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] config(#cpu.gemm<panels(11 by 16)>) : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
  return
}

// CHECK: kernel.conv forward %{{.*}}, %{{.*}}, %{{.*}} packed(%{{.*}} : memref<208xf32>) strides [2] dilations [1] pads [1, 1] groups(1) config(#cpu.conv<upright>) scratch <4096 at 64> :
// CHECK: kernel.conv input_grad %{{.*}} groups(1) config(#cpu.conv<library threads(2)>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
// CHECK: kernel.conv weight_grad %{{.*}} groups(1) :
func.func @convolutions(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>, %p: memref<208xf32>) {
  kernel.conv forward %x, %w, %y packed(%p : memref<208xf32>) strides [2] dilations [1] pads [1, 1] groups(1) config(#cpu.conv<upright>) scratch <4096 at 64> : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  kernel.conv input_grad %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cpu.conv<library threads(2)>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  kernel.conv weight_grad %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// CHECK: kernel.pack %{{.*}} to %{{.*}} order(#cpu.panels<[16, 8] strides[1, 16] width 384 stride 16>) : memref<8x16xf32>, memref<256xf32>
func.func @packing(%w: memref<8x16xf32>, %p: memref<256xf32>) {
  kernel.pack %w to %p order(#cpu.panels<[16, 8] strides [1, 16] width 384 stride 16>) : memref<8x16xf32>, memref<256xf32>
  return
}

// CHECK: prepacked of @s {kernel.packing = #cpu.panels<
pipeline.stage @s
pipeline.variable @w : tensor<8x16xf32> parameter of @s
pipeline.variable @w.panels : tensor<256xf32> prepacked of @s {kernel.packing = #cpu.panels<[16, 8] strides [1, 16] width 384 stride 16>, pipeline.parameter = @w}

// CHECK: kernel.launch @kernels::@f grid [7, 1, 1] block [128, 1, 1](%{{.*}}, %{{.*}}, %{{.*}}) : memref<11x3xf32, strided<[79, 1], offset: ?>>, f32, index
// CHECK: kernel.launch @kernels::@g grid [1, 3, 5] block [32, 8, 1]
func.func @launches(%x: memref<11x3xf32, strided<[79, 1], offset: ?>>, %rate: f32, %n: index) {
  kernel.launch @kernels::@f grid [7, 1, 1] block [128, 1, 1] (%x, %rate, %n) : memref<11x3xf32, strided<[79, 1], offset: ?>>, f32, index
  kernel.launch @kernels::@g grid [1, 3, 5] block [32, 8, 1]
  return
}

// CHECK: kernel.constant @c : memref<3x5xf32>
memref.global "private" constant @c : memref<3x5xf32> = dense<2.0>
func.func @constant() -> memref<3x5xf32> {
  %c = kernel.constant @c : memref<3x5xf32>
  return %c : memref<3x5xf32>
}

// CHECK: %[[RATE:.*]] = kernel.scalar "s0.U"[1] : memref<f32>
// CHECK: kernel.scalar "s0.U"[0] : memref<index>
// CHECK: kernel.action "s0.F" key(%{{.*}} of 3) {
// CHECK-NEXT: func.call @stage(%[[RATE]])
// CHECK: kernel.action "s0.U" key(%{{.*}} of 0) scalars(2) {
func.func private @stage(memref<f32>)
func.func @actions(%key: index) {
  %rate = kernel.scalar "s0.U"[1] : memref<f32>
  %number = kernel.scalar "s0.U"[0] : memref<index>
  kernel.action "s0.F" key(%key of 3) {
    func.call @stage(%rate) : (memref<f32>) -> ()
  }
  kernel.action "s0.U" key(%key of 0) scalars(2) {}
  return
}
