// RUN: penstock-opt %s --onnx-attach-outputs | FileCheck %s
// RUN: penstock-opt %s --onnx-attach-outputs --onnx-attach-outputs | FileCheck %s
// RUN: %expect-error --any-lines "outputs are attached to a program of one forward task" -- penstock-opt %S/inputs/two-forward-tasks.mlir --onnx-attach-outputs
// RUN: %expect-error --any-lines "outputs are attached to a task with one call" -- penstock-opt %S/inputs/no-call.mlir --onnx-attach-outputs
// RUN: %expect-error --any-lines "the forward task calls no function of the program" -- penstock-opt %S/inputs/no-function.mlir --onnx-attach-outputs

// An output may have the name of an input: its channel gets another, its sink
// keeps it. Nothing trains.

// CHECK: pipeline.channel @x : [tensor<2x3xf32>] source(input "x")
// CHECK: pipeline.channel @y : [tensor<2x3xf32>] sink(output "y")
// CHECK: pipeline.channel @x_0 : [tensor<2x3xf32>] sink(output "x")
// CHECK: pipeline.variable @w : tensor<2x3xf32> parameter of @m {frozen}
// CHECK: %[[R:.*]]:2 = func.call @m.forward
// CHECK: pipeline.put %[[R]]#0 to @y : tensor<2x3xf32>
// CHECK: pipeline.put %[[R]]#1 to @x_0 : tensor<2x3xf32>
// CHECK: func.func private @m.forward(%{{.*}}: tensor<2x3xf32>, %{{.*}}: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)

pipeline.stage @m
pipeline.channel @x : [tensor<2x3xf32>] source(input "x")
pipeline.variable @w : tensor<2x3xf32> parameter of @m
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<2x3xf32>
  %w = pipeline.read @w : tensor<2x3xf32>
  %0:2 = func.call @m.forward(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
}
func.func private @m.forward(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>)
    -> (tensor<2x3xf32> {onnx.output = "y"}, tensor<2x3xf32> {onnx.output = "x"}) {
  %y = onnx.node "Add"(%x, %w) since 14 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %z = onnx.node "Neg"(%x) since 13 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}
