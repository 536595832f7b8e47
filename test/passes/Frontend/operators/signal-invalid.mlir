// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// Transforms and windows.

func.func @parts(%v0: tensor<2x5x3xf32>) -> tensor<2x5x2xf32> {
  // expected-error @+1 {{node 'DFT#0' (DFT, since-version 20): transforms 'tensor<2x5x3xf32>', whose last axis must be 1, of real numbers, or 2, of complex ones}}
  %y = onnx.node "DFT"(%v0) since 20 : (tensor<2x5x3xf32>) -> tensor<2x5x2xf32>
  return %y : tensor<2x5x2xf32>
}

// -----

func.func @half(%v0: tensor<2x1x2xf32>) -> tensor<2x0x1xf32> {
  // expected-error @+1 {{node 'DFT#0' (DFT, since-version 20): transforms 'tensor<2x1x2xf32>', half of a spectrum of no elements}}
  %y = onnx.node "DFT"(%v0) since 20 {inverse = 1, onesided = 1} : (tensor<2x1x2xf32>) -> tensor<2x0x1xf32>
  return %y : tensor<2x0x1xf32>
}

// -----

func.func @last(%v0: tensor<2x5x2xf32>) -> tensor<2x5x2xf32> {
  %v1 = onnx.absent
  %v2 = arith.constant dense<2> : tensor<i64>
  // expected-error @+1 {{node 'DFT#0' (DFT, since-version 20): transforms the last axis, that of real and imaginary parts}}
  %y = onnx.node "DFT"(%v0, %v1, %v2) since 20 : (tensor<2x5x2xf32>, none, tensor<i64>) -> tensor<2x5x2xf32>
  return %y : tensor<2x5x2xf32>
}

// -----

func.func @large(%v0: tensor<2x4096x1xf32>) -> tensor<2x4096x2xf32> {
  // expected-error @+1 {{node 'DFT#0' (DFT, since-version 20): transforms 4096 elements to 4096 frequencies, whose matrix is too large to be part of a program; transform the data beforehand}}
  %y = onnx.node "DFT"(%v0) since 20 : (tensor<2x4096x1xf32>) -> tensor<2x4096x2xf32>
  return %y : tensor<2x4096x2xf32>
}

// -----

func.func @length(%v0: tensor<2x5x1xf32>) -> tensor<2x5x2xf32> {
  %v1 = arith.constant dense<0> : tensor<i64>
  // expected-error @+1 {{node 'DFT#0' (DFT, since-version 20): operand 'dft_length' is 0, it must be positive}}
  %y = onnx.node "DFT"(%v0, %v1) since 20 : (tensor<2x5x1xf32>, tensor<i64>) -> tensor<2x5x2xf32>
  return %y : tensor<2x5x2xf32>
}

// -----

func.func @data(%v0: tensor<2x5x1xf32>, %v1: tensor<i64>) -> tensor<2x5x2xf32> {
  // expected-error @+1 {{node 'DFT#0' (DFT, since-version 20): operand 'dft_length' must be a constant scalar when the model is compiled; make it an initializer}}
  %y = onnx.node "DFT"(%v0, %v1) since 20 : (tensor<2x5x1xf32>, tensor<i64>) -> tensor<2x5x2xf32>
  return %y : tensor<2x5x2xf32>
}

// -----

func.func @signal(%v0: tensor<2x11xf32>, %v2: tensor<5xf32>) -> tensor<2x3x3x2xf32> {
  %v1 = arith.constant dense<3> : tensor<i64>
  // expected-error @+1 {{node 'STFT#0' (STFT, since-version 17): operand 'signal' is 'tensor<2x11xf32>', its axes must be batch, time and parts}}
  %y = onnx.node "STFT"(%v0, %v1, %v2) since 17 : (tensor<2x11xf32>, tensor<i64>, tensor<5xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @frame(%v0: tensor<2x11x1xf32>) -> tensor<2x3x3x2xf32> {
  %v1 = arith.constant dense<3> : tensor<i64>
  // expected-error @+1 {{node 'STFT#0' (STFT, since-version 17): has neither 'window' nor 'frame_length'}}
  %y = onnx.node "STFT"(%v0, %v1) since 17 : (tensor<2x11x1xf32>, tensor<i64>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @longer(%v0: tensor<2x4x1xf32>, %v2: tensor<5xf32>) -> tensor<2x3x3x2xf32> {
  %v1 = arith.constant dense<3> : tensor<i64>
  // expected-error @+1 {{node 'STFT#0' (STFT, since-version 17): has frames of 5 elements in a signal of 4}}
  %y = onnx.node "STFT"(%v0, %v1, %v2) since 17 : (tensor<2x4x1xf32>, tensor<i64>, tensor<5xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @window(%v0: tensor<2x11x1xf32>, %v2: tensor<5xf32>) -> tensor<2x3x3x2xf32> {
  %v1 = arith.constant dense<3> : tensor<i64>
  %v3 = arith.constant dense<4> : tensor<i64>
  // expected-error @+1 {{node 'STFT#0' (STFT, since-version 17): operand 'window' is 'tensor<5xf32>', which is no frame of 4 elements}}
  %y = onnx.node "STFT"(%v0, %v1, %v2, %v3) since 17 : (tensor<2x11x1xf32>, tensor<i64>, tensor<5xf32>, tensor<i64>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @complex(%v0: tensor<2x11x2xf32>, %v2: tensor<5xf32>) -> tensor<2x3x3x2xf32> {
  %v1 = arith.constant dense<3> : tensor<i64>
  // expected-error @+1 {{node 'STFT#0' (STFT, since-version 17): has a complex signal, whose spectrum needs attribute 'onesided' to be 0}}
  %y = onnx.node "STFT"(%v0, %v1, %v2) since 17 : (tensor<2x11x2xf32>, tensor<i64>, tensor<5xf32>) -> tensor<2x3x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}

// -----

func.func @hann() -> tensor<5xf32> {
  %v0 = arith.constant dense<5> : tensor<i64>
  // expected-error @+1 {{node 'HannWindow#0' (HannWindow, since-version 17): attribute 'output_datatype' must be the number of a float type, it is 7 : i64}}
  %y = onnx.node "HannWindow"(%v0) since 17 {output_datatype = 7} : (tensor<i64>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func @mel() -> tensor<9x4xf32> {
  %v0 = arith.constant dense<4> : tensor<i64>
  %v1 = arith.constant dense<16> : tensor<i64>
  %v2 = arith.constant dense<8000> : tensor<i64>
  %v3 = arith.constant dense<100.0> : tensor<f32>
  %v4 = arith.constant dense<9000.0> : tensor<f32>
  // expected-error @+1 {{node 'MelWeightMatrix#0' (MelWeightMatrix, since-version 17): has 4 bins from 1.000000e+02 to 9.000000e+03 Hz, which a transform of 16 elements at 8.000000e+03 Hz does not have}}
  %y = onnx.node "MelWeightMatrix"(%v0, %v1, %v2, %v3, %v4) since 17 : (tensor<i64>, tensor<i64>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<9x4xf32>
  return %y : tensor<9x4xf32>
}
