// RUN: penstock-opt %s --pipeline-prepack-weights=policy=all --pipeline-set-training=microbatches=4 --pipeline-verify | FileCheck %s
// RUN: penstock-opt %s --pipeline-prepack-weights=policy=none | FileCheck %s --check-prefix=NONE
// RUN: penstock-opt %s --pipeline-prepack-weights | FileCheck %s --check-prefix=AUTO
// RUN: not penstock-opt %s --pipeline-prepack-weights=policy=some 2>&1 \
// RUN:   | FileCheck %s --check-prefix=WRONG

// Few weights are left as they are, unless all are wanted.
// NONE-NOT: prepack
// AUTO-NOT: prepack
// WRONG: for the --policy option: Cannot find option named 'some'

!x = tensor<2x32x6x6xf32>
!w = tensor<48x32x3x3xf32>
!y = tensor<2x48x4x4xf32>
!X = memref<2x32x6x6xf32>
!W = memref<48x32x3x3xf32>
!Y = memref<2x48x4x4xf32>

pipeline.stage @s0 devices [0] {pipeline.lags = array<i64: 1, 1>}
pipeline.channel @x : [!x] source(input "x") slots(1)
pipeline.channel @y : [!y] slots(2)
pipeline.channel @loss : [tensor<f32>] sink(loss) staging(1)

// A variable for each gradient of the input and for what evaluates and trains,
// with as many versions as the weights have. Frozen weights have one, too.
// CHECK: pipeline.variable @w : [[W:tensor<48x32x3x3xf32>]] parameter of @s0
// CHECK: pipeline.variable @w.prepacked_backward : tensor<[[N:[0-9]+]]xf32> prepacked of @s0
// CHECK-SAME: kernel.packing = #cpu.blocked<input_grad(true)[2, 32, 6, 6] by[48, 32, 3, 3] to[2, 48, 4, 4] strides[1, 1] dilations[1, 1] pads[0, 0, 0, 0] groups 1 config <library>>
// CHECK-SAME: pipeline.parameter = @w
// CHECK: pipeline.variable @w.prepacked : tensor<[[N]]xf32> prepacked of @s0
// CHECK-SAME: kernel.packing = #cpu.blocked<[2, 32, 6, 6] by
// CHECK: pipeline.weight_stash @w depth(2)
// CHECK-DAG: pipeline.weight_stash @w.prepacked depth(2)
// CHECK-DAG: pipeline.weight_stash @w.prepacked_backward depth(2)
// CHECK: pipeline.variable @frozen.prepacked
pipeline.variable @w : !w parameter of @s0
pipeline.weight_stash @w depth(2)
pipeline.variable @w.grad : !w gradient of @s0 {pipeline.parameter = @w}
pipeline.variable @frozen : !w parameter of @s0

