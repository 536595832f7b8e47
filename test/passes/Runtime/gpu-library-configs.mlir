// RUN: penstock-opt %s --convert-pipeline-to-runtime --pipeline-pass-addresses --convert-scf-to-cf \
// RUN:   --finalize-memref-to-llvm \
// RUN:   --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 \
// RUN:   --convert-arith-to-llvm --convert-cf-to-llvm \
// RUN:   --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s

// What the runtime of a GPU reads: a product has its scratch alone, a
// convolution a penstock_cuda_conv with its knobs behind it.

pipeline.stage @s devices [0]
pipeline.task @s.F forward of @s
pipeline.schedule @train microbatches(2)
pipeline.device 0 target(#cuda.target<"sm_80,sm_90">)
pipeline.arena 0 bytes(8388608)
pipeline.variable @a : tensor<2x3x7xf32> parameter of @s
pipeline.variable @b : tensor<5x3x3xf32> parameter of @s
pipeline.variable @c : tensor<2x5x4xf32> parameter of @s

// CHECK-DAG: @penstock.gemms = internal constant [2 x {{.*}} ptr @[[PRODUCT:penstock.shape[-0-9.]*]], { i64, ptr } { i64 1024, ptr @{{[^ ]*}} } }, {{.*}} ptr @[[EPILOGUE:penstock.shape[-0-9.]*]], { i64, ptr }
// CHECK-DAG: @penstock.convs = internal constant [2 x {{.*}} ptr @[[PLANNED:penstock.shape[-0-9.]*]], { i64, ptr } { i64 512, ptr @{{[^ ]*}} } }, {{.*}} ptr @[[OPEN:penstock.shape[-0-9.]*]], { i64, ptr } { i64 768, ptr @{{[^ ]*}} } }]
// CHECK-DAG: @[[PRODUCT]] = {{.*}} [3 x i64] zeroinitializer
// CHECK-DAG: @[[EPILOGUE]] = {{.*}} [3 x i64] [i64 1, i64 0, i64 1]
// CHECK-DAG: @[[PLANNED]] = {{.*}} [9 x i64] [i64 1, i64 0, i64 70, i64 91900, i64 2, i64 2, i64 12, i64 18, i64 0]
// CHECK-DAG: @[[OPEN]] = {{.*}} [5 x i64] [i64 0, i64 1, i64 -1, i64 0, i64 0]
func.func private @kernel(%dev: !llvm.ptr, %a: memref<2x3x7xf32>, %b: memref<5x3x3xf32>, %c: memref<2x5x4xf32> {pipeline.out}, %s: memref<4096xi8> {pipeline.scratch}) {
  kernel.gemm %a, %b, %c sizes [2, 3, 5] strides [5, 1] [3, 1] [3, 1] config(#cuda.gemm<workspace(1024)>) scratch <1024 at 64> : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  %pending = kernel.gemm %a, %b, %c relu sizes [2, 3, 5] strides [5, 1] [3, 1] [3, 1] config(#cuda.gemm<tf32(true)>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32> -> i1
  kernel.conv forward %a, %b, %c strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<direct(true) engine(70) knobs(2, 12, 18, 0) cudnn(91900) workspace(512)>) scratch <512 at 64> : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  kernel.conv forward %a, %b, %c strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<tf32(true) workspace(768)>) scratch <768 at 64> : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}
func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %a = pipeline.slot @a[%first] at(0) : memref<2x3x7xf32>
  %b = pipeline.slot @b[%first] at(256) : memref<5x3x3xf32>
  %c = pipeline.slot @c[%first] at(512) : memref<2x5x4xf32>
  %s = pipeline.scratch at(65536) : memref<4096xi8>
  func.call @kernel(%dev, %a, %b, %c, %s) : (!llvm.ptr, memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>, memref<4096xi8>) -> ()
  return
}
