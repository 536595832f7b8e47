// RUN: penstock-opt %s --split-input-file --pipeline-set-training --pipeline-verify=level=training --verify-diagnostics

// One case for each rule that needs more than one op, by its number.

// C13
// expected-error @+1 {{C13: has no forward task}}
pipeline.stage @s0

// -----

pipeline.stage @s0
pipeline.task @s0.F forward of @s0(%k) {
}
// expected-error @+1 {{C13: is the second forward task of its stage}}
pipeline.task @s0.G forward of @s0(%k) {
}

// -----

// expected-error @+1 {{C13: has a backward task and halves of it}}
pipeline.stage @s0
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
}
pipeline.task @s0.I input_grad of @s0(%k) {
}

// -----

// expected-error @+1 {{C13: has gradients, but no task that makes them}}
pipeline.stage @s0
pipeline.variable @g : tensor<2xf32> gradient of @s0
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

// C19
pipeline.stage @s0
pipeline.task @s0.F forward of @s0(%k) {
  %a = pipeline.hyperparameter "lr" default(0.1) : f32
}
pipeline.task @s0.U update of @s0(%k) {
  // expected-error @+1 {{C19: declares 'lr' with another default than before}}
  %a = pipeline.hyperparameter "lr" default(0.2) : f32
}

// -----

// C19
pipeline.stage @s0
pipeline.task @s0.F forward of @s0(%k) {
  %a = pipeline.hyperparameter "seed" : i64
}
pipeline.task @s0.U update of @s0(%k) {
  // expected-error @+1 {{C19: declares 'seed' as 'f32', but as 'i64' before}}
  %a = pipeline.hyperparameter "seed" : f32
}

// -----

// C36
pipeline.stage @s0
// expected-error @+1 {{C36: does not say by 'pipeline.parameter' which parameter is rounded from it}}
pipeline.variable @w.master : tensor<2x3xf32> master of @s0
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

pipeline.stage @s0
pipeline.variable @w : tensor<2x3xf32> parameter of @s0
// expected-error @+1 {{C36: holds 'tensor<2x3xf32>' for @w, which is 'tensor<2x3xf32>'}}
pipeline.variable @w.master : tensor<2x3xf32> master of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

pipeline.stage @s0
pipeline.stage @s1
pipeline.variable @w : tensor<2x3xbf16> parameter of @s0
// expected-error @+1 {{C36: is of another stage than @w}}
pipeline.variable @w.master : tensor<2x3xf32> master of @s1 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}

// -----

pipeline.stage @s0
pipeline.variable @w : tensor<2x3xbf16> parameter of @s0
pipeline.variable @w.master : tensor<2x3xf32> master of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}
// expected-error @+1 {{C36: does not write @w.master and @w as results of one function}}
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w.master : tensor<2x3xf32>
  pipeline.write %0 to @w.master : tensor<2x3xf32>
}
