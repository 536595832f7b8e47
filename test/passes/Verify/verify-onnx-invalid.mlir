// RUN: penstock-opt %s --split-input-file --pipeline-verify=level=onnx --verify-diagnostics

// One case for each rule that needs more than one op, by its number.

pipeline.stage @s0
// expected-error @+1 {{C43: has an argument of unknown shape}}
func.func @f(%x: tensor<?xf32>) {
  return
}

// -----

pipeline.stage @s0
func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{C43: has a result of unknown shape, 'tensor<?xf32>'}}
  %y = onnx.node "Relu"(%x) since 14 : (tensor<2xf32>) -> tensor<?xf32>
  return
}
