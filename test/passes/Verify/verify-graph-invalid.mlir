// RUN: penstock-opt %s --split-input-file --pipeline-verify=level=graph --verify-diagnostics

// One case for each rule that needs more than one op, by its number.

pipeline.stage @s0
func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{C43: is left at level graph}}
  %y = onnx.node "Relu"(%x) since 14 : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// C14
pipeline.stage @s0
func.func @f(%x: tensor<2xf32>) {
  pipeline.boundary 1
  // expected-error @+1 {{C14: has number 3, expected 2: boundaries rise by one}}
  pipeline.boundary 3
  return
}

// -----

pipeline.stage @s0
// expected-error @+1 {{C43: is the second stage before the cut}}
pipeline.stage @s1
