// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// What sampling and patches cannot be.

func.func @mode(%v0: tensor<2x3x5x4xf32>, %v1: tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32> {
  // expected-error @+1 {{node 'GridSample#0' (GridSample, since-version 20): attribute 'mode' must be nearest, linear or cubic, it is "quintic"}}
  %y = onnx.node "GridSample"(%v0, %v1) since 20 {mode = "quintic"} : (tensor<2x3x5x4xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @padding(%v0: tensor<2x3x5x4xf32>, %v1: tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32> {
  // expected-error @+1 {{node 'GridSample#0' (GridSample, since-version 20): attribute 'padding_mode' must be zeros, border or reflection, it is "wrap"}}
  %y = onnx.node "GridSample"(%v0, %v1) since 20 {padding_mode = "wrap"} : (tensor<2x3x5x4xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @grid(%v0: tensor<2x3x5x4xf32>, %v1: tensor<2x3x2x3xf32>) -> tensor<2x3x3x2xf32> {
  // expected-error @+1 {{node 'GridSample#0' (GridSample, since-version 20): operand 'grid' is 'tensor<2x3x2x3xf32>', which does not name places of 'tensor<2x3x5x4xf32>'}}
  %y = onnx.node "GridSample"(%v0, %v1) since 20 : (tensor<2x3x5x4xf32>, tensor<2x3x2x3xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @nothing(%v0: tensor<2x3x0x4xf32>, %v1: tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32> {
  // expected-error @+1 {{node 'GridSample#0' (GridSample, since-version 20): samples 'tensor<2x3x0x4xf32>', which has no elements}}
  %y = onnx.node "GridSample"(%v0, %v1) since 20 : (tensor<2x3x0x4xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @theta(%v0: tensor<2x2x4xf32>) -> tensor<2x4x5x2xf32> {
  %v1 = arith.constant dense<[2, 3, 4, 5]> : tensor<4xi64>
  // expected-error @+1 {{node 'AffineGrid#0' (AffineGrid, since-version 20): operand 'theta' is 'tensor<2x2x4xf32>', which is no affine map of a grid for the 4 sizes of operand 'size'}}
  %y = onnx.node "AffineGrid"(%v0, %v1) since 20 : (tensor<2x2x4xf32>, tensor<4xi64>) -> tensor<2x4x5x2xf32>
  return %y : tensor<2x4x5x2xf32>
}

// -----

func.func @max(%v0: tensor<2x3x7x6xf32>, %v1: tensor<4x4xf32>, %v2: tensor<4xi64>) -> tensor<4x3x2x2xf32> {
  // expected-error @+1 {{node 'RoiAlign#0' (RoiAlign, since-version 16): has mode 'max', which implementations do not agree on; avg is supported}}
  %y = onnx.node "RoiAlign"(%v0, %v1, %v2) since 16 {mode = "max", sampling_ratio = 2} : (tensor<2x3x7x6xf32>, tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x3x2x2xf32>
  return %y : tensor<4x3x2x2xf32>
}

// -----

func.func @adaptive(%v0: tensor<2x3x7x6xf32>, %v1: tensor<4x4xf32>, %v2: tensor<4xi64>) -> tensor<4x3x2x2xf32> {
  // expected-error @+1 {{node 'RoiAlign#0' (RoiAlign, since-version 16): has sampling_ratio 0: how many samples a bin has would depend on data; export the model with a positive sampling_ratio}}
  %y = onnx.node "RoiAlign"(%v0, %v1, %v2) since 16 : (tensor<2x3x7x6xf32>, tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x3x2x2xf32>
  return %y : tensor<4x3x2x2xf32>
}

// -----

func.func @coordinates(%v0: tensor<2x3x7x6xf32>, %v1: tensor<4x4xf32>, %v2: tensor<4xi64>) -> tensor<4x3x1x1xf32> {
  // expected-error @+1 {{node 'RoiAlign#0' (RoiAlign, since-version 16): attribute 'coordinate_transformation_mode' must be half_pixel or output_half_pixel, it is "pixel"}}
  %y = onnx.node "RoiAlign"(%v0, %v1, %v2) since 16 {sampling_ratio = 2, coordinate_transformation_mode = "pixel"} : (tensor<2x3x7x6xf32>, tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x3x1x1xf32>
  return %y : tensor<4x3x1x1xf32>
}

// -----

func.func @bins(%v0: tensor<2x3x7x6xf32>, %v1: tensor<4x4xf32>, %v2: tensor<4xi64>) -> tensor<4x3x1x1xf32> {
  // expected-error @+1 {{node 'RoiAlign#0' (RoiAlign, since-version 16): has bins of 0 rows and 1 columns}}
  %y = onnx.node "RoiAlign"(%v0, %v1, %v2) since 16 {sampling_ratio = 2, output_height = 0} : (tensor<2x3x7x6xf32>, tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x3x1x1xf32>
  return %y : tensor<4x3x1x1xf32>
}

// -----

func.func @corners(%v0: tensor<2x3x7x6xf32>, %v1: tensor<4x5xf32>, %v2: tensor<4xi64>) -> tensor<4x3x1x1xf32> {
  // expected-error @+1 {{node 'RoiAlign#0' (RoiAlign, since-version 16): operands 'tensor<2x3x7x6xf32>', 'tensor<4x5xf32>' and 'tensor<4xi64>' are no images, corners of regions and the image of each region}}
  %y = onnx.node "RoiAlign"(%v0, %v1, %v2) since 16 {sampling_ratio = 2} : (tensor<2x3x7x6xf32>, tensor<4x5xf32>, tensor<4xi64>) -> tensor<4x3x1x1xf32>
  return %y : tensor<4x3x1x1xf32>
}

// -----

func.func @kernel(%v0: tensor<2x3x3x3xf32>, %v1: tensor<2x3x3x3xi64>) -> tensor<2x3x6x6xf32> {
  // expected-error @+1 {{node 'MaxUnpool#0' (MaxUnpool, since-version 11): attribute 'kernel_shape' must be as many numbers as 'X' has spatial dimensions, it is array<i64: 2>}}
  %y = onnx.node "MaxUnpool"(%v0, %v1) since 11 {kernel_shape = array<i64: 2>} : (tensor<2x3x3x3xf32>, tensor<2x3x3x3xi64>) -> tensor<2x3x6x6xf32>
  return %y : tensor<2x3x6x6xf32>
}

// -----

func.func @indices(%v0: tensor<2x3x3x3xf32>, %v1: tensor<2x3x3xi64>) -> tensor<2x3x6x6xf32> {
  // expected-error @+1 {{node 'MaxUnpool#0' (MaxUnpool, since-version 11): operands are 'tensor<2x3x3x3xf32>' and 'tensor<2x3x3xi64>'; both must have one shape with spatial dimensions}}
  %y = onnx.node "MaxUnpool"(%v0, %v1) since 11 {kernel_shape = array<i64: 2, 2>} : (tensor<2x3x3x3xf32>, tensor<2x3x3xi64>) -> tensor<2x3x6x6xf32>
  return %y : tensor<2x3x6x6xf32>
}

// -----

func.func @smaller(%v0: tensor<2x3x3x3xf32>, %v1: tensor<2x3x3x3xi64>) -> tensor<2x3x5x5xf32> {
  %v2 = arith.constant dense<[2, 3, 5, 5]> : tensor<4xi64>
  // expected-error @+1 {{node 'MaxUnpool#0' (MaxUnpool, since-version 11): unpools 'tensor<2x3x3x3xf32>' to a shape that its windows do not have}}
  %y = onnx.node "MaxUnpool"(%v0, %v1, %v2) since 11 {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<2x3x3x3xf32>, tensor<2x3x3x3xi64>, tensor<4xi64>) -> tensor<2x3x5x5xf32>
  return %y : tensor<2x3x5x5xf32>
}

// -----

func.func @blocks(%v0: tensor<2x18x11xf32>) -> tensor<2x3x5x4xf32> {
  %v1 = arith.constant dense<[5, 4]> : tensor<2xi64>
  %v2 = arith.constant dense<[3, 2]> : tensor<2xi64>
  // expected-error @+1 {{node 'Col2Im#0' (Col2Im, since-version 18): operand 'input' is 'tensor<2x18x11xf32>', which is not [N, channels * block, blocks] for these shapes of image and block}}
  %y = onnx.node "Col2Im"(%v0, %v1, %v2) since 18 : (tensor<2x18x11xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// -----

func.func @sizes(%v0: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %v1 = arith.constant dense<[3]> : tensor<1xi64>
  // expected-error @+1 {{node 'CenterCropPad#0' (CenterCropPad, since-version 18): operand 'shape' has 1 sizes for 2 axes}}
  %y = onnx.node "CenterCropPad"(%v0, %v1) since 18 : (tensor<5x4xf32>, tensor<1xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @negative(%v0: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %v1 = arith.constant dense<[3, -1]> : tensor<2xi64>
  // expected-error @+1 {{node 'CenterCropPad#0' (CenterCropPad, since-version 18): operand 'shape' has the size -1}}
  %y = onnx.node "CenterCropPad"(%v0, %v1) since 18 : (tensor<5x4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
