// RUN: penstock-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{needs an operator name}}
  %0 = onnx.node ""(%x) since 1 : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{needs at least one output}}
  onnx.node "Relu"(%x) since 1 : (tensor<5xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{attribute 'since' failed to satisfy constraint}}
  %0 = onnx.node "Relu"(%x) since 0 : (tensor<5xf32>) -> tensor<5xf32>
  return
}
