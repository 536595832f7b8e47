// RUN: penstock-opt %s --pipeline-separate-reads | FileCheck %s
// RUN: penstock-opt %s --pipeline-separate-reads --pipeline-outline-stages --pipeline-tie-parameters | FileCheck %s --check-prefix=STAGES

// Three nodes read @w: one as it is, one in an expression of parameters, one
// twice. Each gets an argument of its own, and the expression of it. @v has one
// reader and the frozen @f two; both stay.

// CHECK:       %[[W:.*]] = pipeline.read @w
// CHECK:       %[[V:.*]] = pipeline.read @v
// CHECK:       %[[F:.*]] = pipeline.read @f
// CHECK:       func.call @model.forward(%{{.*}}, %[[W]], %[[V]], %[[F]], %[[W]], %[[W]])
// CHECK-LABEL: func private @model.forward(
// CHECK-SAME:    %{{.*}}: tensor<3x7xf32>, %[[W0:[a-z0-9]+]]: tensor<3x7xf32>, %[[V:[a-z0-9]+]]: tensor<3x7xf32>, %[[F:[a-z0-9]+]]: tensor<3x7xf32>, %[[W1:[a-z0-9]+]]: tensor<3x7xf32>, %[[W2:[a-z0-9]+]]: tensor<3x7xf32>)
// CHECK:         %[[N:.*]] = arith.mulf %[[W1]], %[[F]]
// CHECK:         %[[M:.*]] = arith.mulf %{{.*}}, %[[W0]]
// CHECK:         arith.mulf %[[M]], %[[F]]
// CHECK:         pipeline.boundary 1
// CHECK:         %[[B:.*]] = arith.mulf %{{.*}}, %[[N]]
// CHECK:         %[[C:.*]] = arith.mulf %[[B]], %[[W2]]
// CHECK-NEXT:    %[[D:.*]] = arith.addf %[[C]], %[[W2]]
// CHECK-NEXT:    arith.mulf %[[D]], %[[V]]

// A copy on each stage, read once by its task; the group names both.
// STAGES:       pipeline.variable @w : tensor<3x7xf32> parameter of @s0 init <"m.onnx", 8, 84>{{$}}
// STAGES:       pipeline.variable @w.s1 : tensor<3x7xf32> parameter of @s1 init <"m.onnx", 8, 84> {pipeline.parameter = @w}
// STAGES:       pipeline.group @w.tied members {{\[\[}}@w], [@w.s1]]
// STAGES:       pipeline.variable @v : tensor<3x7xf32> parameter of @s1
// STAGES-NOT:   pipeline.group
// STAGES-LABEL: pipeline.task @s1.F
// STAGES:         %[[OWN:.*]] = pipeline.read @w.s1
// STAGES-NOT:     pipeline.read @w.s1
// STAGES:         func.call @s1.forward({{.*}}%[[OWN]], {{.*}}%[[OWN]]

pipeline.stage @model
pipeline.channel @x : [tensor<3x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<3x7xf32>] sink(loss)
pipeline.variable @w : tensor<3x7xf32> parameter of @model init <"m.onnx", 8, 84>
pipeline.variable @v : tensor<3x7xf32> parameter of @model init <"m.onnx", 92, 84>
pipeline.variable @f : tensor<3x7xf32> parameter of @model init <"m.onnx", 176, 84> {frozen}
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<3x7xf32>
  %w = pipeline.read @w : tensor<3x7xf32>
  %v = pipeline.read @v : tensor<3x7xf32>
  %f = pipeline.read @f : tensor<3x7xf32>
  %y = func.call @model.forward(%x, %w, %v, %f) : (tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>) -> tensor<3x7xf32>
  pipeline.put %y to @loss : tensor<3x7xf32>
}
func.func private @model.forward(%x: tensor<3x7xf32>, %w: tensor<3x7xf32>, %v: tensor<3x7xf32>, %f: tensor<3x7xf32>) -> tensor<3x7xf32> {
  %n = arith.mulf %w, %f : tensor<3x7xf32> loc("n")
  %m = arith.mulf %x, %w : tensor<3x7xf32> loc("first")
  %a = arith.mulf %m, %f : tensor<3x7xf32> loc("other")
  pipeline.boundary 1
  %b = arith.mulf %a, %n : tensor<3x7xf32> loc("second")
  %c = arith.mulf %b, %w : tensor<3x7xf32> loc("third")
  %d = arith.addf %c, %w : tensor<3x7xf32> loc("third")
  %e = arith.mulf %d, %v : tensor<3x7xf32> loc("last")
  return %e : tensor<3x7xf32>
}
