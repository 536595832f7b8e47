// RUN: penstock-opt %s -split-input-file --convert-onnx-to-graph | FileCheck %s

// CHECK-LABEL: @softmax
// CHECK: linalg.softmax dimension(2) ins(%arg0 : tensor<2x3x5xf32>)
func.func @softmax(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %y = onnx.node "Softmax"(%x) since 13 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

// Before 13 the operand is cut into a matrix at the axis, by default 1.
// CHECK-LABEL: @softmax_of_matrix
// CHECK: %[[M:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]]
// CHECK: %[[S:.*]] = linalg.softmax dimension(1) ins(%[[M]] : tensor<2x15xf32>)
// CHECK: tensor.expand_shape %[[S]]
func.func @softmax_of_matrix(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %y = onnx.node "Softmax"(%x) since 11 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

// CHECK-LABEL: @log_softmax
// CHECK: nn.log_softmax %arg0 dim(1) : tensor<2x3x5xf32>
func.func @log_softmax(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %y = onnx.node "LogSoftmax"(%x) since 13 {axis = -2} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

// The mean over unweighted labels is the composite, with the classes last.
// CHECK-LABEL: @cross_entropy
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 : tensor<5x3x7xf32>) outs(%{{.*}} : tensor<5x7x3xf32>) permutation = [0, 2, 1]
// CHECK: nn.cross_entropy %[[T]], %arg1 ignore(-100) :
// CHECK-NOT: nn.log_softmax
func.func @cross_entropy(%x: tensor<5x3x7xf32>, %y: tensor<5x7xi64>) -> tensor<f32> {
  %l, %p = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) since 13 {ignore_index = -100} : (tensor<5x3x7xf32>, tensor<5x7xi64>) -> (tensor<f32>, tensor<5x3x7xf32>)
  return %l : tensor<f32>
}

// -----

// Other forms pick the label's class of the log-probabilities.
// CHECK-LABEL: @weighted
// CHECK: %[[P:.*]] = nn.log_softmax %arg0 dim(1)
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%[[P]], %arg1, %arg2 :
// CHECK: linalg.index 1
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%arg2, %arg1 :
// CHECK: arith.divf
// CHECK: return %{{.*}}, %[[P]]
func.func @weighted(%x: tensor<5x3xf32>, %y: tensor<5xi64>, %w: tensor<3xf32>) -> (tensor<f32>, tensor<5x3xf32>) {
  %l, %p = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y, %w) since 12 {reduction = "mean"} : (tensor<5x3xf32>, tensor<5xi64>, tensor<3xf32>) -> (tensor<f32>, tensor<5x3xf32>)
  return %l, %p : tensor<f32>, tensor<5x3xf32>
}

// -----

// CHECK-LABEL: @each
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
func.func @each(%x: tensor<5x3xf32>, %y: tensor<5xi32>) -> tensor<5xf32> {
  %l = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) since 13 {reduction = "none"} : (tensor<5x3xf32>, tensor<5xi32>) -> tensor<5xf32>
  return %l : tensor<5xf32>
}
