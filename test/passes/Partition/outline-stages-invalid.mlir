// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-outline-stages --verify-diagnostics

// A parameter that is not there.
pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  // expected-error @+1 {{reads no known variable}}
  %w = pipeline.read @w : tensor<5x7xf32>
  %y = func.call @model.forward(%x, %w) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
func.func private @model.forward(%x: tensor<5x7xf32>, %w: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %1 = arith.mulf %x, %w : tensor<5x7xf32>
  pipeline.boundary 1
  %2 = math.exp %1 : tensor<5x7xf32>
  return %2 : tensor<5x7xf32>
}

// -----

// What two nodes update lies on two stages.
@@
+// expected-error @+1 {{statistic 'w' is updated on stages 0 and 1: cut elsewhere with --split-at so that one stage has all nodes that share it, or use --batch-norm=frozen}}
+pipeline.variable @w : tensor<5x7xf32> statistic of @model init <"m.onnx", 8, 140>
 pipeline.task @model.F forward of @model(%k) {
@@
-  %2 = math.exp %1 : tensor<5x7xf32>
+  %2 = arith.mulf %1, %w : tensor<5x7xf32>

// -----

pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %y = func.call @model.forward(%x) : (tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
func.func private @model.forward(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %1 = math.absf %x : tensor<5x7xf32> loc("abs")
  %2 = math.exp %1 : tensor<5x7xf32> loc("exp")
  return %2 : tensor<5x7xf32>
}

// -----

// Boundaries rise by one.
@@
+  // expected-error @+1 {{expected boundary 1: boundaries rise by one}}
+  pipeline.boundary 2
   %2 = math.exp %1 : tensor<5x7xf32> loc("exp")

// -----

// A stage without ops.
@@
+// expected-error @+1 {{stage 1 would have nothing to compute}}
 func.func private @model.forward(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
@@
+  pipeline.boundary 1
   return %2 : tensor<5x7xf32>

// -----

// Two tasks.
@@
   return %2 : tensor<5x7xf32>
 }
+// expected-error @+1 {{expected one forward task before the cut into stages, found 'model.F' and 'model.G'}}
+pipeline.task @model.G forward of @model(%k) {
+}

// -----

// No task at all.
// expected-error @+1 {{expected a forward task to cut into stages}}
module {
}

// -----

// A task without a call.
pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
// expected-error @+1 {{expected a call in the forward task}}
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
}

// -----

// Two calls.
pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %y = func.call @model.forward(%x) : (tensor<5x7xf32>) -> tensor<5x7xf32>
  // expected-error @+1 {{expected one call in the forward task}}
  %z = func.call @model.forward(%y) : (tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %z to @loss : tensor<5x7xf32>
}
func.func private @model.forward(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %1 = math.absf %x : tensor<5x7xf32>
  return %1 : tensor<5x7xf32>
}

// -----

// A function without a body.
pipeline.stage @model
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  // expected-error @+1 {{expected to call a function of this module with one block}}
  %y = func.call @model.forward(%x) : (tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
func.func private @model.forward(%x: tensor<5x7xf32>) -> tensor<5x7xf32>

// -----

// A stage that is not there.
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<5x7xf32>] sink(loss)
// expected-error @+1 {{its stage is not in this module}}
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %y = func.call @model.forward(%x) : (tensor<5x7xf32>) -> tensor<5x7xf32>
  pipeline.put %y to @loss : tensor<5x7xf32>
}
func.func private @model.forward(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %1 = math.absf %x : tensor<5x7xf32>
  return %1 : tensor<5x7xf32>
}
