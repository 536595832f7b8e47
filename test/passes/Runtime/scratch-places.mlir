// RUN: penstock-opt %s --convert-pipeline-to-runtime --pipeline-pass-addresses --convert-scf-to-cf \
// RUN:   --finalize-memref-to-llvm \
// RUN:   --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 \
// RUN:   --convert-arith-to-llvm --convert-cf-to-llvm \
// RUN:   --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s

// A library call finds its scratch in the temporaries of its kernel, which every
// device, and the replay, has elsewhere. Equal calls are prepared once where
// they have one place, and a kernel that no device runs, nowhere.

pipeline.stage @s devices [0, 1]
pipeline.task @s.F forward of @s
pipeline.schedule @train microbatches(2)
pipeline.device 0 target(#cpu.target<>)
pipeline.arena 0 bytes(8388608)
pipeline.device 1 target(#cpu.target<>)
pipeline.arena 1 bytes(8388608)
pipeline.variable @a : tensor<2x8x16x24xf32> parameter of @s
pipeline.variable @b : tensor<16x8x3x3xf32> parameter of @s
pipeline.variable @c : tensor<2x16x16x24xf32> parameter of @s

// CHECK-DAG: @penstock.convs = internal constant [3 x {{.*}} i32 -1, i64 2, {{.*}} { i64, ptr } { i64 655360, ptr @[[TWO:penstock.shape[0-9.]*]] } }, {{.*}} { i64, ptr } { i64 655360, ptr @[[FAR:penstock.shape[0-9.]*]] } }, {{.*}} i32 -2, i64 2, {{.*}} { i64, ptr } { i64 655360, ptr null } }]
// CHECK-DAG: @replay.penstock.convs = internal constant [3 x {{.*}} i32 0, i64 2, {{.*}} { i64, ptr } { i64 655360, ptr @[[ONE:penstock.shape[0-9.]*]] } }, {{.*}} i32 0, i64 2, {{.*}} { i64, ptr } { i64 655360, ptr @{{.*}} } }, {{.*}} i32 -2, i64 2, {{.*}} ptr null } }]
// CHECK-DAG: @[[TWO]] = {{.*}} [2 x i64] [i64 65600, i64 131136]
// CHECK-DAG: @[[FAR]] = {{.*}} [2 x i64] [i64 1114176, i64 1179712]
// CHECK-DAG: @[[ONE]] = {{.*}} [1 x i64] [i64 196672]
func.func private @kernel(%dev: !llvm.ptr, %a: memref<2x8x16x24xf32>, %b: memref<16x8x3x3xf32>, %c: memref<2x16x16x24xf32> {pipeline.out}, %s: memref<4194304xi8> {pipeline.scratch}) {
  kernel.conv forward %a, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <655360 at 64> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
  kernel.conv forward %a, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <655360 at 1048640> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
  kernel.conv forward %a, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <655360 at 64> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
  return
}
func.func private @unused(%dev: !llvm.ptr, %a: memref<2x8x16x24xf32>, %b: memref<16x8x3x3xf32>, %c: memref<2x16x16x24xf32> {pipeline.out}, %s: memref<4194304xi8> {pipeline.scratch}) {
  kernel.conv forward %a, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <655360 at 64> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
  return
}
func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %a = pipeline.slot @a[%first] at(0) : memref<2x8x16x24xf32>
  %b = pipeline.slot @b[%first] at(24576) : memref<16x8x3x3xf32>
  %c = pipeline.slot @c[%first] at(29184) : memref<2x16x16x24xf32>
  %s = pipeline.scratch at(65536) : memref<4194304xi8>
  func.call @kernel(%dev, %a, %b, %c, %s) : (!llvm.ptr, memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>, memref<4194304xi8>) -> ()
  return
}
func.func @train.1(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  %a = pipeline.slot @a[%first] at(0) : memref<2x8x16x24xf32>
  %b = pipeline.slot @b[%first] at(24576) : memref<16x8x3x3xf32>
  %c = pipeline.slot @c[%first] at(29184) : memref<2x16x16x24xf32>
  %s = pipeline.scratch at(131072) : memref<4194304xi8>
  func.call @kernel(%dev, %a, %b, %c, %s) : (!llvm.ptr, memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>, memref<4194304xi8>) -> ()
  return
}
module @replay {
  pipeline.stage @s devices [0]
  pipeline.task @s.F forward of @s
  pipeline.schedule @train microbatches(2)
  pipeline.device 0 target(#cpu.target<>)
  pipeline.arena 0 bytes(8388608)
  pipeline.variable @a : tensor<2x8x16x24xf32> parameter of @s
  pipeline.variable @b : tensor<16x8x3x3xf32> parameter of @s
  pipeline.variable @c : tensor<2x16x16x24xf32> parameter of @s
  func.func private @kernel(!llvm.ptr, memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32> {pipeline.out}, memref<4194304xi8> {pipeline.scratch})
  func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    %a = pipeline.slot @a[%first] at(0) : memref<2x8x16x24xf32>
    %b = pipeline.slot @b[%first] at(24576) : memref<16x8x3x3xf32>
    %c = pipeline.slot @c[%first] at(29184) : memref<2x16x16x24xf32>
    %s = pipeline.scratch at(196608) : memref<4194304xi8>
    func.call @kernel(%dev, %a, %b, %c, %s) : (!llvm.ptr, memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>, memref<4194304xi8>) -> ()
    return
  }
}
