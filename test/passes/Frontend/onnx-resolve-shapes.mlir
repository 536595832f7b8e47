// RUN: penstock-opt %s --onnx-resolve-shapes --split-input-file --verify-diagnostics | FileCheck %s

// Types follow from those of the arguments, up to the call in the task.

// CHECK-LABEL: pipeline.task @m.F
// CHECK:         call @m.forward(%{{.*}}, %{{.*}}) : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<5x11xf32>
// CHECK-LABEL: func.func private @m.forward
// CHECK-SAME:    -> (tensor<5x11xf32> {onnx.output = "z"})
// CHECK:         onnx.node "MatMul"(%{{.*}}) since 13 : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<5x11xf32>
// CHECK:         onnx.node "Relu"(%{{.*}}) since 14 : (tensor<5x11xf32>) -> tensor<5x11xf32>
pipeline.stage @m
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.variable @w : tensor<7x11xf32> parameter of @m
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %w = pipeline.read @w : tensor<7x11xf32>
  %z = func.call @m.forward(%x, %w) : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<*xf32>
}
func.func private @m.forward(%x: tensor<5x7xf32>, %w: tensor<7x11xf32>) -> (tensor<*xf32> {onnx.output = "z"}) {
  %a = onnx.node "MatMul"(%x, %w) since 13 : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<*xf32>
  %z = onnx.node "Relu"(%a) since 14 : (tensor<*xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

// What can be computed is computed, and what only that needed is gone.

// CHECK-LABEL: func.func private @folded
// CHECK-NEXT:    %[[TARGET:.*]] = arith.constant dense<[5, 21]> : tensor<2xi64>
// CHECK-NEXT:    %[[Z:.*]] = onnx.node "Reshape"(%{{.*}}, %[[TARGET]]) since 14 : (tensor<5x3x7xf32>, tensor<2xi64>) -> tensor<5x21xf32>
// CHECK-NEXT:    return %[[Z]]
func.func private @folded(%x: tensor<5x3x7xf32>) -> tensor<*xf32> {
  %zero = arith.constant dense<0> : tensor<i64>
  %front = arith.constant dense<0> : tensor<1xi64>
  %tail = arith.constant dense<21> : tensor<1xi64>
  %s = onnx.node "Shape"(%x) since 15 : (tensor<5x3x7xf32>) -> tensor<*xf32>
  %n = onnx.node "Gather"(%s, %zero) since 13 {axis = 0 : i64} : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  %u = onnx.node "Unsqueeze"(%n, %front) since 13 : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %t = onnx.node "Concat"(%u, %tail) since 13 {axis = 0 : i64} : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %z = onnx.node "Reshape"(%x, %t) since 14 : (tensor<5x3x7xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

// What TorchScript makes of repeat_interleave: how often each axis is repeated.

// CHECK-LABEL: func.func private @repeated
// CHECK-NEXT:    %[[REPEATS:.*]] = arith.constant dense<[1, 1, 3]> : tensor<3xi64>
// CHECK-NEXT:    %[[Z:.*]] = onnx.node "Tile"(%{{.*}}, %[[REPEATS]]) since 13 : (tensor<2x4x5xf32>, tensor<3xi64>) -> tensor<2x4x15xf32>
// CHECK-NEXT:    return %[[Z]]
func.func private @repeated(%x: tensor<2x4x5xf32>) -> tensor<*xf32> {
  %axis = arith.constant dense<-1> : tensor<1xi64>
  %depth = arith.constant dense<3> : tensor<i64>
  %values = arith.constant dense<[1, 3]> : tensor<2xi64>
  %flat = arith.constant dense<-1> : tensor<1xi64>
  %h = onnx.node "OneHot"(%axis, %depth, %values) since 11 {axis = -1 : i64} : (tensor<1xi64>, tensor<i64>, tensor<2xi64>) -> tensor<*xf32>
  %r = onnx.node "Reshape"(%h, %flat) since 14 : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %z = onnx.node "Tile"(%x, %r) since 13 : (tensor<2x4x5xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

// All unsupported nodes, in one error.
// expected-error @below {{3 nodes are not supported: 2 x QLinearConv, since-version 10 ('QLinearConv#0', 'QLinearConv#1'); 1 x Mystery, since-version 99 ('Mystery#2')}}
module {
  func.func private @unsupported(%x: tensor<5x7xf32>) -> tensor<*xf32> {
    %a = onnx.node "QLinearConv"(%x) since 10 : (tensor<5x7xf32>) -> tensor<*xf32>
    %b = onnx.node "QLinearConv"(%a) since 10 : (tensor<*xf32>) -> tensor<*xf32>
    %c = onnx.node "Mystery"(%b) since 99 : (tensor<*xf32>) -> tensor<*xf32>
    return %c : tensor<*xf32>
  }
}

// -----

// A product of dimensions that no machine can hold.
func.func private @huge(%x: tensor<1000000x1x1xf32>, %y: tensor<1x1000000x1xf32>, %z: tensor<1x1x1000000xf32>) -> tensor<*xf32> {
  %a = onnx.node "Add"(%x, %y) since 14 : (tensor<1000000x1x1xf32>, tensor<1x1000000x1xf32>) -> tensor<*xf32>
  // expected-error @below {{is too large; bind smaller dimensions}}
  %b = onnx.node "Add"(%a, %z) since 14 : (tensor<*xf32>, tensor<1x1x1000000xf32>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}
