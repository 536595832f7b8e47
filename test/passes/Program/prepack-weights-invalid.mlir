// RUN: penstock-opt %s --pipeline-verify --split-input-file --verify-diagnostics

// C29: prepacked weights follow the weights.

#form = #cpu.blocked<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 config <library>>
pipeline.stage @s0
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s0 {pipeline.parameter = @w, kernel.packing = #form}
// expected-error @below {{does not write @w.prepacked as a function of what it writes to @w}}
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
  %1 = func.call @step(%0) : (tensor<48x32x3x3xf32>) -> tensor<48x32x3x3xf32>
  pipeline.write %1 to @w : tensor<48x32x3x3xf32>
}
func.func private @step(tensor<48x32x3x3xf32>) -> tensor<48x32x3x3xf32>

// -----

#form = #cpu.blocked<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 config <library>>
pipeline.stage @s0
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s0 {pipeline.parameter = @w, kernel.packing = #form}
// The weights of before the update.
// expected-error @below {{does not write @w.prepacked as a function of what it writes to @w}}
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
  %1 = func.call @step(%0) : (tensor<48x32x3x3xf32>) -> tensor<48x32x3x3xf32>
  %2 = func.call @prepack(%0) : (tensor<48x32x3x3xf32>) -> tensor<13824xf32>
  pipeline.write %1 to @w : tensor<48x32x3x3xf32>
  pipeline.write %2 to @w.prepacked : tensor<13824xf32>
}
func.func private @step(tensor<48x32x3x3xf32>) -> tensor<48x32x3x3xf32>
func.func private @prepack(tensor<48x32x3x3xf32>) -> tensor<13824xf32>

// -----

pipeline.stage @s0
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
// expected-error @below {{does not say by 'pipeline.parameter' and 'kernel.packing' what is prepacked for what}}
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
}

// -----

#form = #cpu.blocked<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 config <library>>
// expected-error @below {{'kernel.packing' is the order of packed weights, on a variable that holds them}}
pipeline.variable @w : tensor<48x32x3x3xf32> parameter {kernel.packing = #form}

// -----

#form = #cpu.blocked<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 config <library>>
pipeline.stage @s0
pipeline.stage @s1
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
// expected-error @below {{is of another stage than @w}}
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s1 {pipeline.parameter = @w, kernel.packing = #form}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
}
