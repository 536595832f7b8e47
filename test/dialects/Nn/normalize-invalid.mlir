// RUN: penstock-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<5x7xf32>) {
  // expected-error @+1 {{dims are axes of 'tensor<5x7xf32>' in ascending order, got 2}}
  %y, %m, %v = nn.normalize %x dims [2] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5x7xf32>) {
  // expected-error @+1 {{dims are axes of 'tensor<5x7xf32>' in ascending order, got 0}}
  %y, %m, %v = nn.normalize %x dims [1, 0] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<5x7xf32>) {
  // expected-error @+1 {{statistics of 'tensor<5x7xf32>' over these dims are 'tensor<5xf32>', got 'tensor<7xf32>'}}
  %y, %s = nn.rms_normalize %x dims [1] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x7xf32>, %v: tensor<5xf32>) {
  // expected-error @+1 {{epsilon is negative or not finite}}
  %dx = nn.normalize_grad %x, %x, %v dims [1] epsilon(-1.0) : tensor<5x7xf32>, tensor<5xf32>
  return
}
