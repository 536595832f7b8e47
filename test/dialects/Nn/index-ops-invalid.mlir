// RUN: penstock-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<11x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M11: data and result differ in element type}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i)>] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf64>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M13: 'at' must take an index per axis of 'tensor<5x3xf32>' and 1 symbols, and give one per axis of 'tensor<11x3xf32>'}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s)> index_maps [affine_map<(i, j) -> (i)>] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M14: has 1 index tensors and 2 index maps}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M13: 'at' gives d1 + 1, which is neither an index nor a symbol}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j + 1)> index_maps [affine_map<(i, j) -> (i)>] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x2xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M13: axis 1 of 'tensor<11x2xf32>' is too small for the indices of 'tensor<5x3xf32>'}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i)>] : tensor<11x2xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M14: the index map (d0, d1) -> (d0, d1) does not lead to 'tensor<5xi64>'}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i, j)>] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M14: the index map (d0, d1) -> (d0 + 1) is of more than indices and constants}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i + 1)>] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %i: tensor<4xi64>) {
  // expected-error @+1 {{M14: the index map (d0, d1) -> (d0) leads out of 'tensor<4xi64>'}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i)>] : tensor<11x3xf32>, tensor<4xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<11x3xf32>, %u: tensor<5x3xf64>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M11: updates and result differ in element type}}
  %y = nn.scatter none %u into %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i)>] : tensor<5x3xf64>, tensor<11x3xf32>, tensor<5xi64>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{M15: dim 1 is not an axis of 'tensor<5xf32>'}}
  %y = nn.cumulative_sum %x dim(1) : tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{M15: dim 1 is not an axis of 'tensor<5xf32>'}}
  %y = nn.top_k %x dim(1) : tensor<5xf32> -> tensor<2xi64>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{M16: the result 'tensor<6xi64>' is not as 'tensor<5xf32>' with at most as many along 0}}
  %y = nn.top_k %x dim(0) : tensor<5xf32> -> tensor<6xi64>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{M15: dim 1 is not an axis of 'tensor<5xf32>'}}
  %y = nn.log_sum_exp %x dims [1] : tensor<5xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{M17: the dims are not in increasing order}}
  %y = nn.log_sum_exp %x dims [0, 0] : tensor<5xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @+1 {{M18: the result must be 'tensor<5xf32>', got 'tensor<f32>'}}
  %y = nn.log_sum_exp %x dims [] : tensor<5xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<?x3xf32>, %i: tensor<5xi64>) {
  // expected-error @+1 {{M12: needs static shapes}}
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)> index_maps [affine_map<(i, j) -> (i)>] : tensor<?x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}
