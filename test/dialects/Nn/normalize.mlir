// Normalizations, printed and parsed, and what their verifiers say.
// RUN: penstock-opt %s --split-input-file --verify-diagnostics --verify-roundtrip

func.func @all(%x: tensor<5x7x11xf32>, %c: tensor<7xf32>) -> (tensor<5x7x11xf32>, tensor<7xf32>) {
  %y, %m, %v = nn.normalize %x dims [0, 2] epsilon(1.0e-5) : tensor<5x7x11xf32> -> tensor<7xf32>
  %dx = nn.normalize_grad %y, %y, %v dims [0, 2] epsilon(1.0e-5) : tensor<5x7x11xf32>, tensor<7xf32>
  %z, %m1, %v1 = nn.batch_norm %dx, %c, %c, %m, %v momentum(0.9) epsilon(1.0e-5) : tensor<5x7x11xf32>, tensor<7xf32>
  return %z, %m1 : tensor<5x7x11xf32>, tensor<7xf32>
}

// -----

func.func @axes(%x: tensor<5x7xf32>) {
  // expected-error @below {{'nn.normalize' op M17: dims are axes of 'tensor<5x7xf32>' in ascending order, got 0}}
  %y, %m, %v = nn.normalize %x dims [1, 0] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<f32>
  return
}

// -----

func.func @statistics(%x: tensor<5x7xf32>) {
  // expected-error @below {{'nn.normalize' op M24: statistics of 'tensor<5x7xf32>' over these dims are 'tensor<5xf32>', got 'tensor<7xf32>'}}
  %y, %m, %v = nn.normalize %x dims [1] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<7xf32>
  return
}

// -----

func.func @epsilon(%x: tensor<5x7xf32>, %v: tensor<5xf32>) {
  // expected-error @below {{'nn.normalize_grad' op M25: epsilon is negative or not finite}}
  %dx = nn.normalize_grad %x, %x, %v dims [1] epsilon(-1.0) : tensor<5x7xf32>, tensor<5xf32>
  return
}

// -----

func.func @axis(%x: tensor<5xf32>) {
  // expected-error @below {{'nn.batch_norm' op M26: needs a channel axis, got 'tensor<5xf32>'}}
  %y, %m, %v = nn.batch_norm %x, %x, %x, %x, %x momentum(0.9) epsilon(1.0e-5) : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @channels(%x: tensor<5x7xf32>, %c: tensor<5xf32>) {
  // expected-error @below {{'nn.batch_norm' op M26: scale, bias and statistics are 'tensor<5xf32>', but the channels of 'tensor<5x7xf32>' are 7}}
  %y, %m, %v = nn.batch_norm %x, %c, %c, %c, %c momentum(0.9) epsilon(1.0e-5) : tensor<5x7xf32>, tensor<5xf32>
  return
}

// -----

func.func @positive(%x: tensor<5x7xf32>, %c: tensor<7xf32>) {
  // expected-error @below {{'nn.batch_norm' op M25: epsilon is negative or not finite}}
  %y, %m, %v = nn.batch_norm %x, %c, %c, %c, %c momentum(0.9) epsilon(-1.0) : tensor<5x7xf32>, tensor<7xf32>
  return
}

// -----

func.func @rms(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y, %s = nn.rms_normalize %x dims [1] epsilon(1.0e-6) : tensor<5x7xf32> -> tensor<5xf32>
  %again = nn.standardize %x variance(%s) dims [1] epsilon(1.0e-6) : (tensor<5x7xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  %dx = nn.normalize_grad %x, %again, %s dims [1] epsilon(1.0e-6) uncentered : tensor<5x7xf32>, tensor<5xf32>
  return %dx : tensor<5x7xf32>
}

// -----

func.func @standardize(%x: tensor<5x7xf32>, %m: tensor<5xf32>, %v: tensor<5xf32>) -> tensor<5x7xf32> {
  %y = nn.standardize %x mean(%m) variance(%v) dims [1] epsilon(1.0e-6) : (tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// -----

func.func @mean_of_columns(%x: tensor<5x7xf32>, %m: tensor<7xf32>, %v: tensor<5xf32>) {
  // expected-error @below {{'nn.standardize' op M24: has a mean of type 'tensor<7xf32>' and a variance of type 'tensor<5xf32>'}}
  %y = nn.standardize %x mean(%m) variance(%v) dims [1] epsilon(1.0e-6) : (tensor<5x7xf32>, tensor<7xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @variance_of_columns(%x: tensor<5x7xf32>, %v: tensor<7xf32>) {
  // expected-error @below {{'nn.standardize' op M24: statistics of 'tensor<5x7xf32>' over these dims are 'tensor<5xf32>', got 'tensor<7xf32>'}}
  %y = nn.standardize %x variance(%v) dims [1] epsilon(1.0e-6) : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @mean_square(%x: tensor<5x7xf32>) {
  // expected-error @below {{'nn.rms_normalize' op M24: statistics of 'tensor<5x7xf32>' over these dims are 'tensor<5xf32>', got 'tensor<7xf32>'}}
  %y, %s = nn.rms_normalize %x dims [1] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<7xf32>
  return
}
