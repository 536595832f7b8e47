// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// What must be constant, or fit.

func.func @condition(%v0: tensor<5x4xf32>, %v1: tensor<5xi1>) -> tensor<3x4xf32> {
  // expected-error @+1 {{node 'Compress#0' (Compress, since-version 11): operand 'condition' must be constant when the model is compiled, as it says the size of the result; mask with Where or a product instead}}
  %y = onnx.node "Compress"(%v0, %v1) since 11 {axis = 0} : (tensor<5x4xf32>, tensor<5xi1>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @many(%v0: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %v1 = arith.constant dense<true> : tensor<6xi1>
  // expected-error @+1 {{node 'Compress#0' (Compress, since-version 11): operand 'condition' is 'tensor<6xi1>', it must be a list for at most 5 elements}}
  %y = onnx.node "Compress"(%v0, %v1) since 11 {axis = 0} : (tensor<5x4xf32>, tensor<6xi1>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @unique(%v0: tensor<5x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{node 'Unique#0' (Unique, since-version 11): operand 'X' must be constant when the model is compiled, as it says the size of the result}}
  %y = onnx.node "Unique"(%v0) since 11 {axis = 0} : (tensor<5x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @nan() -> tensor<2xf32> {
  %v0 = arith.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  // expected-error @+1 {{node 'Unique#0' (Unique, since-version 11): operand 'X' holds NaN, which equals nothing}}
  %y = onnx.node "Unique"(%v0) since 11 : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @reverse(%v0: tensor<5x3x2xf32>, %v1: tensor<3xi64>) -> tensor<5x3x2xf32> {
  // expected-error @+1 {{node 'ReverseSequence#0' (ReverseSequence, since-version 10): has time_axis 1 and batch_axis 1, which must be 0 and 1 or 1 and 0 of 'tensor<5x3x2xf32>', and lengths in 'tensor<3xi64>'}}
  %y = onnx.node "ReverseSequence"(%v0, %v1) since 10 {time_axis = 1, batch_axis = 1} : (tensor<5x3x2xf32>, tensor<3xi64>) -> tensor<5x3x2xf32>
  return %y : tensor<5x3x2xf32>
}

// -----

func.func @lengths(%v0: tensor<5x3x2xf32>, %v1: tensor<5xi64>) -> tensor<5x3x2xf32> {
  // expected-error @+1 {{node 'ReverseSequence#0' (ReverseSequence, since-version 10): has time_axis 0 and batch_axis 1, which must be 0 and 1 or 1 and 0 of 'tensor<5x3x2xf32>', and lengths in 'tensor<5xi64>'}}
  %y = onnx.node "ReverseSequence"(%v0, %v1) since 10 : (tensor<5x3x2xf32>, tensor<5xi64>) -> tensor<5x3x2xf32>
  return %y : tensor<5x3x2xf32>
}

// -----

func.func @sequence_lens(%v0: tensor<4x3x2xf32>, %v1: tensor<1x20x2xf32>, %v2: tensor<1x20x5xf32>, %v4: tensor<2xi32>) -> tensor<4x1x3x5xf32> {
  %v3 = onnx.absent
  // expected-error @+1 {{node 'LSTM#0' (LSTM, since-version 14): operand 'sequence_lens' is 'tensor<2xi32>', it must have the length of each of the 3 sequences}}
  %y = onnx.node "LSTM"(%v0, %v1, %v2, %v3, %v4) since 14 : (tensor<4x3x2xf32>, tensor<1x20x2xf32>, tensor<1x20x5xf32>, none, tensor<2xi32>) -> tensor<4x1x3x5xf32>
  return %y : tensor<4x1x3x5xf32>
}

// -----

func.func @too_long(%v0: tensor<4x3x2xf32>, %v1: tensor<1x20x2xf32>, %v2: tensor<1x20x5xf32>) -> tensor<4x1x3x5xf32> {
  %v3 = onnx.absent
  %v4 = arith.constant dense<[4, 5, 1]> : tensor<3xi32>
  // expected-error @+1 {{node 'LSTM#0' (LSTM, since-version 14): operand 'sequence_lens' has a length of 5, and 'X' has 4 steps}}
  %y = onnx.node "LSTM"(%v0, %v1, %v2, %v3, %v4) since 14 : (tensor<4x3x2xf32>, tensor<1x20x2xf32>, tensor<1x20x5xf32>, none, tensor<3xi32>) -> tensor<4x1x3x5xf32>
  return %y : tensor<4x1x3x5xf32>
}

// -----

func.func @shift(%v0: tensor<3xi32>, %v1: tensor<3xi32>) -> tensor<3xi32> {
  // expected-error @+1 {{node 'BitShift#0' (BitShift, since-version 11): operand 'X' is 'tensor<3xi32>', it must be of unsigned integers; insert a Cast}}
  %y = onnx.node "BitShift"(%v0, %v1) since 11 {direction = "LEFT"} : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  return %y : tensor<3xi32>
}
