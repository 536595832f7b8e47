// RUN: penstock-opt %s --onnx-resolve-shapes --split-input-file --verify-diagnostics | FileCheck %s

// Without a condition, those of the body do not count. Loops are in loops, and
// an If in them is the branch that this run takes.
// CHECK-LABEL: func @nested
// CHECK-SAME:    (%[[X:.*]]: tensor<5xf32>)
func.func @nested(%x: tensor<5xf32>) -> tensor<*xf32> {
  %two = arith.constant dense<2> : tensor<i64>
  %one = arith.constant dense<1> : tensor<i64>
  %false = arith.constant dense<false> : tensor<i1>
  %none = onnx.absent
  %0 = onnx.loop(%two, %none, %x) scans [] reversed [] {
  ^bb0(%i: tensor<*xf32>, %c: tensor<*xf32>, %s: tensor<*xf32>):
    %1 = onnx.loop(%one, %none, %s) scans [] reversed [] {
    ^bb0(%j: tensor<*xf32>, %d: tensor<*xf32>, %t: tensor<*xf32>):
      %2 = onnx.node "Tanh"(%t) since 13 : (tensor<*xf32>) -> tensor<*xf32>
      onnx.yield %false, %2 : tensor<i1>, tensor<*xf32>
    } : (tensor<i64>, none, tensor<*xf32>) -> tensor<*xf32>
    %is_one = onnx.node "Equal"(%i, %one) since 13 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
    %3 = onnx.node "Neg"(%1) since 13 {} attributes {onnx.branch} : (tensor<*xf32>) -> tensor<*xf32>
    %4 = onnx.node "Abs"(%1) since 13 {} attributes {onnx.branch} : (tensor<*xf32>) -> tensor<*xf32>
    %5 = onnx.node "If"(%is_one, %3, %4) since 16 : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    onnx.yield %c, %5 : tensor<*xf32>, tensor<*xf32>
  } : (tensor<i64>, none, tensor<5xf32>) -> tensor<*xf32>
  // CHECK-NEXT: %[[A:.*]] = onnx.node "Tanh"(%[[X]])
  // CHECK-NEXT: %[[B:.*]] = onnx.node "Abs"(%[[A]])
  // CHECK-NEXT: %[[C:.*]] = onnx.node "Tanh"(%[[B]])
  // CHECK-NEXT: %[[D:.*]] = onnx.node "Neg"(%[[C]])
  // CHECK-NEXT: return %[[D]] : tensor<5xf32>
  return %0 : tensor<*xf32>
}

// -----

// A loop that does not run gives what it was given.
// CHECK-LABEL: func @never
// CHECK-SAME:    (%[[X:.*]]: tensor<5xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @never(%x: tensor<5xf32>) -> tensor<*xf32> {
  %false = arith.constant dense<false> : tensor<i1>
  %none = onnx.absent
  %0:2 = onnx.loop(%none, %false, %x) scans [0] reversed [false] {
  ^bb0(%i: tensor<*xf32>, %c: tensor<*xf32>, %s: tensor<*xf32>):
    %1 = onnx.node "Tanh"(%s) since 13 : (tensor<*xf32>) -> tensor<*xf32>
    onnx.yield %c, %1, %1 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
  } : (none, tensor<i1>, tensor<5xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %0#0 : tensor<*xf32>
}

// -----

// Without a number of runs and without a condition it never ends.
func.func @endless(%x: tensor<5xf32>) -> tensor<*xf32> {
  %none = onnx.absent
  // expected-error @below {{it has neither a number of runs nor a condition}}
  %0 = onnx.loop(%none, %none, %x) scans [] reversed [] {
  ^bb0(%i: tensor<*xf32>, %c: tensor<*xf32>, %s: tensor<*xf32>):
    %false = arith.constant dense<false> : tensor<i1>
    %1 = onnx.node "Tanh"(%s) since 13 : (tensor<*xf32>) -> tensor<*xf32>
    onnx.yield %false, %1 : tensor<i1>, tensor<*xf32>
  } : (none, none, tensor<5xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
