// RUN: penstock-opt %s --raise-composites --split-input-file | FileCheck %s

!x = tensor<5x3x7xf32>
!m = tensor<5x3x1xf32>
!s = tensor<f32>

// CHECK-LABEL: func.func @layer_norm(
// CHECK:         %[[N:.*]] = onnx.node "LayerNormalization"(%arg0, %{{.*}}) since 17 {axis = 2 : i64, epsilon = 9.99999974E-6 : f32}
// CHECK-NEXT:    %[[G:.*]] = onnx.node "Mul"(%[[N]], %arg1)
// CHECK-NEXT:    return %[[G]]
func.func @layer_norm(%x: !x, %g: tensor<7xf32>) -> !x {
  %axes = arith.constant dense<-1> : tensor<1xi64>
  %two = arith.constant dense<2.0> : !s
  %eps = arith.constant dense<1.0e-5> : !s
  %m = onnx.node "ReduceMean"(%x, %axes) since 18 : (!x, tensor<1xi64>) -> !m
  %d = onnx.node "Sub"(%x, %m) since 14 : (!x, !m) -> !x
  %q = onnx.node "Pow"(%d, %two) since 15 : (!x, !s) -> !x
  %v = onnx.node "ReduceMean"(%q, %axes) since 18 : (!x, tensor<1xi64>) -> !m
  %e = onnx.node "Add"(%v, %eps) since 14 : (!m, !s) -> !m
  %r = onnx.node "Sqrt"(%e) since 13 : (!m) -> !m
  %n = onnx.node "Div"(%d, %r) since 14 : (!x, !m) -> !x
  %y = onnx.node "Mul"(%n, %g) since 14 : (!x, tensor<7xf32>) -> !x
  return %y : !x
}

// The variance is over other axes than the mean: no layer norm, but the root
// mean square norm of the difference.
// CHECK-LABEL: func.func @other_axes(
// CHECK-NOT:     LayerNormalization
// CHECK:         %[[D:.*]] = onnx.node "Sub"
// CHECK-NOT:     LayerNormalization
// CHECK:         onnx.node "RMSNormalization"(%[[D]], %{{.*}}) since 23 {axis = 1 : i64
func.func @other_axes(%x: !x) -> !x {
  %two = arith.constant dense<2.0> : !s
  %eps = arith.constant dense<1.0e-5> : !s
  %m = onnx.node "ReduceMean"(%x) since 13 {axes = array<i64: 2>} : (!x) -> !m
  %d = onnx.node "Sub"(%x, %m) since 14 : (!x, !m) -> !x
  %q = onnx.node "Mul"(%d, %d) since 14 : (!x, !x) -> !x
  %v = onnx.node "ReduceMean"(%q) since 13 {axes = array<i64: 1, 2>} : (!x) -> tensor<5x1x1xf32>
  %e = onnx.node "Add"(%v, %eps) since 14 : (tensor<5x1x1xf32>, !s) -> tensor<5x1x1xf32>
  %r = onnx.node "Sqrt"(%e) since 13 : (tensor<5x1x1xf32>) -> tensor<5x1x1xf32>
  %n = onnx.node "Div"(%d, %r) since 14 : (!x, tensor<5x1x1xf32>) -> !x
  return %n : !x
}

// Not the square.
// CHECK-LABEL: func.func @other_power(
// CHECK-NOT:     Normalization
// CHECK:         onnx.node "Div"
func.func @other_power(%x: !x) -> !x {
  %three = arith.constant dense<3.0> : !s
  %eps = arith.constant dense<1.0e-5> : !s
  %q = onnx.node "Pow"(%x, %three) since 15 : (!x, !s) -> !x
  %v = onnx.node "ReduceMean"(%q) since 13 {axes = array<i64: 2>} : (!x) -> !m
  %e = onnx.node "Add"(%v, %eps) since 14 : (!m, !s) -> !m
  %r = onnx.node "Sqrt"(%e) since 13 : (!m) -> !m
  %n = onnx.node "Div"(%x, %r) since 14 : (!x, !m) -> !x
  return %n : !x
}

// CHECK-LABEL: func.func @rms_norm(
// CHECK:         onnx.node "RMSNormalization"(%arg0, %{{.*}}) since 23 {axis = 1 : i64, epsilon = 1.000000e+00 : f32}
// CHECK-NOT:     Mul
func.func @rms_norm(%x: !x) -> !x {
  %one = arith.constant dense<1.0> : !s
  %q = onnx.node "Mul"(%x, %x) since 14 : (!x, !x) -> !x
  %v = onnx.node "ReduceMean"(%q) since 13 {axes = array<i64: 2, 1>} : (!x) -> tensor<5x1x1xf32>
  %e = onnx.node "Add"(%one, %v) since 14 : (!s, tensor<5x1x1xf32>) -> tensor<5x1x1xf32>
  %r = onnx.node "Sqrt"(%e) since 13 : (tensor<5x1x1xf32>) -> tensor<5x1x1xf32>
  %i = onnx.node "Reciprocal"(%r) since 13 : (tensor<5x1x1xf32>) -> tensor<5x1x1xf32>
  %n = onnx.node "Mul"(%x, %i) since 14 : (!x, tensor<5x1x1xf32>) -> !x
  return %n : !x
}

