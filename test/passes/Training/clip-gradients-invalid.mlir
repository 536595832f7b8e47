// RUN: penstock-opt %s --split-input-file --pipeline-set-training=clip-grad-norm=1.0 --pipeline-clip-gradients --verify-diagnostics

pipeline.stage @s0
pipeline.variable @w : tensor<3x5xf32> parameter of @s0
// expected-error @below {{the gradient does not say by 'pipeline.parameter' whose it is}}
pipeline.variable @w.grad : tensor<3x5xf32> gradient of @s0
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w.grad : tensor<3x5xf32>
}

// -----

pipeline.stage @s0
pipeline.task @s0.U update of @s0(%t) {
  // expected-error @below {{names no variable}}
  %0 = pipeline.read @w.grad : tensor<3x5xf32>
}

// -----

// An update whose function is somewhere else: there is nowhere to put the
// factor.
pipeline.stage @s0
pipeline.variable @w : tensor<3x5xf32> parameter of @s0
pipeline.variable @w.grad : tensor<3x5xf32> gradient of @s0 {pipeline.parameter = @w}
func.func private @sgd(tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
pipeline.task @s0.U update of @s0(%t) {
  %w = pipeline.read @w : tensor<3x5xf32>
  %g = pipeline.read @w.grad : tensor<3x5xf32>
  // expected-error @below {{updates by a function without a body}}
  %new = func.call @sgd(%w, %g) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  pipeline.write %new to @w : tensor<3x5xf32>
}
