func.func private @kernel(%a: memref<4x6xf32>, %b: memref<6x9xf32>, %c: memref<4x9xf32>) attributes {pipeline.target = #cpu.target<>} {
  kernel.gemm %a, %b, %c sizes [2, 3, 2] strides [12, 3] [18, 3] [18, 3]
   config(#cpu.gemm<>) : memref<4x6xf32>, memref<6x9xf32>, memref<4x9xf32>
  return
}
