// Convolutions and pooling, printed and parsed, and what their verifiers say.
// RUN: penstock-opt %s --split-input-file --verify-diagnostics --verify-roundtrip

func.func @tensors(%x: tensor<5x3x11x9xf32>, %w: tensor<7x3x3x3xf32>, %e: tensor<5x7x6x5xf32>) -> (tensor<5x3x11x9xf32>, tensor<7x3x3x3xf32>) {
  %y = nn.conv %x, %w outs(%e) strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] groups(1) : tensor<5x3x11x9xf32>, tensor<7x3x3x3xf32>, tensor<5x7x6x5xf32> -> tensor<5x7x6x5xf32>
  %dx = nn.conv_input_grad %y, %w outs(%x) strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] groups(1) : tensor<5x7x6x5xf32>, tensor<7x3x3x3xf32>, tensor<5x3x11x9xf32> -> tensor<5x3x11x9xf32>
  %dw = nn.conv_weight_grad %x, %y outs(%w) strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] groups(1) : tensor<5x3x11x9xf32>, tensor<5x7x6x5xf32>, tensor<7x3x3x3xf32> -> tensor<7x3x3x3xf32>
  return %dx, %dw : tensor<5x3x11x9xf32>, tensor<7x3x3x3xf32>
}
func.func @buffers(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  nn.conv %x, %w outs(%y) strides [2] dilations [1] pads [1, 1] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}
func.func @pools(%x: tensor<5x7x11x9xf32>) -> tensor<5x7x11x9xf32> {
  %y, %i = nn.max_pool %x window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0] : tensor<5x7x11x9xf32> -> tensor<5x7x6x4xf32>, tensor<5x7x6x4xi32>
  %dx = nn.max_pool_grad %y, %i window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0] : tensor<5x7x6x4xf32>, tensor<5x7x6x4xi32> -> tensor<5x7x11x9xf32>
  %z = nn.sum_pool %dx window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0] : tensor<5x7x11x9xf32> -> tensor<5x7x6x4xf32>
  %dz = nn.sum_pool_grad %z window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0] : tensor<5x7x6x4xf32> -> tensor<5x7x11x9xf32>
  return %dz : tensor<5x7x11x9xf32>
}

// -----

