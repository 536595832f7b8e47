// RUN: penstock-opt %s | penstock-opt | FileCheck %s

// CHECK-LABEL: @rows
// CHECK: nn.gather %{{.*}}[%{{.*}}] at #{{.*}} index_maps [#{{.*}}] : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
// CHECK: nn.scatter add %{{.*}} into %{{.*}}[%{{.*}}] at #{{.*}} index_maps [#{{.*}}] : tensor<5x3xf32>, tensor<11x3xf32>, tensor<5xi64>
func.func @rows(%x: tensor<11x3xf32>, %i: tensor<5xi64>) -> tensor<11x3xf32> {
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  %d = nn.scatter add %y into %x[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<5x3xf32>, tensor<11x3xf32>, tensor<5xi64>
  return %d : tensor<11x3xf32>
}

// CHECK-LABEL: @axis
// CHECK: nn.cumulative_sum %{{.*}} dim(1) exclusive reverse : tensor<5x7xf32>
// CHECK: nn.top_k %{{.*}} dim(1) smallest : tensor<5x7xf32> -> tensor<5x2xi64>
// CHECK: nn.log_sum_exp %{{.*}} dims [0, 1] : tensor<5x7xf32> -> tensor<f32>
func.func @axis(%x: tensor<5x7xf32>) -> (tensor<5x7xf32>, tensor<5x2xi64>, tensor<f32>) {
  %s = nn.cumulative_sum %x dim(1) exclusive reverse : tensor<5x7xf32>
  %i = nn.top_k %x dim(1) smallest : tensor<5x7xf32> -> tensor<5x2xi64>
  %l = nn.log_sum_exp %x dims [0, 1] : tensor<5x7xf32> -> tensor<f32>
  return %s, %i, %l : tensor<5x7xf32>, tensor<5x2xi64>, tensor<f32>
}
