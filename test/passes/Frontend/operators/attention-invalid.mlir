// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// Earlier keys and values, and attributes of later versions.

func.func @half(%v0: tensor<2x3x4x5xf32>, %v1: tensor<2x3x3x5xf32>, %v2: tensor<2x3x3x5xf32>, %v4: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %v3 = onnx.absent
  // expected-error @+1 {{node 'Attention#0' (Attention, since-version 23): has one of 'past_key' and 'past_value'; it needs both or neither}}
  %y = onnx.node "Attention"(%v0, %v1, %v2, %v3, %v4) since 23 : (tensor<2x3x4x5xf32>, tensor<2x3x3x5xf32>, tensor<2x3x3x5xf32>, none, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return %y : tensor<2x3x4x5xf32>
}

// -----

func.func @sizes(%v0: tensor<2x3x4x5xf32>, %v1: tensor<2x3x3x5xf32>, %v2: tensor<2x3x3x5xf32>, %v4: tensor<2x3x4x5xf32>, %v5: tensor<2x3x5x5xf32>) -> tensor<2x3x4x5xf32> {
  %v3 = onnx.absent
  // expected-error @+1 {{node 'Attention#0' (Attention, since-version 23): operands 'past_key' and 'past_value' are 'tensor<2x3x4x5xf32>' and 'tensor<2x3x5x5xf32>', which are no earlier steps of 'tensor<2x3x3x5xf32>' and 'tensor<2x3x3x5xf32>'}}
  %y = onnx.node "Attention"(%v0, %v1, %v2, %v3, %v4, %v5) since 23 : (tensor<2x3x4x5xf32>, tensor<2x3x3x5xf32>, tensor<2x3x3x5xf32>, none, tensor<2x3x4x5xf32>, tensor<2x3x5x5xf32>) -> tensor<2x3x4x5xf32>
  return %y : tensor<2x3x4x5xf32>
}

// -----

func.func @window(%v0: tensor<2x3x4x5xf32>, %v1: tensor<2x3x3x5xf32>, %v2: tensor<2x3x3x5xf32>) -> tensor<2x3x4x5xf32> {
  // expected-error @+1 {{node 'Attention#0' (Attention, since-version 23): attribute 'left_window_size' is of a later version; use a mask}}
  %y = onnx.node "Attention"(%v0, %v1, %v2) since 23 {left_window_size = 2} : (tensor<2x3x4x5xf32>, tensor<2x3x3x5xf32>, tensor<2x3x3x5xf32>) -> tensor<2x3x4x5xf32>
  return %y : tensor<2x3x4x5xf32>
}

// -----

func.func @mode(%v0: tensor<2x3x4x6xf32>) -> tensor<2x12x2x3xf32> {
  // expected-error @+1 {{node 'SpaceToDepth#0' (SpaceToDepth, since-version 13): attribute 'mode' is of a later version; transpose instead}}
  %y = onnx.node "SpaceToDepth"(%v0) since 13 {blocksize = 2, mode = "CRD"} : (tensor<2x3x4x6xf32>) -> tensor<2x12x2x3xf32>
  return %y : tensor<2x12x2x3xf32>
}
