// RUN: penstock-opt %s --split-input-file --pipeline-set-training --pipeline-insert-optimizer --verify-diagnostics

pipeline.stage @s0
pipeline.variable @w : tensor<3x5xf32> parameter of @s0
// expected-error @below {{the gradient does not say by 'pipeline.parameter' whose it is}}
pipeline.variable @w.grad : tensor<3x5xf32> gradient of @s0
