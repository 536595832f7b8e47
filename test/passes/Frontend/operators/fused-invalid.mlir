// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// Forms of com.microsoft, rotary embeddings.

func.func @activation(%v0: tensor<2x3x5x6xf32>, %v1: tensor<4x3x3x2xf32>) -> tensor<2x4x3x5xf32> {
  // expected-error @+1 {{node 'FusedConv#0' (com.microsoft.FusedConv, since-version 1): attribute 'activation' must be Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip, it is "Gelu"}}
  %y = onnx.node "FusedConv"(%v0, %v1) since 1 domain "com.microsoft" {activation = "Gelu"} : (tensor<2x3x5x6xf32>, tensor<4x3x3x2xf32>) -> tensor<2x4x3x5xf32>
  return %y : tensor<2x4x3x5xf32>
}

// -----

func.func @params(%v0: tensor<2x3x5x6xf32>, %v1: tensor<4x3x3x2xf32>) -> tensor<2x4x3x5xf32> {
  // expected-error @+1 {{node 'FusedConv#0' (com.microsoft.FusedConv, since-version 1): attribute 'activation_params' has 0 numbers, Clip has 2}}
  %y = onnx.node "FusedConv"(%v0, %v1) since 1 domain "com.microsoft" {activation = "Clip"} : (tensor<2x3x5x6xf32>, tensor<4x3x3x2xf32>) -> tensor<2x4x3x5xf32>
  return %y : tensor<2x4x3x5xf32>
}

// -----

func.func @sum(%v0: tensor<2x3x5x6xf32>, %v1: tensor<4x3x3x2xf32>, %v3: tensor<2x4x3x4xf32>) -> tensor<2x4x3x5xf32> {
  %v2 = onnx.absent
  // expected-error @+1 {{node 'FusedConv#0' (com.microsoft.FusedConv, since-version 1): operand 'Z' is 'tensor<2x4x3x4xf32>', it must have the shape of the convolution, 'tensor<2x4x3x5xf32>'}}
  %y = onnx.node "FusedConv"(%v0, %v1, %v2, %v3) since 1 domain "com.microsoft" {activation = "Relu"} : (tensor<2x3x5x6xf32>, tensor<4x3x3x2xf32>, none, tensor<2x4x3x4xf32>) -> tensor<2x4x3x5xf32>
  return %y : tensor<2x4x3x5xf32>
}

// -----