// CHECK: pipeline.task @s0.F forward
// CHECK: %[[V:.*]] = pipeline.read @w lag(4)
// CHECK: %[[P:.*]] = pipeline.read @w.prepacked lag(4) : tensor<[[N]]xf32>
// CHECK: call @forward(%{{.*}}, %[[V]], %[[P]])
// CHECK: %[[P:.*]] = pipeline.read @frozen.prepacked : tensor<[[N]]xf32>
// CHECK: call @other(%{{.*}}, %{{.*}}, %[[P]])
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.take @x : !x
  %1 = pipeline.read @w lag(4) : !w
  %2 = func.call @forward(%0, %1) : (!x, !w) -> !y
  %3 = pipeline.read @frozen : !w
  %4 = func.call @other(%0, %3) : (!x, !w) -> tensor<f32>
  pipeline.put %2 to @y : !y
  pipeline.put %4 to @loss : tensor<f32>
}
// CHECK: pipeline.task @s0.B backward
// CHECK: pipeline.read @w.prepacked_backward lag(4)
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.take @y : !y
  %1 = pipeline.read @w lag(4) : !w
  %2 = pipeline.read @w.grad : !w
  %3 = func.call @backward(%0, %1, %2) : (!y, !w, !w) -> !w
  pipeline.write %3 to @w.grad : !w
}
// Who writes the weights writes them in every order.
// CHECK: pipeline.task @s0.U update
// CHECK: %[[NEW:.*]]:2 = func.call @step
// CHECK-DAG: %[[F:.*]] = func.call @[[FORWARD:prepack.[0-9]+]](%[[NEW]]#0) : ([[W]]) -> tensor<[[N]]xf32>
// CHECK-DAG: pipeline.write %[[F]] to @w.prepacked : tensor<[[N]]xf32>
// CHECK-DAG: %[[B:.*]] = func.call @[[BACKWARD:prepack.[0-9]+]](%[[NEW]]#0) : ([[W]]) -> tensor<[[N]]xf32>
// CHECK-DAG: pipeline.write %[[B]] to @w.prepacked_backward
// CHECK-DAG: pipeline.write %[[NEW]]#0 to @w :
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w : !w
  %1 = pipeline.read @w.grad : !w
  %2:2 = func.call @step(%0, %1) : (!w, !w) -> (!w, !w)
  pipeline.write %2#0 to @w : !w
  pipeline.write %2#1 to @w.grad : !w
}
// Evaluation reads the newest.
// CHECK: pipeline.task @s0.E evaluate
// CHECK: pipeline.read @w.prepacked : tensor
pipeline.task @s0.E evaluate of @s0(%k) {
  %0 = pipeline.take @x : !x
  %1 = pipeline.read @w : !w
  %2 = func.call @evaluate(%0, %1) : (!x, !w) -> tensor<f32>
  pipeline.put %2 to @loss : tensor<f32>
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
pipeline.schedule @test to evaluate microbatches(1) {
  pipeline.order 0 { pipeline.repeat microbatches {
    pipeline.recv @x
    pipeline.run @s0.E
    pipeline.send @loss
  } }
}

// CHECK: func.func private @forward.kernel(%{{.*}}: memref<2x32x6x6xf32>, %[[W1:.*]]: memref<48x32x3x3xf32>, %[[P1:.*]]: memref<[[N]]xf32>, %[[Y1:.*]]: memref<2x48x4x4xf32> {pipeline.out})
// CHECK: kernel.conv forward %{{.*}}, %[[W1]], %[[Y1]] packed(%[[P1]] : memref<[[N]]xf32>) strides [1, 1] {{.*}} config(#cpu.conv<library>)
func.func private @forward(!x, !w) -> !y
func.func private @forward.kernel(%x: !X, %w: !W, %y: !Y {pipeline.out}) attributes {pipeline.target = #cpu.target<>} {
  kernel.conv forward %x, %w, %y strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) config(#cpu.conv<library>) : !X, !W, !Y
  return
}
func.func private @other(!x, !w) -> tensor<f32>
func.func private @other.kernel(%x: !X, %w: !W, %l: memref<f32> {pipeline.out}, %s: memref<6144xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %c0 = arith.constant 0 : index
  %y = memref.view %s[%c0][] : memref<6144xi8> to !Y
  kernel.conv forward %x, %w, %y strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) config(#cpu.conv<library>) : !X, !W, !Y
  return
}
func.func private @evaluate(!x, !w) -> tensor<f32>
func.func private @evaluate.kernel(%x: !X, %w: !W, %l: memref<f32> {pipeline.out}, %s: memref<6144xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %c0 = arith.constant 0 : index
  %y = memref.view %s[%c0][] : memref<6144xi8> to !Y
  kernel.conv forward %x, %w, %y strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) config(#cpu.conv<library>) : !X, !W, !Y
  return
}
func.func private @backward(!y, !w, !w {pipeline.into = 0 : i64}) -> !w
func.func private @backward.kernel(%y: !Y, %w: !W, %g: !W {pipeline.into = 0 : i64}, %s: memref<9216xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %c0 = arith.constant 0 : index
  %x = memref.view %s[%c0][] : memref<9216xi8> to !X
  kernel.conv input_grad %x, %w, %y strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) config(#cpu.conv<library>) : !X, !W, !Y
  return
}
func.func private @step(!w, !w) -> (!w, !w)

// CHECK: func.func private @{{prepack.[0-9]+}}.kernel(%[[A:.*]]: memref<48x32x3x3xf32>, %[[R:.*]]: memref<[[N]]xf32>)
// CHECK: kernel.pack %[[A]] to %[[R]] order(#cpu.blocked<
