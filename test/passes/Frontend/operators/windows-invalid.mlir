// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

func.func @groups(%x: tensor<5x4x9xf32>, %w: tensor<6x4x3xf32>) -> tensor<5x6x7xf32> {
  // expected-error @+1 {{node 'Conv#0' (Conv, since-version 11): operand 'W' ('tensor<6x4x3xf32>') in 2 groups does not fit the 4 channels of 'X'}}
  %y = onnx.node "Conv"(%x, %w) since 11 {group = 2} : (tensor<5x4x9xf32>, tensor<6x4x3xf32>) -> tensor<5x6x7xf32>
  return %y : tensor<5x6x7xf32>
}

// -----

func.func @window(%x: tensor<5x4x2xf32>, %w: tensor<6x4x3xf32>) -> tensor<5x6x1xf32> {
  // expected-error @+1 {{node 'Conv#0' (Conv, since-version 11): has windows of 3 elements, but spatial dimension 0 has only 2 with its padding}}
  %y = onnx.node "Conv"(%x, %w) since 11 : (tensor<5x4x2xf32>, tensor<6x4x3xf32>) -> tensor<5x6x1xf32>
  return %y : tensor<5x6x1xf32>
}

// -----

func.func @pads(%x: tensor<5x4x8xf32>, %w: tensor<6x4x3xf32>) -> tensor<5x6x8xf32> {
  // expected-error @+1 {{node 'Conv#0' (Conv, since-version 11): has both pads and auto_pad = SAME_LOWER}}
  %y = onnx.node "Conv"(%x, %w) since 11 {auto_pad = "SAME_LOWER", pads = array<i64: 1, 1>} : (tensor<5x4x8xf32>, tensor<6x4x3xf32>) -> tensor<5x6x8xf32>
  return %y : tensor<5x6x8xf32>
}

// -----

func.func @padding(%x: tensor<5x4x8xf32>) -> tensor<5x4x10xf32> {
  // expected-error @+1 {{node 'MaxPool#0' (MaxPool, since-version 12): has windows that lie in the padding alone}}
  %y = onnx.node "MaxPool"(%x) since 12 {kernel_shape = array<i64: 2>, pads = array<i64: 2, 1>} : (tensor<5x4x8xf32>) -> tensor<5x4x10xf32>
  return %y : tensor<5x4x10xf32>
}

// -----

func.func @channels(%x: tensor<5x3x4xf32>, %c: tensor<5xf32>) -> tensor<5x3x4xf32> {
  // expected-error @+1 {{node 'BatchNormalization#0' (BatchNormalization, since-version 15): operand 'scale' has type 'tensor<5xf32>', but there are 3 channels}}
  %y = onnx.node "BatchNormalization"(%x, %c, %c, %c, %c) since 15 : (tensor<5x3x4xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5x3x4xf32>
  return %y : tensor<5x3x4xf32>
}

// -----

func.func @scales(%x: tensor<1x3x2xf32>, %s: tensor<3xf32>) -> tensor<1x3x4xf32> {
  %none = onnx.absent
  // expected-error @+1 {{operand 'scales' is not constant: the shape of the result must be known when compiling}}
  %y = onnx.node "Resize"(%x, %none, %s) since 19 : (tensor<1x3x2xf32>, none, tensor<3xf32>) -> tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}
