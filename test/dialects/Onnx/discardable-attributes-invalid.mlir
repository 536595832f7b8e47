// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// Attributes of the dialect are where they belong, with the type that they have,
// and there are no others.

// expected-error @+1 {{'onnx.constant_initializers' is a list of names, on the module}}
module attributes {onnx.constant_initializers = "w"} {}

// -----

// expected-error @+1 {{'onnx.unreached_initializers' is a list of names, on the module}}
module attributes {onnx.unreached_initializers = [1]} {}

// -----

// expected-error @+1 {{'onnx.constant_initializers' is a list of names, on the module}}
func.func private @f() attributes {onnx.constant_initializers = ["w"]}

// -----

// expected-error @+1 {{'onnx.unused_inputs' is a list of names, on the module}}
module attributes {onnx.unused_inputs = [1]} {}

// -----

// expected-error @+1 {{'onnx.rebound_batch' is a batch size, on a function}}
func.func private @f() attributes {onnx.rebound_batch = 0}

// -----

// expected-error @+1 {{'onnx.rebound_batch' is a batch size, on a function}}
module attributes {onnx.rebound_batch = 4} {}

// -----

func.func @f() {
  // expected-error @+1 {{'onnx.branch' is without a value, on a node or a loop}}
  %0 = onnx.absent {onnx.branch}
  return
}

// -----

// expected-error @+1 {{'onnx.output' is a name}}
func.func private @f() -> (f32 {onnx.output = 1})

// -----

// expected-error @+1 {{'onnx.outputs' is no attribute of a result}}
func.func private @f() -> (f32 {onnx.outputs = "y"})

// -----

// expected-error @+1 {{'onnx.output' is no attribute of an argument}}
func.func private @f(f32 {onnx.output = "y"})

// -----

// expected-error @+1 {{'onnx.output' is no attribute of an op}}
func.func private @f() attributes {onnx.output = "y"}
