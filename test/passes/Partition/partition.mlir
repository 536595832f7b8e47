// RUN: penstock-opt %s --pipeline-partition='split-at=relu1' 2>&1 | FileCheck %s

// The cut stands after the last op of the named node. What later stages compute
// from constants and parameters alone does not count as a node.

#id = affine_map<(i, j) -> (i, j)>
pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.variable @w : tensor<5x7xf32> parameter of @model init <"m.onnx", 8, 140>
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %w = pipeline.read @w : tensor<5x7xf32>
  %y = func.call @model.forward(%x, %w) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
// CHECK: stage 1 begins here, after 'relu1': it carries 140 bytes
// CHECK-LABEL: func private @model.forward
// CHECK:         math.tanh
// CHECK-NOT:     boundary
// CHECK:         math.exp
// CHECK:         pipeline.boundary 1
// CHECK-NEXT:    math.log
func.func private @model.forward(%x: tensor<5x7xf32>, %w: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %0 = math.tanh %w : tensor<5x7xf32> loc("scale")
  %1 = math.absf %x : tensor<5x7xf32> loc("relu1")
  %2 = math.exp %1 : tensor<5x7xf32> loc("relu1")
  %3 = math.log %2 : tensor<5x7xf32> loc("log")
  %4 = arith.addf %3, %0 : tensor<5x7xf32> loc("add")
  return %4 : tensor<5x7xf32>
}
