// RUN: penstock-opt %s -split-input-file -verify-diagnostics --convert-onnx-to-graph

// Every node that no entry serves is in one error, by type.
// expected-error @+1 {{3 nodes are not supported: 2 x NoSuchOperator, since-version 13 ('first', 'second'); 1 x com.example.Gemm, since-version 1 ('third'); rewrite them with supported operators, or cut them out of the model}}
module {
  func.func @unknown(%x: tensor<5xf32>) -> tensor<5xf32> {
    %a = onnx.node "NoSuchOperator"(%x) since 13 : (tensor<5xf32>) -> tensor<5xf32> loc("first")
    %b = onnx.node "NoSuchOperator"(%a) since 13 : (tensor<5xf32>) -> tensor<5xf32> loc("second")
    %c = onnx.node "Gemm"(%b) since 1 domain "com.example" : (tensor<5xf32>) -> tensor<5xf32> loc("third")
    return %c : tensor<5xf32>
  }
}

// -----

func.func @sizes(%a: tensor<5x7xf32>, %b: tensor<3x7xf32>) -> tensor<5x3xf32> {
  // expected-error @+1 {{node 'Gemm#0' (Gemm, since-version 13): sums over 7 columns of 'A' but 3 rows of 'B'}}
  %y = onnx.node "Gemm"(%a, %b) since 13 : (tensor<5x7xf32>, tensor<3x7xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

func.func @missing(%a: tensor<5x7xf32>, %b: tensor<7x3xf32>) -> tensor<5x3xf32> {
  // expected-error @+1 {{node 'Gemm#0' (Gemm, since-version 9): has 2 operands but needs 3; 'C' is missing}}
  %y = onnx.node "Gemm"(%a, %b) since 9 : (tensor<5x7xf32>, tensor<7x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

// Both errors are reported, not the first alone.
func.func @broadcast(%a: tensor<5x7xf32>, %b: tensor<3xf32>) -> tensor<5x7xf32> {
  // expected-error @+1 {{node 'Add#0' (Add, since-version 14): operand 'B' is 'tensor<3xf32>', which does not broadcast with the operands before it: size 3 against 7 at axis 1 of the result}}
  %x = onnx.node "Add"(%a, %b) since 14 : (tensor<5x7xf32>, tensor<3xf32>) -> tensor<5x7xf32>
  // expected-error @+1 {{attribute 'alpha' must be a float, it is "steep"}}
  %y = onnx.node "LeakyRelu"(%x) since 16 {alpha = "steep"} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// -----

func.func @axis(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  // expected-error @+1 {{(Softmax, since-version 13): attribute 'axis' is 2, out of the range -2..1 of a tensor of rank 2}}
  %y = onnx.node "Softmax"(%x) since 13 {axis = 2} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// -----

func.func @types(%a: tensor<5xf32>, %b: tensor<5xf64>) -> tensor<5xf32> {
  // expected-error @+1 {{operands 'A' and 'B' are 'tensor<5xf32>' and 'tensor<5xf64>', their element types must be equal; insert a Cast}}
  %y = onnx.node "Mul"(%a, %b) since 13 : (tensor<5xf32>, tensor<5xf64>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func @shape(%x: tensor<5x7xf32>, %s: tensor<2xi64>) -> tensor<7x5xf32> {
  // expected-error @+1 {{operand 'shape' must be constant when the model is compiled; bind every symbolic dimension that it is computed from, or make it an initializer}}
  %y = onnx.node "Reshape"(%x, %s) since 14 : (tensor<5x7xf32>, tensor<2xi64>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// -----

func.func @elements(%x: tensor<5x7xf32>) -> tensor<5x3xf32> {
  %s = arith.constant dense<[5, 3]> : tensor<2xi64>
  // expected-error @+1 {{operand 'shape' asks for 15 elements, but 'tensor<5x7xf32>' has 35}}
  %y = onnx.node "Reshape"(%x, %s) since 14 : (tensor<5x7xf32>, tensor<2xi64>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

func.func @stale(%x: tensor<5x7xf32>) -> tensor<7x7xf32> {
  // expected-error @+1 {{has type 'tensor<7x7xf32>', but 'tensor<5x7xf32>' follows from its operands; run onnx-resolve-shapes first}}
  %y = onnx.node "Relu"(%x) since 14 : (tensor<5x7xf32>) -> tensor<7x7xf32>
  return %y : tensor<7x7xf32>
}

// -----

func.func @loss(%x: tensor<5x3xf32>, %y: tensor<5xi64>) -> tensor<f32> {
  // expected-error @+1 {{attribute 'reduction' must be "mean", "sum" or "none", it is "median"}}
  %l = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) since 13 {reduction = "median"} : (tensor<5x3xf32>, tensor<5xi64>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @labels(%x: tensor<5x3xf32>, %y: tensor<3xi64>) -> tensor<f32> {
  // expected-error @+1 {{operand 'labels' is 'tensor<3xi64>', its shape must be that of the scores 'tensor<5x3xf32>' without axis 1}}
  %l = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) since 13 : (tensor<5x3xf32>, tensor<3xi64>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @cast(%x: tensor<5xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{attribute 'to' is the element type 8, which is not supported; float, double, float16, bfloat16, bool and integers are}}
  %y = onnx.node "Cast"(%x) since 13 {to = 8} : (tensor<5xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func @indices(%x: tensor<5x7xf32>) -> tensor<3x7xf32> {
  %i = arith.constant dense<[0, -5, 5]> : tensor<3xi64>
  // expected-error @+1 {{operand 'indices' holds 5, out of the range -5..4 of the axis}}
  %y = onnx.node "Gather"(%x, %i) since 13 : (tensor<5x7xf32>, tensor<3xi64>) -> tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}