func.func @segments(%v0: tensor<2x3xi32>, %v1: tensor<2x3xi32>, %v2: tensor<7x4xf32>, %v3: tensor<5x4xf32>, %v5: tensor<4xf32>, %v6: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %v4 = onnx.absent
  // expected-error @+1 {{node 'EmbedLayerNormalization#0' (com.microsoft.EmbedLayerNormalization, since-version 1): has one of 'segment_ids' and 'segment_embedding'; it needs both or neither}}
  %y = onnx.node "EmbedLayerNormalization"(%v0, %v1, %v2, %v3, %v4, %v5, %v6) since 1 domain "com.microsoft" : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<7x4xf32>, tensor<5x4xf32>, none, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @rows(%v0: tensor<2x3xi32>, %v2: tensor<7x4xf32>, %v3: tensor<5x3xf32>, %v5: tensor<4xf32>, %v6: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %v1 = onnx.absent
  %v4 = onnx.absent
  // expected-error @+1 {{node 'EmbedLayerNormalization#0' (com.microsoft.EmbedLayerNormalization, since-version 1): operand 'position_embedding' is 'tensor<5x3xf32>', it must be a matrix with rows like those of 'tensor<7x4xf32>'}}
  %y = onnx.node "EmbedLayerNormalization"(%v0, %v1, %v2, %v3, %v4, %v5, %v6) since 1 domain "com.microsoft" : (tensor<2x3xi32>, none, tensor<7x4xf32>, tensor<5x3xf32>, none, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @positions(%v0: tensor<2x3xi32>, %v2: tensor<7x4xf32>, %v3: tensor<2x4xf32>, %v5: tensor<4xf32>, %v6: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %v1 = onnx.absent
  %v4 = onnx.absent
  // expected-error @+1 {{node 'EmbedLayerNormalization#0' (com.microsoft.EmbedLayerNormalization, since-version 1): has sequences of 3 tokens, but 2 positions}}
  %y = onnx.node "EmbedLayerNormalization"(%v0, %v1, %v2, %v3, %v4, %v5, %v6) since 1 domain "com.microsoft" : (tensor<2x3xi32>, none, tensor<7x4xf32>, tensor<2x4xf32>, none, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @gamma(%v0: tensor<2x3xi32>, %v2: tensor<7x4xf32>, %v3: tensor<5x4xf32>) -> tensor<2x3x4xf32> {
  %v1 = onnx.absent
  // expected-error @+1 {{node 'EmbedLayerNormalization#0' (com.microsoft.EmbedLayerNormalization, since-version 1): operand 'gamma' is left out, but it is not optional}}
  %y = onnx.node "EmbedLayerNormalization"(%v0, %v1, %v2, %v3) since 1 domain "com.microsoft" : (tensor<2x3xi32>, none, tensor<7x4xf32>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @mask(%v0: tensor<2x3xi32>, %v2: tensor<7x4xf32>, %v3: tensor<5x4xf32>, %v5: tensor<4xf32>, %v6: tensor<4xf32>, %v7: tensor<2x4xi32>) -> tensor<2x3x4xf32> {
  %v1 = onnx.absent
  %v4 = onnx.absent
  // expected-error @+1 {{node 'EmbedLayerNormalization#0' (com.microsoft.EmbedLayerNormalization, since-version 1): operand 'mask' is 'tensor<2x4xi32>', it must be integers in the shape of 'tensor<2x3xi32>'}}
  %y = onnx.node "EmbedLayerNormalization"(%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7) since 1 domain "com.microsoft" : (tensor<2x3xi32>, none, tensor<7x4xf32>, tensor<5x4xf32>, none, tensor<4xf32>, tensor<4xf32>, tensor<2x4xi32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @heads(%v0: tensor<2x3x10xf32>, %v1: tensor<5x1xf32>, %v2: tensor<5x1xf32>, %v3: tensor<2x3xi64>) -> tensor<2x3x10xf32> {
  // expected-error @+1 {{node 'RotaryEmbedding#0' (RotaryEmbedding, since-version 23): attribute 'num_heads' must be a divisor of the last axis of 'X', it is 3 : i64}}
  %y = onnx.node "RotaryEmbedding"(%v0, %v1, %v2, %v3) since 23 {num_heads = 3} : (tensor<2x3x10xf32>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<2x3xi64>) -> tensor<2x3x10xf32>
  return %y : tensor<2x3x10xf32>
}

// -----

func.func @odd(%v0: tensor<2x5x3x8xf32>, %v1: tensor<5x4xf32>, %v2: tensor<5x4xf32>, %v3: tensor<2x3xi64>) -> tensor<2x5x3x8xf32> {
  // expected-error @+1 {{node 'RotaryEmbedding#0' (RotaryEmbedding, since-version 23): attribute 'rotary_embedding_dim' must be even, and at most the size of a head, 8, it is 5 : i64}}
  %y = onnx.node "RotaryEmbedding"(%v0, %v1, %v2, %v3) since 23 {rotary_embedding_dim = 5} : (tensor<2x5x3x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<2x5x3x8xf32>
  return %y : tensor<2x5x3x8xf32>
}

// -----

func.func @angles(%v0: tensor<2x5x3x8xf32>, %v1: tensor<5x4xf32>, %v2: tensor<5x4xf32>) -> tensor<2x5x3x8xf32> {
  // expected-error @+1 {{node 'RotaryEmbedding#0' (RotaryEmbedding, since-version 23): operands 'cos_cache' and 'sin_cache' are 'tensor<5x4xf32>' and 'tensor<5x4xf32>', which are no angles for 4 pairs of elements at 3 positions}}
  %y = onnx.node "RotaryEmbedding"(%v0, %v1, %v2) since 23 : (tensor<2x5x3x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<2x5x3x8xf32>
  return %y : tensor<2x5x3x8xf32>
}
