// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training=microbatches=2 --pipeline-verify --verify-diagnostics

// C45: an update leaves gradients at zero.

!t = tensor<2xf32>
#id = affine_map<(d0) -> (d0)>
pipeline.stage @s0
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
func.func private @g(!t) -> !t
func.func private @sgd(%w: !t, %g: !t) -> (!t, !t) {
  %cst = arith.constant 0.25 : f32
  %0:2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} outs(%w, %g : !t, !t) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1, %cst : f32, f32
  } -> (!t, !t)
  return %0#0, %0#1 : !t, !t
}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.read @w.grad : !t
  %1 = func.call @g(%0) : (!t) -> !t
  pipeline.write %1 to @w.grad : !t
}
pipeline.task @s0.U update of @s0(%t) {
  %w = pipeline.read @w : !t
  %g = pipeline.read @w.grad : !t
  %2:2 = func.call @sgd(%w, %g) : (!t, !t) -> (!t, !t)
  pipeline.write %2#0 to @w : !t
  // expected-error @+1 {{C45: leaves in @w.grad what @sgd makes, which is not zero; a backward adds to it}}
  pipeline.write %2#1 to @w.grad : !t
}

// -----

// A zero is right, whatever makes it.
@@
-  %cst = arith.constant 0.25 : f32
+  %cst = arith.constant 0.0 : f32

// -----

// At level program, the last call counts that the task states.
pipeline.stage @s0 devices [0]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.variable @w.grad : tensor<2xf32> gradient of @s0 {pipeline.parameter = @w}
func.func private @zero(%g: memref<2xf32>) {
  %cst = arith.constant 0.0 : f32
  linalg.fill ins(%cst : f32) outs(%g : memref<2xf32>)
  return
}
func.func private @one(%g: memref<2xf32>) {
  %cst = arith.constant 1.0 : f32
  linalg.fill ins(%cst : f32) outs(%g : memref<2xf32>)
  return
}
pipeline.task @s0.F forward of @s0
pipeline.task @s0.B backward of @s0
// expected-error @+1 {{C45: leaves in @w.grad what @one makes, which is not zero; a backward adds to it}}
pipeline.task @s0.U update of @s0
  calls [#pipeline.call<@zero [#pipeline.operand<write @w.grad>]>, #pipeline.call<@one [#pipeline.operand<write @w.grad>]>]
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %a = pipeline.slot @w[%first] at(0) : memref<2xf32>
  %b = pipeline.slot @w.grad[%first] at(64) : memref<2xf32>
  return
}
pipeline.schedule @train microbatches(2)