func.func @ranks(%x: tensor<2x3x7xf32>, %w: tensor<5x3x3xf32>, %e: tensor<2x5x4xf32>) {
  // expected-error @below {{'nn.conv' op M1: needs as many strides and dilations, and twice as many pads, as its tensors have spatial dimensions}}
  %y = nn.conv %x, %w outs(%e) strides [2] dilations [1] pads [1] groups(1) : tensor<2x3x7xf32>, tensor<5x3x3xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @elements(%x: tensor<2x3x7xf32>, %w: tensor<5x3x3xf64>, %e: tensor<2x5x4xf32>) {
  // expected-error @below {{'nn.conv' op M2: mixes element types}}
  %y = nn.conv %x, %w outs(%e) strides [2] dilations [1] pads [1, 1] groups(1) : tensor<2x3x7xf32>, tensor<5x3x3xf64>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @channels(%x: tensor<2x3x7xf32>, %w: tensor<5x3x3xf32>, %e: tensor<2x5x4xf32>) {
  // expected-error @below {{'nn.conv' op M3: of 'tensor<2x3x7xf32>' by 'tensor<5x3x3xf32>' in groups(2) does not give 'tensor<2x5x4xf32>'}}
  %y = nn.conv %x, %w outs(%e) strides [2] dilations [1] pads [1, 1] groups(2) : tensor<2x3x7xf32>, tensor<5x3x3xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @strides(%x: tensor<2x3x7xf32>, %w: tensor<5x3x3xf32>, %e: tensor<2x5x4xf32>) {
  // expected-error @below {{'nn.conv' op M4: strides and dilations are positive}}
  %y = nn.conv %x, %w outs(%e) strides [0] dilations [1] pads [1, 1] groups(1) : tensor<2x3x7xf32>, tensor<5x3x3xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @windows(%x: tensor<2x3x7xf32>, %w: tensor<5x3x3xf32>, %e: tensor<2x5x5xf32>) {
  // expected-error @below {{'nn.conv' op M5: has 4 windows along spatial dimension 0, but its output 5}}
  %y = nn.conv %x, %w outs(%e) strides [2] dilations [1] pads [1, 1] groups(1) : tensor<2x3x7xf32>, tensor<5x3x3xf32>, tensor<2x5x5xf32> -> tensor<2x5x5xf32>
  return
}

// -----

func.func @pool_rank(%x: tensor<2x3x7xf32>) {
  // expected-error @below {{'nn.sum_pool' op M6: needs as many strides, dilations and pads as dimensions of its window and spatial ones}}
  %y = nn.sum_pool %x window [3, 2] strides [2] dilations [1] pads [0] : tensor<2x3x7xf32> -> tensor<2x3x3xf32>
  return
}

// -----

func.func @pool_channels(%x: tensor<2x3x7xf32>) {
  // expected-error @below {{'nn.sum_pool' op M7: changes dimension 1 of 'tensor<2x3x7xf32>' to 'tensor<2x5x3xf32>'}}
  %y = nn.sum_pool %x window [3] strides [2] dilations [1] pads [0] : tensor<2x3x7xf32> -> tensor<2x5x3xf32>
  return
}

// -----

func.func @pool_numbers(%x: tensor<2x3x7xf32>) {
  // expected-error @below {{'nn.sum_pool' op M8: has a window, stride or dilation that is not positive, or a negative pad}}
  %y = nn.sum_pool %x window [3] strides [2] dilations [1] pads [-1] : tensor<2x3x7xf32> -> tensor<2x3x3xf32>
  return
}

// -----

func.func @pool_outside(%x: tensor<2x3x7xf32>) {
  // expected-error @below {{'nn.sum_pool' op M9: has a window outside of spatial dimension 0 of 'tensor<2x3x7xf32>'}}
  %y = nn.sum_pool %x window [3] strides [2] dilations [1] pads [0] : tensor<2x3x7xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @pool_types(%x: tensor<2x3x7xf32>) {
  // expected-error @below {{'nn.sum_pool' op M2: mixes element types}}
  %y = nn.sum_pool %x window [3] strides [2] dilations [1] pads [0] : tensor<2x3x7xf32> -> tensor<2x3x3xf64>
  return
}

// -----

func.func @indices(%x: tensor<2x3x7xf32>) {
  // expected-error @below {{'nn.max_pool' op M10: indices and result differ in shape}}
  %y, %i = nn.max_pool %x window [3] strides [2] dilations [1] pads [0] : tensor<2x3x7xf32> -> tensor<2x3x3xf32>, tensor<2x3x4xi32>
  return
}

// -----

func.func @grad_indices(%y: tensor<2x3x3xf32>, %i: tensor<2x3x4xi32>) {
  // expected-error @below {{'nn.max_pool_grad' op M10: indices and cotangent differ in shape}}
  %dx = nn.max_pool_grad %y, %i window [3] strides [2] dilations [1] pads [0] : tensor<2x3x3xf32>, tensor<2x3x4xi32> -> tensor<2x3x7xf32>
  return
}

// -----

func.func @grad_types(%y: tensor<2x3x3xf32>, %i: tensor<2x3x3xi32>) {
  // expected-error @below {{'nn.max_pool_grad' op M2: mixes element types}}
  %dx = nn.max_pool_grad %y, %i window [3] strides [2] dilations [1] pads [0] : tensor<2x3x3xf32>, tensor<2x3x3xi32> -> tensor<2x3x7xf64>
  return
}

// -----

func.func @grad_shapes(%y: tensor<2x3x3xf32>, %i: tensor<2x3x3xi32>) {
  // expected-error @below {{'nn.max_pool_grad' op M7: changes dimension 1 of 'tensor<2x5x7xf32>' to 'tensor<2x3x3xf32>'}}
  %dx = nn.max_pool_grad %y, %i window [3] strides [2] dilations [1] pads [0] : tensor<2x3x3xf32>, tensor<2x3x3xi32> -> tensor<2x5x7xf32>
  return
}
