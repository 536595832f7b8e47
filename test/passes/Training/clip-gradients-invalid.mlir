// RUN: penstock-opt %s --split-input-file --pipeline-clip-gradients=max-norm=1.0 --verify-diagnostics

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
