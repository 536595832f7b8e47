// RUN: penstock-opt %s --pipeline-verify --split-input-file --verify-diagnostics

// C29: prepacked weights follow the weights.

#form = #nn.prepacking<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 layout library>
pipeline.stage @s0
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s0 {pipeline.parameter = @w, pipeline.prepacking = #form}
// expected-error @below {{does not write @w.prepacked as a function of what it writes to @w}}
pipeline.task @s0.U update of @s0(%t) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
  %1 = func.call @step(%0) : (tensor<48x32x3x3xf32>) -> tensor<48x32x3x3xf32>
  pipeline.write %1 to @w : tensor<48x32x3x3xf32>
}
func.func private @step(tensor<48x32x3x3xf32>) -> tensor<48x32x3x3xf32>

// -----

#form = #nn.prepacking<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 layout library>
pipeline.stage @s0
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s0 {pipeline.parameter = @w, pipeline.prepacking = #form}
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
// expected-error @below {{does not say by 'pipeline.parameter' and 'pipeline.prepacking' what is prepacked for what}}
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
}

// -----

#form = #nn.prepacking<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 layout library>
// expected-error @below {{'pipeline.prepacking' is what weights are prepacked for, on a variable that holds them}}
pipeline.variable @w : tensor<48x32x3x3xf32> parameter {pipeline.prepacking = #form}

// -----

func.func private @f(%w: memref<48x32x5x3xf32>, %p: memref<13824xf32>) {
  // expected-error @below {{of 'memref<48x32x5x3xf32>' is for other weights: #nn.prepacking<[2, 32, 6, 6] by[48, 32, 3, 3] to[2, 48, 4, 4] strides[1, 1] dilations[1, 1] pads[0, 0, 0, 0] groups 1 layout library>}}
  nn.prepack_weights %w to %p as <[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 layout library> : memref<48x32x5x3xf32>, memref<13824xf32>
  return
}

// -----

func.func private @f(%x: memref<2x32x6x6xf32>, %w: memref<48x32x3x3xf32>, %y: memref<2x48x4x4xf32>, %p: memref<13824xf32>) {
  // expected-error @below {{reads prepacked weights in a layout, from buffers, where it does not compute them}}
  nn.conv %x, %w outs(%y) prepacked(%p : memref<13824xf32>) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x32x6x6xf32>, memref<48x32x3x3xf32>, memref<2x48x4x4xf32>
  return
}

// -----

func.func private @f(%w: memref<8x16xf32>, %p: memref<256xf32>) {
  // expected-error @below {{does not find #pipeline.panels<[16, 9] strides[1, 16] width 384 stride 16> in 'memref<8x16xf32>'}}
  pipeline.pack_panels %w to %p as <[16, 9] strides [1, 16] width 384 stride 16> : memref<8x16xf32>, memref<256xf32>
  return
}

// -----

func.func private @f(%w: memref<8x16xf32>, %p: memref<250xf32>) {
  // expected-error @below {{does not fill 'memref<250xf32>' with #pipeline.panels}}
  pipeline.pack_panels %w to %p as <[16, 8] strides [1, 16] width 384 stride 16> : memref<8x16xf32>, memref<250xf32>
  return
}

// -----

func.func private @f(%w: memref<8x16xf32>, %p: memref<256xf32>) {
  // expected-error @below {{a matrix has two sizes and strides, and rows of its panels do not overlap}}
  pipeline.pack_panels %w to %p as <[16, 8] strides [1, 16] width 384 stride 7> : memref<8x16xf32>, memref<256xf32>
  return
}

// -----

func.func private @f(%a: memref<20x16xf32>, %w: memref<16x16xf32>, %c: memref<20x8xf32>) {
  // expected-error @below {{reads panels of some columns from a vector, and has no batch dimensions}}
  pipeline.gemm %a, %w, %c sizes [20, 8, 16] strides [16, 1] [16, 1] [8, 1] panels(384) : memref<20x16xf32>, memref<16x16xf32>, memref<20x8xf32>
  return
}

// -----

#form = #nn.prepacking<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 layout library>
pipeline.stage @s0
pipeline.stage @s1
pipeline.variable @w : tensor<48x32x3x3xf32> parameter of @s0
// expected-error @below {{is of another stage than @w}}
pipeline.variable @w.prepacked : tensor<13824xf32> prepacked of @s1 {pipeline.parameter = @w, pipeline.prepacking = #form}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.read @w : tensor<48x32x3x3xf32>
}
