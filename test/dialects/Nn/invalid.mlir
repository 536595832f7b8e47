// RUN: penstock-opt %s --split-input-file --verify-diagnostics

func.func @f(%z: tensor<5x3xf32>, %y: tensor<3xi64>) {
  // expected-error @+1 {{M19: labels 'tensor<3xi64>' do not match 'tensor<5x3xf32>': their shape is that of the classes without the last axis}}
  %l, %p = nn.cross_entropy %z, %y : (tensor<5x3xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  return
}

// -----

func.func @f(%z: tensor<f32>, %y: tensor<i64>) {
  // expected-error @+1 {{M19: needs a class axis, got 'tensor<f32>'}}
  %l, %p = nn.cross_entropy %z, %y : (tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @f(%z: tensor<5x3xf32>, %y: tensor<5xi64>) {
  // expected-error @+1 {{M20: probabilities and logits differ in type}}
  %l, %p = nn.cross_entropy %z, %y : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf64>)
  return
}

// -----

func.func @f(%z: tensor<5x3xf32>, %y: tensor<5xi64>) {
  // expected-error @+1 {{M21: the loss is a scalar, got 'tensor<5xf32>'}}
  %l, %p = nn.cross_entropy %z, %y : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5x3xf32>)
  return
}

// -----

func.func @f(%p: tensor<5x3xf32>, %y: tensor<5xi64>, %s: tensor<1xf32>) {
  // expected-error @+1 {{M21: the seed is a scalar, got 'tensor<1xf32>'}}
  %0 = nn.cross_entropy_grad %p, %y, %s : (tensor<5x3xf32>, tensor<5xi64>, tensor<1xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%p: tensor<5x3xf32>, %y: tensor<5xi64>, %s: tensor<f32>) {
  // expected-error @+1 {{M20: result and probabilities differ in type}}
  %0 = nn.cross_entropy_grad %p, %y, %s : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x4xf32>
  return
}

// -----

// The axis is one of the operand's.
func.func @log_softmax_axis(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  // expected-error @+1 {{'nn.log_softmax' op M15: dim 2 is not an axis of 'tensor<5x3xf32>'}}
  %y = nn.log_softmax %x dim(2) : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

func.func @f(%z: tensor<5x3xf32>, %y: tensor<5xi64>) {
  // expected-error @+1 {{M22: smoothing 1.000000e+00 is not in [0, 1)}}
  %l, %p = nn.cross_entropy %z, %y smoothing(1.0) : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  return
}

// -----

func.func @f(%z: tensor<5x3xf32>, %y: tensor<5xi64>) {
  // expected-error @+1 {{M23: has 2 class weights for 3 classes}}
  %l, %p = nn.cross_entropy %z, %y class_weights [1.0, 2.0] : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  return
}

// -----

func.func @f(%z: tensor<5x3xf32>, %y: tensor<5xi64>) {
  // expected-error @+1 {{M23: class weight -2.000000e+00 is not a finite number of at least 0}}
  %l, %p = nn.cross_entropy %z, %y class_weights [1.0, -2.0, 1.0] : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  return
}

// -----

func.func @f(%p: tensor<5x3xf32>, %y: tensor<5xi64>, %s: tensor<f32>) {
  // expected-error @+1 {{M22: smoothing -5.000000e-01 is not in [0, 1)}}
  %0 = nn.cross_entropy_grad %p, %y, %s smoothing(-0.5) : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x3xf32>
  return
}
