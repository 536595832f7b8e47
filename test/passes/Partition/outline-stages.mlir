// RUN: penstock-opt %s --pipeline-outline-stages | FileCheck %s

// Three stages. %a skips the middle one: it gets a channel of its own to the last.
// The input x is taken on two stages: its source is copied. tanh(w) depends on a
// parameter only: the stage that uses it evaluates it. The frozen scale is read on
// two stages: each has its own.

// CHECK-DAG: pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
// CHECK-DAG: pipeline.channel @x.s2 : [tensor<5x7xf32>] source(input "x")
// CHECK-DAG: pipeline.channel @abs : [tensor<5x7xf32>]
// CHECK-DAG: pipeline.channel @abs_0 : [tensor<5x7xf32>]
// CHECK-DAG: pipeline.channel @exp : [tensor<5x7xf32>]
// CHECK-DAG: pipeline.variable @w : tensor<5x7xf32> parameter of @s2 init <"m.onnx", 8, 140>
// CHECK-DAG: pipeline.variable @scale : tensor<5x7xf32> parameter of @s0 init <"m.onnx", 148, 140> {frozen}
// CHECK-DAG: pipeline.variable @scale.s1 : tensor<5x7xf32> parameter of @s1 init <"m.onnx", 148, 140> {frozen}
// CHECK-NOT: @unused
// CHECK-NOT: @model

pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @unused : [tensor<5x7xf32>] source(input "unused")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.variable @w : tensor<5x7xf32> parameter of @model init <"m.onnx", 8, 140>
pipeline.variable @scale : tensor<5x7xf32> parameter of @model init <"m.onnx", 148, 140> {frozen}

// CHECK-LABEL: pipeline.task @s0.F forward of @s0
// CHECK-NEXT:    %[[X:.*]] = pipeline.take @x
// CHECK-NEXT:    %[[SCALE:.*]] = pipeline.read @scale
// CHECK-NEXT:    %[[A:.*]] = func.call @s0.forward(%[[X]], %[[SCALE]])
// CHECK-NEXT:    pipeline.put %[[A]] to @abs
// CHECK-NEXT:    pipeline.put %[[A]] to @abs_0
// CHECK-LABEL: pipeline.task @s1.F forward of @s1
// CHECK-NEXT:    %[[A:.*]] = pipeline.take @abs
// CHECK-NEXT:    %[[SCALE:.*]] = pipeline.read @scale.s1
// CHECK-NEXT:    %[[E:.*]] = func.call @s1.forward(%[[A]], %[[SCALE]])
// CHECK-NEXT:    pipeline.put %[[E]] to @exp
// CHECK-LABEL: pipeline.task @s2.F forward of @s2
// CHECK:         func.call @s2.forward
// CHECK-NEXT:    pipeline.put %{{.*}} to @loss
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %unused = pipeline.take @unused : tensor<5x7xf32>
  %w = pipeline.read @w : tensor<5x7xf32>
  %s = pipeline.read @scale : tensor<5x7xf32>
  %y = func.call @model.forward(%x, %unused, %w, %s) : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
// CHECK-LABEL: func private @s0.forward
// CHECK-NOT:     math.tanh
// CHECK:         math.absf
// CHECK-LABEL: func private @s1.forward
// CHECK:         math.exp
// CHECK-LABEL: func private @s2.forward
// CHECK:         math.tanh
func.func private @model.forward(%x: tensor<5x7xf32>, %unused: tensor<5x7xf32>, %w: tensor<5x7xf32>, %s: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %t = math.tanh %w : tensor<5x7xf32> loc("tanh")
  %m = arith.mulf %x, %s : tensor<5x7xf32> loc("mul")
  %a = math.absf %m : tensor<5x7xf32> loc("abs")
  pipeline.boundary 1
  %b = arith.mulf %a, %s : tensor<5x7xf32> loc("mul2")
  %e = math.exp %b : tensor<5x7xf32> loc("exp")
  pipeline.boundary 2
  %1 = arith.addf %e, %a : tensor<5x7xf32> loc("add1")
  %2 = arith.addf %1, %x : tensor<5x7xf32> loc("add2")
  %3 = arith.addf %2, %t : tensor<5x7xf32> loc("add3")
  return %3 : tensor<5x7xf32>
}
