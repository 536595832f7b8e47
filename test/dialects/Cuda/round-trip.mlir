// RUN: penstock-opt %s | penstock-opt | FileCheck %s

// CHECK: pipeline.device 0 target(#cuda.target<"sm_90">)
// CHECK: pipeline.device 1 target(#cuda.target<"sm_80,sm_90a" workspace(1048576)>)
// CHECK: pipeline.device 2 target(#cuda.target<"emulated" workspace(0)>)
// CHECK: pipeline.device 3 target(#cuda.target<"sm_90" tf32(true)>)
pipeline.device 0 target(#cuda.target<"sm_90">)
pipeline.device 1 target(#cuda.target<"sm_80,sm_90a" workspace(1048576)>)
pipeline.device 2 target(#cuda.target<"emulated" workspace(0)>)
pipeline.device 3 target(#cuda.target<"sm_90" tf32(true)>)

// CHECK: kernel.gemm {{.*}} config(#cuda.gemm<workspace(4096)>)
func.func @product(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) {
  kernel.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] config(#cuda.gemm<workspace(4096)>) : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
  return
}

// CHECK: kernel.conv forward {{.*}} config(#cuda.conv<>)
// CHECK: kernel.conv forward {{.*}} config(#cuda.conv<workspace(4096)>)
// CHECK: kernel.conv forward {{.*}} config(#cuda.conv<direct(true)engine(70)knobs(2, 12, 18, 0)cudnn(91900)>)
func.func @convolution(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<workspace(4096)>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<direct(true) engine(70) knobs(2, 12, 18, 0) cudnn(91900)>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// CHECK: gpu.module @cuda_kernels attributes {cuda.target = #cuda.target<"sm_90">}
gpu.module @cuda_kernels attributes {cuda.target = #cuda.target<"sm_90">} {
}
