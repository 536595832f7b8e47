// RUN: penstock-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{O1: needs an operator name}}
  %0 = onnx.node ""(%x) since 1 : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{O2: needs at least one output}}
  onnx.node "Relu"(%x) since 1 : (tensor<5xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{attribute 'since' failed to satisfy constraint}}
  %0 = onnx.node "Relu"(%x) since 0 : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>, %m: tensor<i64>, %c: tensor<i1>) {
  // expected-error @+1 {{O3: needs a trip count and a condition}}
  onnx.loop(%m) scans [] reversed [] {
  ^bb0(%i: tensor<i64>):
    onnx.yield %i : tensor<i64>
  } : (tensor<i64>) -> ()
  return
}

// -----

func.func @f(%x: tensor<5xf32>, %m: tensor<i64>, %c: tensor<i1>) {
  // expected-error @+1 {{O4: needs an axis and a direction per scan output}}
  %0:2 = onnx.loop(%m, %c, %x) scans [0] reversed [] {
  ^bb0(%i: tensor<i64>, %d: tensor<i1>, %s: tensor<5xf32>):
    onnx.yield %d, %s, %s : tensor<i1>, tensor<5xf32>, tensor<5xf32>
  } : (tensor<i64>, tensor<i1>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

func.func @f(%x: tensor<5xf32>, %m: tensor<i64>, %c: tensor<i1>) {
  // expected-error @+1 {{O5: carries 1 values and scans 1, but has 1 results}}
  %0 = onnx.loop(%m, %c, %x) scans [0] reversed [false] {
  ^bb0(%i: tensor<i64>, %d: tensor<i1>, %s: tensor<5xf32>):
    onnx.yield %d, %s, %s : tensor<i1>, tensor<5xf32>, tensor<5xf32>
  } : (tensor<i64>, tensor<i1>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>, %m: tensor<i64>, %c: tensor<i1>) {
  // expected-error @+1 {{O6: its body takes 2 values, not 3}}
  %0 = onnx.loop(%m, %c, %x) scans [] reversed [] {
  ^bb0(%i: tensor<i64>, %d: tensor<i1>):
    onnx.yield %d, %x : tensor<i1>, tensor<5xf32>
  } : (tensor<i64>, tensor<i1>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>, %m: tensor<i64>, %c: tensor<i1>) {
  // expected-error @+1 {{O7: its body yields 1 values, not 2}}
  %0 = onnx.loop(%m, %c, %x) scans [] reversed [] {
  ^bb0(%i: tensor<i64>, %d: tensor<i1>, %s: tensor<5xf32>):
    onnx.yield %d : tensor<i1>
  } : (tensor<i64>, tensor<i1>, tensor<5xf32>) -> tensor<5xf32>
  return
}
