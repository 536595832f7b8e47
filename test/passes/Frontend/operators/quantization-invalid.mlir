// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// Types and shapes of scale and zero point.

func.func @wide(%v0: tensor<5x4xf32>, %v1: tensor<f32>, %v2: tensor<i32>) -> tensor<5x4xi32> {
  // expected-error @+1 {{node 'QuantizeLinear#0' (QuantizeLinear, since-version 19): is quantized to 'i32'; integers of 8 and 16 bits are supported}}
  %y = onnx.node "QuantizeLinear"(%v0, %v1, %v2) since 19 : (tensor<5x4xf32>, tensor<f32>, tensor<i32>) -> tensor<5x4xi32>
  return %y : tensor<5x4xi32>
}

// -----

func.func @type(%v0: tensor<5x4xi8>, %v1: tensor<f32>, %v2: tensor<ui8>) -> tensor<5x4xf32> {
  // expected-error @+1 {{node 'DequantizeLinear#0' (DequantizeLinear, since-version 19): operands 'x' and 'x_zero_point' are 'tensor<5x4xi8>' and 'tensor<ui8>', their element types must be equal; insert a Cast}}
  %y = onnx.node "DequantizeLinear"(%v0, %v1, %v2) since 19 : (tensor<5x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

func.func @floats(%v0: tensor<5x4xf32>, %v1: tensor<f32>) -> tensor<5x4xf32> {
  // expected-error @+1 {{node 'DequantizeLinear#0' (DequantizeLinear, since-version 19): is quantized to 'f32'; integers of 8 and 16 bits are supported}}
  %y = onnx.node "DequantizeLinear"(%v0, %v1) since 19 : (tensor<5x4xf32>, tensor<f32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

func.func @output(%v0: tensor<5x4xf32>, %v1: tensor<f32>, %v2: tensor<ui8>) -> tensor<5x4xi8> {
  // expected-error @+1 {{node 'QuantizeLinear#0' (QuantizeLinear, since-version 21): attribute 'output_dtype' must be the type of the zero point, it is 3 : i64}}
  %y = onnx.node "QuantizeLinear"(%v0, %v1, %v2) since 21 {output_dtype = 3} : (tensor<5x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<5x4xi8>
  return %y : tensor<5x4xi8>
}

// -----

func.func @unknown(%v0: tensor<5x4xf32>, %v1: tensor<f32>) -> tensor<5x4xi8> {
  // expected-error @+1 {{node 'QuantizeLinear#0' (QuantizeLinear, since-version 21): attribute 'output_dtype' must be float, int8, uint8, int16 or uint16, it is 17 : i64}}
  %y = onnx.node "QuantizeLinear"(%v0, %v1) since 21 {output_dtype = 17} : (tensor<5x4xf32>, tensor<f32>) -> tensor<5x4xi8>
  return %y : tensor<5x4xi8>
}

// -----

func.func @shapes(%v0: tensor<5x4xf32>, %v1: tensor<4xf32>, %v2: tensor<1xui8>) -> tensor<5x4xui8> {
  // expected-error @+1 {{node 'QuantizeLinear#0' (QuantizeLinear, since-version 19): operands 'y_scale' and 'y_zero_point' are 'tensor<4xf32>' and 'tensor<1xui8>', their shapes must be equal}}
  %y = onnx.node "QuantizeLinear"(%v0, %v1, %v2) since 19 : (tensor<5x4xf32>, tensor<4xf32>, tensor<1xui8>) -> tensor<5x4xui8>
  return %y : tensor<5x4xui8>
}

// -----

func.func @blocks(%v0: tensor<5x4xf32>, %v1: tensor<5x3xf32>, %v2: tensor<5x3xui8>) -> tensor<5x4xui8> {
  // expected-error @+1 {{node 'QuantizeLinear#0' (QuantizeLinear, since-version 21): operand 'y_scale' is 'tensor<5x3xf32>'; it must be one number, one per slice of axis 1 of 'tensor<5x4xf32>', or one per block of 'block_size' elements that divide the axis}}
  %y = onnx.node "QuantizeLinear"(%v0, %v1, %v2) since 21 {block_size = 2} : (tensor<5x4xf32>, tensor<5x3xf32>, tensor<5x3xui8>) -> tensor<5x4xui8>
  return %y : tensor<5x4xui8>
}

// -----

func.func @nothing(%v0: tensor<0x4xf32>) -> tensor<0x4xui8> {
  // expected-error @+1 {{node 'DynamicQuantizeLinear#0' (DynamicQuantizeLinear, since-version 11): quantizes 'tensor<0x4xf32>', which has no range}}
  %y = onnx.node "DynamicQuantizeLinear"(%v0) since 11 : (tensor<0x4xf32>) -> tensor<0x4xui8>
  return %y : tensor<0x4xui8>
}
