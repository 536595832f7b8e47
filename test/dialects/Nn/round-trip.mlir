// RUN: penstock-opt %s | penstock-opt | FileCheck %s

// CHECK-LABEL: func @cross_entropy
func.func @cross_entropy(%z: tensor<5x3xf32>, %y: tensor<5xi64>) -> tensor<5x3xf32> {
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} ignore(-100) : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  %l, %p = nn.cross_entropy %z, %y ignore(-100) : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}} ignore(-100) : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x3xf32>
  %dz = nn.cross_entropy_grad %p, %y, %l ignore(-100) : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x3xf32>
  return %dz : tensor<5x3xf32>
}

// CHECK-LABEL: func @targets
func.func @targets(%z: tensor<5x3xf32>, %y: tensor<5xi64>) -> tensor<5x3xf32> {
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} smoothing(1.000000e-01) class_weights [1.000000e+00, 0.000000e+00, 2.500000e+00] :
  %l, %p = nn.cross_entropy %z, %y smoothing(0.1) class_weights [1.0, 0.0, 2.5] : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}} ignore(2) smoothing(1.000000e-01) class_weights [1.000000e+00, 0.000000e+00, 2.500000e+00] :
  %dz = nn.cross_entropy_grad %p, %y, %l ignore(2) smoothing(0.1) class_weights [1.0, 0.0, 2.5] : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x3xf32>
  return %dz : tensor<5x3xf32>
}

// CHECK-LABEL: @log_softmax
// CHECK: nn.log_softmax %{{.*}} dim(1) : tensor<5x3xf32>
func.func @log_softmax(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %y = nn.log_softmax %x dim(1) : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
