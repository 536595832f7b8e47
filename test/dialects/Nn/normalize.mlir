// RUN: penstock-opt %s | penstock-opt | FileCheck %s

// CHECK-LABEL: func @normalize
func.func @normalize(%x: tensor<5x7x11xf32>) -> tensor<5x7x11xf32> {
  // CHECK: nn.normalize %{{.*}} dims [0, 2] epsilon(1.000000e-05) : tensor<5x7x11xf32> -> tensor<7xf32>
  %y, %m, %v = nn.normalize %x dims [0, 2] epsilon(1.0e-5) : tensor<5x7x11xf32> -> tensor<7xf32>
  // CHECK: nn.normalize_grad %{{.*}}, %{{.*}}, %{{.*}} dims [0, 2] epsilon(1.000000e-05) : tensor<5x7x11xf32>, tensor<7xf32>
  %dx = nn.normalize_grad %x, %y, %v dims [0, 2] epsilon(1.0e-5) : tensor<5x7x11xf32>, tensor<7xf32>
  return %dx : tensor<5x7x11xf32>
}

// CHECK-LABEL: func @rms_normalize
func.func @rms_normalize(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  // CHECK: nn.rms_normalize %{{.*}} dims [1] epsilon(9.765625e-04) : tensor<5x7xf32> -> tensor<5xf32>
  %y, %s = nn.rms_normalize %x dims [1] epsilon(0.0009765625) : tensor<5x7xf32> -> tensor<5xf32>
  // CHECK: nn.normalize_grad {{.*}} uncentered : tensor<5x7xf32>, tensor<5xf32>
  %dx = nn.normalize_grad %x, %y, %s dims [1] epsilon(0.0009765625) uncentered : tensor<5x7xf32>, tensor<5xf32>
  return %dx : tensor<5x7xf32>
}
