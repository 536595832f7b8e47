// Convolutions, pooling, batch normalization and resizing: what of their
// attributes reaches the ops.
// RUN: penstock-opt %s -split-input-file --convert-onnx-to-graph | FileCheck %s

// The larger half of SAME_UPPER's padding is after; the bias is a generic.
// CHECK-LABEL: @conv
// CHECK: %[[Y:.*]] = nn.conv %{{.*}}, %{{.*}} outs(%{{.*}}) strides [2, 1] dilations [1, 2] pads [0, 2, 1, 2] groups(2)
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<5x6x5x9xf32>, tensor<6xf32>)
func.func @conv(%x: tensor<5x4x10x9xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>) -> tensor<5x6x5x9xf32> {
  %y = onnx.node "Conv"(%x, %w, %b) since 11 {auto_pad = "SAME_UPPER", strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, group = 2} : (tensor<5x4x10x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<5x6x5x9xf32>
  return %y : tensor<5x6x5x9xf32>
}

// -----

// A bias of zeros, as PyTorch's exporter writes for none, is not added.
// CHECK-LABEL: @no_bias
// CHECK: %[[Y:.*]] = nn.conv
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @no_bias(%x: tensor<5x4x10x9xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<5x6x8x7xf32> {
  %b = arith.constant dense<0.0> : tensor<6xf32>
  %y = onnx.node "Conv"(%x, %w, %b) since 11 : (tensor<5x4x10x9xf32>, tensor<6x4x3x3xf32>, tensor<6xf32>) -> tensor<5x6x8x7xf32>
  return %y : tensor<5x6x8x7xf32>
}

// -----

// A transposed convolution is the gradient of the one that goes the other way;
// output_padding takes from the padding after.
// CHECK-LABEL: @conv_transpose
// CHECK: nn.conv_input_grad %{{.*}}, %{{.*}} outs(%{{.*}}) strides [2] dilations [1] pads [1, 0] groups(1) {{.*}} -> tensor<5x6x14xf32>
func.func @conv_transpose(%x: tensor<5x4x7xf32>, %w: tensor<4x6x3xf32>) -> tensor<5x6x14xf32> {
  %y = onnx.node "ConvTranspose"(%x, %w) since 11 {strides = array<i64: 2>, pads = array<i64: 1, 1>, output_padding = array<i64: 1>} : (tensor<5x4x7xf32>, tensor<4x6x3xf32>) -> tensor<5x6x14xf32>
  return %y : tensor<5x6x14xf32>
}

// -----

// ceil_mode adds a window; the indices count through the whole tensor.
// CHECK-LABEL: @max_pool
// CHECK: nn.max_pool %{{.*}} window [2] strides [2] dilations [1] pads [0] : tensor<5x3x7xf32> -> tensor<5x3x4xf32>, tensor<5x3x4xi32>
// CHECK: arith.extsi
func.func @max_pool(%x: tensor<5x3x7xf32>) -> (tensor<5x3x4xf32>, tensor<5x3x4xi64>) {
  %y, %i = onnx.node "MaxPool"(%x) since 12 {kernel_shape = array<i64: 2>, strides = array<i64: 2>, ceil_mode = 1} : (tensor<5x3x7xf32>) -> (tensor<5x3x4xf32>, tensor<5x3x4xi64>)
  return %y, %i : tensor<5x3x4xf32>, tensor<5x3x4xi64>
}

// -----

// Windows at the border have fewer elements to divide by.
// CHECK-LABEL: @average_pool
// CHECK: arith.constant dense<[2.000000e+00, 3.000000e+00, 3.000000e+00, 2.000000e+00]> : tensor<4xf32>
// CHECK: arith.divf
func.func @average_pool(%x: tensor<5x3x4xf32>) -> tensor<5x3x4xf32> {
  %y = onnx.node "AveragePool"(%x) since 19 {kernel_shape = array<i64: 3>, pads = array<i64: 1, 1>} : (tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
  return %y : tensor<5x3x4xf32>
}

// -----

// CHECK-LABEL: @batch_norm
// CHECK: nn.batch_norm %{{.*}} momentum(0.8{{.*}}) epsilon({{.*}}) : tensor<5x3x4xf32>, tensor<3xf32>
func.func @batch_norm(%x: tensor<5x3x4xf32>, %c: tensor<3xf32>) -> tensor<5x3x4xf32> {
  %y = onnx.node "BatchNormalization"(%x, %c, %c, %c, %c) since 15 {momentum = 0.8 : f32} : (tensor<5x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<5x3x4xf32>
  return %y : tensor<5x3x4xf32>
}

// -----

// Nearest neighbors at a whole factor repeat, others are a product.
// CHECK-LABEL: @upsample
// CHECK-NOT: linalg.contract
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x2x3x2xf32>)
func.func @upsample(%x: tensor<1x2x3xf32>) -> tensor<1x2x6xf32> {
  %s = arith.constant dense<[1.0, 1.0, 2.0]> : tensor<3xf32>
  %y = onnx.node "Upsample"(%x, %s) since 9 : (tensor<1x2x3xf32>, tensor<3xf32>) -> tensor<1x2x6xf32>
  return %y : tensor<1x2x6xf32>
}

// -----

// CHECK-LABEL: @linear
// CHECK: arith.constant dense<{{\[\[}}1.000000e+00, 0.000000e+00], [7.500000e-01, 2.500000e-01], [2.500000e-01, 7.500000e-01], [0.000000e+00, 1.000000e+00]]> : tensor<4x2xf32>
// CHECK: linalg.contract
func.func @linear(%x: tensor<1x3x2xf32>) -> tensor<1x3x4xf32> {
  %none = onnx.absent
  %s = arith.constant dense<[1.0, 1.0, 2.0]> : tensor<3xf32>
  %y = onnx.node "Resize"(%x, %none, %s) since 13 {mode = "linear"} : (tensor<1x3x2xf32>, none, tensor<3xf32>) -> tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}

// -----

// Version 10 rounds up where the input shrinks: elements 0, 5/3 and 10/3.
// CHECK-LABEL: @nearest_of_version_10
// CHECK: arith.constant dense<{{\[\[}}1.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 1.000000e+00, 0.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 1.000000e+00]]>
func.func @nearest_of_version_10(%x: tensor<1x3x5xf32>) -> tensor<1x3x3xf32> {
  %s = arith.constant dense<[1.0, 1.0, 0.6]> : tensor<3xf32>
  %y = onnx.node "Resize"(%x, %s) since 10 : (tensor<1x3x5xf32>, tensor<3xf32>) -> tensor<1x3x3xf32>
  return %y : tensor<1x3x3xf32>
}
