// RUN: penstock-opt %s --nn-expand-composites --split-input-file | FileCheck %s

// Mean, then squared differences from it, then one root per row.
// CHECK-LABEL: func.func @normalize
// CHECK-DAG:     %[[SIZE:.*]] = arith.constant 7.000000e+00 : f32
// CHECK-DAG:     %[[EPS:.*]] = arith.constant 9.99999974E-6 : f32
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK:           arith.addf
// CHECK:         arith.divf %{{.*}}, %[[SIZE]]
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK:           %[[D:.*]] = arith.subf
// CHECK-NEXT:      arith.mulf %[[D]], %[[D]]
// CHECK-NEXT:      arith.addf
// CHECK:         arith.addf %{{.*}}, %[[EPS]]
// CHECK-NEXT:    math.sqrt
// CHECK-NEXT:    arith.divf
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK:           arith.subf
// CHECK-NEXT:      arith.mulf
// CHECK-NOT:     nn.
func.func @normalize(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y, %m, %v = nn.normalize %x dims [1] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<5xf32>
  return %y : tensor<5x7xf32>
}

// -----

// CHECK-LABEL: func.func @rms_normalize
// CHECK:         linalg.generic {{.*}} ["reduction", "parallel", "reduction"]
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK-NOT:     arith.subf
// CHECK-NOT:     nn.
func.func @rms_normalize(%x: tensor<5x7x3xf32>) -> tensor<5x7x3xf32> {
  %y, %s = nn.rms_normalize %x dims [0, 2] epsilon(1.0e-5) : tensor<5x7x3xf32> -> tensor<7xf32>
  return %y : tensor<5x7x3xf32>
}

// -----

// Both sums in one pass over the row.
// CHECK-LABEL: func.func @gradient
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK:         } -> (tensor<5xf32>, tensor<5xf32>)
// CHECK-NOT:     nn.
func.func @gradient(%dy: tensor<5x7xf32>, %y: tensor<5x7xf32>, %v: tensor<5xf32>) -> tensor<5x7xf32> {
  %dx = nn.normalize_grad %dy, %y, %v dims [1] epsilon(1.0e-5) : tensor<5x7xf32>, tensor<5xf32>
  return %dx : tensor<5x7xf32>
}

// -----

// CHECK-LABEL: func.func @uncentered
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK-SAME:      outs(%{{.*}} : tensor<5xf32>)
// CHECK-NOT:     nn.
func.func @uncentered(%dy: tensor<5x7xf32>, %y: tensor<5x7xf32>, %v: tensor<5xf32>) -> tensor<5x7xf32> {
  %dx = nn.normalize_grad %dy, %y, %v dims [1] epsilon(1.0e-5) uncentered : tensor<5x7xf32>, tensor<5xf32>
  return %dx : tensor<5x7xf32>
}

// -----

// A loop for each user, with one root per row.
// CHECK-LABEL: func.func @standardize
// CHECK-SAME:    %[[X:[^:]*]]: tensor<5x7xf32>, %[[M:[^:]*]]: tensor<5xf32>, %[[V:[^:]*]]: tensor<5xf32>
// CHECK:         math.sqrt
// CHECK-NOT:     math.sqrt
// CHECK-COUNT-2: linalg.generic {{.*}} ["parallel", "parallel"]} ins(%[[X]], %{{.*}}, %[[M]] :
// CHECK-NOT:     nn.
func.func @standardize(%x: tensor<5x7xf32>, %m: tensor<5xf32>, %v: tensor<5xf32>) -> tensor<5x7xf32> {
  %y = nn.standardize %x mean(%m) variance(%v) dims [1] epsilon(1.0e-5) : (tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  %sum = linalg.add ins(%y, %y : tensor<5x7xf32>, tensor<5x7xf32>) outs(%x : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %sum : tensor<5x7xf32>
}

// -----

// The root of the gradient serves both of its loops, which each standardize.
// CHECK-LABEL: func.func @gradient_again
// CHECK-SAME:    %[[DY:[^:]*]]: tensor<5x7xf32>, %[[X:[^:]*]]: tensor<5x7xf32>, %[[V:[^:]*]]: tensor<5xf32>
// CHECK:         math.sqrt
// CHECK-NOT:     math.sqrt
// CHECK:         %[[Y1:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[R:[^ :]*]] :
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]} ins(%[[DY]], %[[Y1]] :
// CHECK:         %[[Y2:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[R]] :
// CHECK:         linalg.generic {{.*}} ins(%[[DY]], %[[Y2]], %[[R]],
// CHECK-NOT:     nn.
func.func @gradient_again(%dy: tensor<5x7xf32>, %x: tensor<5x7xf32>, %v: tensor<5xf32>) -> tensor<5x7xf32> {
  %y = nn.standardize %x variance(%v) dims [1] epsilon(1.0e-5) : (tensor<5x7xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  %dx = nn.normalize_grad %dy, %y, %v dims [1] epsilon(1.0e-5) uncentered : tensor<5x7xf32>, tensor<5xf32>
  return %dx : tensor<5x7xf32>
}

// -----

// So does it where the gradient of the scale has normalized values of its own:
// one root, before both.
// CHECK-LABEL: func.func @gradient_and_scale
// CHECK-SAME:    %[[DY:[^:]*]]: tensor<5x7xf32>, %[[X:[^:]*]]: tensor<5x7xf32>, %[[V:[^:]*]]: tensor<5xf32>
// CHECK:         math.sqrt
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[R:[^ :]*]] :
// CHECK:         linalg.mul
// CHECK-NOT:     math.sqrt
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[R]] :
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK-NOT:     nn.
func.func @gradient_and_scale(%dy: tensor<5x7xf32>, %x: tensor<5x7xf32>, %v: tensor<5xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
  %y1 = nn.standardize %x variance(%v) dims [1] epsilon(1.0e-5) : (tensor<5x7xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  %ds = linalg.mul ins(%dy, %y1 : tensor<5x7xf32>, tensor<5x7xf32>) outs(%x : tensor<5x7xf32>) -> tensor<5x7xf32>
  %y2 = nn.standardize %x variance(%v) dims [1] epsilon(1.0e-5) : (tensor<5x7xf32>, tensor<5xf32>) -> tensor<5x7xf32>
  %dx = nn.normalize_grad %dy, %y2, %v dims [1] epsilon(1.0e-5) uncentered : tensor<5x7xf32>, tensor<5xf32>
  return %dx, %ds : tensor<5x7xf32>, tensor<5x7xf32>
}
