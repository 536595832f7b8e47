// RUN: penstock-opt %s --pipeline-send-parameters | FileCheck %s
// RUN: penstock-opt %s --pipeline-send-parameters --pipeline-outline-stages | FileCheck %s --check-prefix=STAGES

// @w is read on the stages 0 and 2, there in an expression of parameters: stage 0
// copies what it read, and stage 2 evaluates the expression of the copy. @v is
// read on stage 1 only, and the frozen @f on two.

// CHECK-LABEL: func private @model.forward(
// CHECK-SAME:    %{{.*}}: tensor<3x7xf32>, %[[W:[a-z0-9]+]]: tensor<3x7xf32>, %[[V:[a-z0-9]+]]: tensor<3x7xf32>, %[[F:[a-z0-9]+]]: tensor<3x7xf32>)
// CHECK:         %[[T:.*]] = arith.mulf %[[V]], %[[F]]
// CHECK:         arith.mulf %{{.*}}, %[[W]]
// CHECK:         math.absf
// CHECK:         %[[COPY:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[W]] : tensor<3x7xf32>)
// CHECK-SAME:      pipeline.sent = @w
// CHECK:         pipeline.boundary 1
// CHECK:         arith.mulf %{{.*}}, %[[T]]
// CHECK:         pipeline.boundary 2
// CHECK:         %[[N:.*]] = arith.mulf %[[COPY]], %[[F]]
// CHECK:         arith.mulf %{{.*}}, %[[N]]

// It is an activation like others then, whose channel says what it is.
// STAGES:     pipeline.channel @[[SENT:w_0]] : [tensor<3x7xf32>] {pipeline.parameter = @w}
// STAGES:     pipeline.variable @w : tensor<3x7xf32> parameter of @s0
// STAGES:     pipeline.task @s0.F
// STAGES:       %[[RESULTS:.*]]:2 = func.call @s0.forward
// STAGES:       pipeline.put %[[RESULTS]]#1 to @[[SENT]] :
// STAGES:     pipeline.task @s2.F
// STAGES:       pipeline.take @[[SENT]] :
// STAGES-NOT:   pipeline.read @w

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
  %t = arith.mulf %v, %f : tensor<3x7xf32> loc("t")
  %n = arith.mulf %w, %f : tensor<3x7xf32> loc("n")
  %m = arith.mulf %x, %w : tensor<3x7xf32> loc("mul")
  %a = math.absf %m : tensor<3x7xf32> loc("abs")
  pipeline.boundary 1
  %b = arith.mulf %a, %t : tensor<3x7xf32> loc("mul2")
  %e = math.exp %b : tensor<3x7xf32> loc("exp")
  pipeline.boundary 2
  %c = arith.mulf %e, %n : tensor<3x7xf32> loc("mul3")
  return %c : tensor<3x7xf32>
}
