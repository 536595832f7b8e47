// RUN: penstock-opt %s --pipeline-split-backward --verify-diagnostics

pipeline.stage @s0
pipeline.channel @dx : [tensor<f32>]
pipeline.channel @dy : [tensor<f32>]
pipeline.variable @w : tensor<f32> parameter of @s0
pipeline.variable @w.grad : tensor<f32> gradient of @s0 {pipeline.parameter = @w}
func.func private @b(tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
pipeline.task @s0.B backward of @s0(%k) {
  %d = pipeline.take @dy : tensor<f32>
  %g = pipeline.read @w.grad : tensor<f32>
  // expected-error @below {{@b has no body that could be split}}
  %r:2 = func.call @b(%d, %g) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  pipeline.put %r#0 to @dx : tensor<f32>
  pipeline.write %r#1 to @w.grad : tensor<f32>
}