// Another value is divided by the root of x.
// CHECK-LABEL: func.func @other_numerator(
// CHECK-NOT:     Normalization
// CHECK:         onnx.node "Div"
func.func @other_numerator(%x: !x, %z: !x) -> !x {
  %eps = arith.constant dense<1.0e-5> : !s
  %q = onnx.node "Mul"(%x, %x) since 14 : (!x, !x) -> !x
  %v = onnx.node "ReduceMean"(%q) since 13 {axes = array<i64: 2>} : (!x) -> !m
  %e = onnx.node "Add"(%v, %eps) since 14 : (!m, !s) -> !m
  %r = onnx.node "Sqrt"(%e) since 13 : (!m) -> !m
  %n = onnx.node "Div"(%z, %r) since 14 : (!x, !m) -> !x
  return %n : !x
}

// Factors in two of their orders.
// CHECK-LABEL: func.func @gelu(
// CHECK:         %[[A:.*]] = onnx.node "Gelu"(%arg0) since 20
// CHECK-NEXT:    %[[B:.*]] = onnx.node "Gelu"(%arg0) since 20
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func @gelu(%x: !x) -> (!x, !x) {
  %half = arith.constant dense<0.5> : !s
  %one = arith.constant dense<1.0> : !s
  %root = arith.constant dense<1.41421354> : !s
  %inverse = arith.constant dense<0.707106769> : !s
  %d = onnx.node "Div"(%x, %root) since 14 : (!x, !s) -> !x
  %e = onnx.node "Erf"(%d) since 13 : (!x) -> !x
  %p = onnx.node "Add"(%e, %one) since 14 : (!x, !s) -> !x
  %q = onnx.node "Mul"(%x, %p) since 14 : (!x, !x) -> !x
  %a = onnx.node "Mul"(%q, %half) since 14 : (!x, !s) -> !x
  %d1 = onnx.node "Mul"(%x, %inverse) since 14 : (!x, !s) -> !x
  %e1 = onnx.node "Erf"(%d1) since 13 : (!x) -> !x
  %p1 = onnx.node "Add"(%one, %e1) since 14 : (!s, !x) -> !x
  %h1 = onnx.node "Mul"(%half, %x) since 14 : (!s, !x) -> !x
  %b = onnx.node "Mul"(%h1, %p1) since 14 : (!x, !x) -> !x
  return %a, %b : !x, !x
}

// The error function of x / 1.4 is another function, and so is that of z.
// CHECK-LABEL: func.func @not_gelu(
// CHECK-NOT:     Gelu
// CHECK:         return
func.func @not_gelu(%x: !x, %z: !x) -> (!x, !x) {
  %half = arith.constant dense<0.5> : !s
  %one = arith.constant dense<1.0> : !s
  %near = arith.constant dense<1.4> : !s
  %root = arith.constant dense<1.41421354> : !s
  %d = onnx.node "Div"(%x, %near) since 14 : (!x, !s) -> !x
  %e = onnx.node "Erf"(%d) since 13 : (!x) -> !x
  %p = onnx.node "Add"(%e, %one) since 14 : (!x, !s) -> !x
  %q = onnx.node "Mul"(%x, %p) since 14 : (!x, !x) -> !x
  %a = onnx.node "Mul"(%q, %half) since 14 : (!x, !s) -> !x
  %d1 = onnx.node "Div"(%z, %root) since 14 : (!x, !s) -> !x
  %e1 = onnx.node "Erf"(%d1) since 13 : (!x) -> !x
  %p1 = onnx.node "Add"(%one, %e1) since 14 : (!s, !x) -> !x
  %h1 = onnx.node "Mul"(%half, %x) since 14 : (!s, !x) -> !x
  %b = onnx.node "Mul"(%h1, %p1) since 14 : (!x, !x) -> !x
  return %a, %b : !x, !x
}

// CHECK-LABEL: func.func @silu(
// CHECK:         %[[A:.*]] = onnx.node "QuickGelu"(%arg0) since 1 domain "com.microsoft" {alpha = 1.000000e+00 : f32}
// CHECK-NEXT:    return %[[A]]
func.func @silu(%x: !x) -> !x {
  %s = onnx.node "Sigmoid"(%x) since 13 : (!x) -> !x
  %y = onnx.node "Mul"(%s, %x) since 14 : (!x, !x) -> !x
  return %y : !x
}

// A gate: the factor is another value.
// CHECK-LABEL: func.func @gate(
// CHECK-NOT:     QuickGelu
// CHECK:         return
func.func @gate(%x: !x, %z: !x) -> !x {
  %s = onnx.node "Sigmoid"(%x) since 13 : (!x) -> !x
  %y = onnx.node "Mul"(%s, %z) since 14 : (!x, !x) -> !x
  return %y : !x
}
