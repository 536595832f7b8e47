// RUN: penstock-opt %s --nn-expand-composites --split-input-file | FileCheck %s

// Max, exp and sum over the class axis, which need not be the last; then one
// division per row, and a product per element.
// CHECK-LABEL: func.func @softmax
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         %[[INIT:.*]] = linalg.fill ins(%[[INF]]
// CHECK-SAME:      tensor<5x2xf32>
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction", "parallel"]
// CHECK-SAME:      outs(%[[INIT]]
// CHECK:           arith.maxnumf
// CHECK:         arith.subf
// CHECK-NEXT:    math.exp
// CHECK:         arith.addf
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK:           arith.divf
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel", "parallel"]
// CHECK-NOT:       arith.divf
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.softmax
func.func @softmax(%x: tensor<5x3x2xf32>) -> tensor<5x3x2xf32> {
  %e = tensor.empty() : tensor<5x3x2xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<5x3x2xf32>)
                                   outs(%e : tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
  return %r : tensor<5x3x2xf32>
}

// -----

// Without `ignore` the mean is over all labels: a constant divisor.
// CHECK-LABEL: func.func @cross_entropy
// CHECK-DAG:     arith.constant 5.000000e+00 : f64
// CHECK-DAG:     arith.constant 0x7FF8000000000000 : f64
// CHECK:         linalg.index 1
// CHECK-NEXT:    arith.index_cast {{.*}} : index to i32
// CHECK-NEXT:    arith.cmpi eq
// CHECK:         arith.cmpi ult
// CHECK:         math.log
// CHECK-NOT:     nn.
func.func @cross_entropy(%z: tensor<5x3xf64>, %y: tensor<5xi32>)
    -> (tensor<f64>, tensor<5x3xf64>) {
  %l, %p = nn.cross_entropy %z, %y
         : (tensor<5x3xf64>, tensor<5xi32>) -> (tensor<f64>, tensor<5x3xf64>)
  return %l, %p : tensor<f64>, tensor<5x3xf64>
}

// -----

// With it, the labels that count are counted, and ignored rows get zero.
// CHECK-LABEL: func.func @gradient
// CHECK-DAG:     %[[IGNORE:.*]] = arith.constant -100 : i64
// CHECK:         arith.cmpi ne, %{{.*}}, %[[IGNORE]]
// CHECK-NEXT:    arith.extui {{.*}} : i1 to i64
// CHECK-NEXT:    arith.addi
// CHECK:         arith.sitofp
// CHECK-NEXT:    arith.divf
// CHECK:         arith.mulf
// CHECK-NOT:     nn.
func.func @gradient(%p: tensor<4x5x3xf32>, %y: tensor<4x5xi64>, %s: tensor<f32>)
    -> tensor<4x5x3xf32> {
  %r = nn.cross_entropy_grad %p, %y, %s ignore(-100)
     : (tensor<4x5x3xf32>, tensor<4x5xi64>, tensor<f32>) -> tensor<4x5x3xf32>
  return %r : tensor<4x5x3xf32>
}

// The logarithm is of the sum, never of a probability that may be 0.
// CHECK-LABEL: @log_softmax
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: math.log
// CHECK: arith.subf
// CHECK-NEXT: arith.subf
// CHECK-NOT: nn.
func.func @log_softmax(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %y = nn.log_softmax %x dim(1) : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
