// Which products oneDNN has code for depends on the processor.
// REQUIRES: avx512
// RUN: penstock-opt %s --pipeline-verify-program --verify-diagnostics

pipeline.stage @s devices [0]
pipeline.task @F forward of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(2048)
func.func private @kernel(%a: memref<4x6xf32>, %b: memref<6x9xf32>, %c: memref<4x9xf32>, %t: memref<64xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  // expected-error @below {{no library can compute this product: oneDNN has only its reference implementation}}
  kernel.gemm %a, %b, %c sizes [2, 3, 2] strides [12, 3] [18, 3] [18, 3]
    config(#cpu.gemm<>) : memref<4x6xf32>, memref<6x9xf32>, memref<4x9xf32>
  return
}
pipeline.variable @a : tensor<4x6xf32> parameter of @s
pipeline.variable @b : tensor<6x9xf32> parameter of @s
pipeline.variable @c : tensor<4x9xf32> parameter of @s
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %one = arith.constant 1 : index
  %end = arith.addi %first, %updates : index
  scf.for %n = %first to %end step %one {
    pipeline.mark @F[%n]
  }
  %a = pipeline.slot @a[%first] at(0) : memref<4x6xf32>
  %b = pipeline.slot @b[%first] at(128) : memref<6x9xf32>
  %c = pipeline.slot @c[%first] at(512) : memref<4x9xf32>
  %t = pipeline.scratch at(1024) : memref<64xi8>
  func.call @kernel(%a, %b, %c, %t) : (memref<4x6xf32>, memref<6x9xf32>, memref<4x9xf32>, memref<64xi8>) -> ()
  return
}
