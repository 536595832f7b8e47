// RUN: penstock-opt %s --pipeline-prepack-weights --pipeline-set-training=microbatches=4 --pipeline-verify | FileCheck %s
// RUN: penstock-opt %s --pipeline-prepack-weights=policy=all --pipeline-set-training=microbatches=4 --pipeline-verify | FileCheck %s --check-prefix=ALL
// RUN: penstock-opt %s --pipeline-prepack-weights=policy=none | FileCheck %s --check-prefix=NONE
// RUN: sed 's/microbatches(4)/microbatches(3)/; s/every(4)/every(3)/' %s \
// RUN:   | penstock-opt --pipeline-prepack-weights | FileCheck %s --check-prefix=NONE

// Right operands of products. What has to be turned, or has rows a multiple of
// 4096 bytes apart, pays where it is read by four products between two updates.

// NONE-NOT: panels

!x = tensor<32x1024xf32>
!w = tensor<300x1024xf32>
!y = tensor<32x300xf32>
!X = memref<32x1024xf32>
!W = memref<300x1024xf32>
!Y = memref<32x300xf32>

pipeline.stage @s0 devices [0]
pipeline.channel @x : [!x] source(input "x") slots(1)
pipeline.channel @y : [!y] slots(2)
pipeline.channel @loss : [tensor<f32>] sink(loss) staging(1)

// CHECK: pipeline.variable @w : [[W:tensor<300x1024xf32>]] parameter of @s0
// CHECK: pipeline.variable @w.panels : tensor<[[B:[0-9]+]]xf32> prepacked of @s0 {kernel.packing = #cpu.panels<[300, 1024] strides[1024, 1] width 384 stride 400>, pipeline.parameter = @w}
// CHECK: pipeline.variable @w.panels_transposed : tensor<[[F:[0-9]+]]xf32> prepacked of @s0 {kernel.packing = #cpu.panels<[1024, 300] strides[1, 1024] width 384 stride 304>, pipeline.parameter = @w}
pipeline.variable @w : !w parameter of @s0
pipeline.variable @w.grad : !w gradient of @s0 {pipeline.parameter = @w}
// Rows of 1200 bytes are read as fast as they are.
// CHECK-NOT: @plain.panels
// ALL: pipeline.variable @plain.panels : tensor<{{[0-9]+}}xf32>
pipeline.variable @plain : tensor<1024x300xf32> parameter of @s0

// CHECK: pipeline.task @s0.F forward
// CHECK: %[[V:.*]] = pipeline.read @w lag(0) :
// CHECK: %[[P:.*]] = pipeline.read @w.panels_transposed lag(0) : tensor<[[F]]xf32>
// CHECK: call @forward(%{{.*}}, %[[V]], %{{.*}}, %[[P]])
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.take @x : !x
  %1 = pipeline.read @w lag(0) : !w
  %2 = pipeline.read @plain : tensor<1024x300xf32>
  %3:2 = func.call @forward(%0, %1, %2) : (!x, !w, tensor<1024x300xf32>) -> (!y, tensor<f32>)
  pipeline.put %3#0 to @y : !y
  pipeline.put %3#1 to @loss : tensor<f32>
}
// CHECK: pipeline.task @s0.B backward
// CHECK: pipeline.read @w.panels lag(0) :
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.take @y : !y
  %1 = pipeline.read @w lag(0) : !w
  %2 = pipeline.read @w.grad : !w
  %3 = func.call @backward(%0, %1, %2) : (!y, !w, !w) -> !w
  pipeline.write %3 to @w.grad : !w
}
// CHECK: pipeline.task @s0.U update
// CHECK: %[[NEW:.*]] = func.call @step
// CHECK-DAG: %[[R:.*]] = func.call @[[ROWS:prepack.[0-9]+]](%[[NEW]]) : ([[W]]) -> tensor<[[B]]xf32>
// CHECK-DAG: pipeline.write %[[R]] to @w.panels :
// CHECK-DAG: %[[C:.*]] = func.call @[[COLUMNS:prepack.[0-9]+]](%[[NEW]]) : ([[W]]) -> tensor<[[F]]xf32>
// CHECK-DAG: pipeline.write %[[C]] to @w.panels_transposed :
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w : !w
  %1 = pipeline.read @w.grad : !w
  %2 = func.call @step(%0, %1) : (!w, !w) -> !w
  pipeline.write %2 to @w : !w
}

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
    pipeline.repeat microbatches {
      pipeline.recv @x
      pipeline.run @s0.F
      pipeline.send @loss
      pipeline.run @s0.B
      pipeline.run @s0.U every(4)
    }
  }
}

// The other operands, and a product of which no variable is the right operand,
// stay as they are.
// CHECK: func.func private @forward.kernel(%[[X:.*]]: memref<32x1024xf32>, %[[W:.*]]: memref<300x1024xf32>, %[[PLAIN:.*]]: memref<1024x300xf32>, %[[P:.*]]: memref<[[F]]xf32>, %[[Y:.*]]: memref<32x300xf32> {pipeline.out}
// CHECK: kernel.gemm %[[X]], %[[W]], %[[Y]] packed(%[[P]] : memref<[[F]]xf32>) sizes [32, 300, 1024] strides [1024, 1] [1, 1024] [300, 1] config(#cpu.gemm<panels(384 by 304)>) :
// CHECK: kernel.gemm %[[X]], %[[PLAIN]], %[[Y]] sizes [32, 300, 1024] strides [1024, 1] [300, 1] [300, 1] accumulate config(#cpu.gemm<>) :
func.func private @forward(!x, !w, tensor<1024x300xf32>) -> (!y, tensor<f32>)
func.func private @forward.kernel(%x: !X, %w: !W, %p: memref<1024x300xf32>, %y: !Y {pipeline.out}, %l: memref<f32> {pipeline.out}) attributes {pipeline.target = #cpu.target<>} {
  kernel.gemm %x, %w, %y sizes [32, 300, 1024] strides [1024, 1] [1, 1024] [300, 1] config(#cpu.gemm<>) : !X, !W, !Y
  kernel.gemm %x, %p, %y sizes [32, 300, 1024] strides [1024, 1] [300, 1] [300, 1] accumulate config(#cpu.gemm<>) : !X, memref<1024x300xf32>, !Y
  return
}
// Weights in another shape, and a gradient of the weights.
// CHECK: func.func private @backward.kernel(%[[Y:.*]]: memref<32x300xf32>, %{{.*}}: memref<300x1024xf32>, %[[G:.*]]: memref<300x1024xf32> {pipeline.into = 0 : i64}, %[[P:.*]]: memref<[[B]]xf32>
// CHECK: kernel.gemm %[[Y]], %{{.*}}, %{{.*}} packed(%[[P]] : memref<[[B]]xf32>) sizes [32, 1024, 300] strides [300, 1] [1024, 1] [1024, 1] config(#cpu.gemm<panels(384 by 400)>) :
// CHECK: kernel.gemm %[[Y]], %{{.*}}, %[[G]] sizes [300, 1024, 32] strides [1, 300] [1024, 1] [1024, 1] accumulate config(#cpu.gemm<>) :
func.func private @backward(!y, !w, !w {pipeline.into = 0 : i64}) -> !w
func.func private @backward.kernel(%y: !Y, %w: !W, %g: !W {pipeline.into = 0 : i64}, %s: memref<131072xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %c0 = arith.constant 0 : index
  %x = memref.view %s[%c0][] : memref<131072xi8> to !X
  %flat = memref.collapse_shape %w [[0, 1]] : !W into memref<307200xf32>
  kernel.gemm %y, %flat, %x sizes [32, 1024, 300] strides [300, 1] [1024, 1] [1024, 1] config(#cpu.gemm<>) : !Y, memref<307200xf32>, !X
  kernel.gemm %y, %x, %g sizes [300, 1024, 32] strides [1, 300] [1024, 1] [1024, 1] accumulate config(#cpu.gemm<>) : !Y, !X, !W
  return
}
func.func private @step(!w, !w) -> !w

// CHECK: func.func private @{{prepack.[0-9]+}}.kernel(%[[A:.*]]: memref<300x1024xf32>, %[[R:.*]]: memref<[[N:[0-9]+]]xf32>)
// CHECK: kernel.pack %[[A]] to %[[R]] order(#cpu.panels<
