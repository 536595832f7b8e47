// RUN: penstock-opt %s --onnx-resolve-shapes --split-input-file --verify-diagnostics | FileCheck %s

// Pieces of five, and what is left; positions from both ends.

// CHECK-LABEL: func.func private @even
// CHECK-SAME:    -> (tensor<3x5xf32>, tensor<3x2xf32>)
// CHECK-DAG:     %[[C0:.*]] = arith.constant dense<0> : tensor<1xi64>
// CHECK-DAG:     %[[C5:.*]] = arith.constant dense<5> : tensor<1xi64>
// CHECK:         %[[A:.*]] = onnx.node "Slice"(%arg0, %{{.*}}, %{{.*}}, %{{.*}}) since 13 : {{.*}} -> tensor<3x5xf32>
// CHECK:         %[[B:.*]] = onnx.node "Slice"({{.*}} -> tensor<3x2xf32>
// CHECK:         return %[[A]], %[[B]]
func.func private @even(%x: tensor<3x12xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %five = arith.constant dense<5> : tensor<i64>
  %first = arith.constant dense<0> : tensor<i64>
  %last = arith.constant dense<-1> : tensor<i64>
  %s = onnx.node "SplitToSequence"(%x, %five) since 11 {axis = -1 : i64} : (tensor<3x12xf32>, tensor<i64>) -> tensor<*xf32>
  %a = onnx.node "SequenceAt"(%s, %first) since 11 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  %b = onnx.node "SequenceAt"(%s, %last) since 11 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// Given sizes; a row without its axis; a concatenation; a length.

// CHECK-LABEL: func.func private @others
// CHECK-SAME:    -> (tensor<3x7xf32>, tensor<12xf32>, tensor<2x12xf32>, tensor<i64>)
// CHECK:         "Slice"({{.*}} -> tensor<3x7xf32>
// CHECK:         "Slice"({{.*}} -> tensor<1x12xf32>
// CHECK:         "Squeeze"({{.*}} -> tensor<12xf32>
// CHECK:         "Unsqueeze"({{.*}} -> tensor<1x12xf32>
// CHECK:         "Unsqueeze"({{.*}} -> tensor<1x12xf32>
// CHECK:         "Concat"({{.*}} -> tensor<2x12xf32>
// CHECK-NOT:     Sequence
func.func private @others(%x: tensor<3x12xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %sizes = arith.constant dense<[5, 7]> : tensor<2xi64>
  %one = arith.constant dense<1> : tensor<i64>
  %s = onnx.node "SplitToSequence"(%x, %sizes) since 11 {axis = 1 : i64} : (tensor<3x12xf32>, tensor<2xi64>) -> tensor<*xf32>
  %a = onnx.node "SequenceAt"(%s, %one) since 11 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  %r = onnx.node "SplitToSequence"(%x) since 11 {keepdims = 0 : i64} : (tensor<3x12xf32>) -> tensor<*xf32>
  %b = onnx.node "SequenceAt"(%r, %one) since 11 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  %t = onnx.node "SequenceConstruct"(%b, %b) since 11 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %c = onnx.node "ConcatFromSequence"(%t) since 11 {axis = 0 : i64, new_axis = 1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %n = onnx.node "SequenceLength"(%r) since 11 : (tensor<*xf32>) -> tensor<*xf32>
  return %a, %b, %c, %n : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// A loop that appends, as exporters write a sum per bag: what it gives is known
// when it is unrolled. An element less; one in front.

// CHECK-LABEL: func.func private @appended
// CHECK-SAME:    (%[[X:.*]]: tensor<3x12xf32>, %[[Y:.*]]: tensor<1x12xf32>) -> tensor<3x12xf32>
// CHECK:         %[[A:.*]] = onnx.node "Slice"(%[[X]], {{.*}} -> tensor<1x12xf32>
// CHECK:         %[[B:.*]] = onnx.node "Slice"(%[[X]], {{.*}} -> tensor<1x12xf32>
// CHECK:         %[[Z:.*]] = onnx.node "Concat"(%[[Y]], %[[A]], %[[B]]) {{.*}} -> tensor<3x12xf32>
// CHECK-NOT:     Sequence
// CHECK:         return %[[Z]]
func.func private @appended(%x: tensor<3x12xf32>, %y: tensor<1x12xf32>) -> tensor<*xf32> {
  %three = arith.constant dense<3> : tensor<i64>
  %zero = arith.constant dense<0> : tensor<i64>
  %one = arith.constant dense<1> : tensor<1xi64>
  %first = arith.constant dense<0> : tensor<1xi64>
  %none = onnx.absent
  %s = onnx.node "SequenceEmpty"() since 11 : () -> tensor<*xf32>
  %l = onnx.loop(%three, %none, %s) scans [] reversed [] {
  ^bb0(%i: tensor<*xf32>, %c: tensor<*xf32>, %t: tensor<*xf32>):
    %from = onnx.node "Unsqueeze"(%i, %first) since 13 : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
    %to = onnx.node "Add"(%from, %one) since 14 : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
    %r = onnx.node "Slice"(%x, %from, %to) since 13 : (tensor<3x12xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %u = onnx.node "SequenceInsert"(%t, %r) since 11 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    onnx.yield %c, %u : tensor<*xf32>, tensor<*xf32>
  } : (tensor<i64>, none, tensor<*xf32>) -> tensor<*xf32>
  %e = onnx.node "SequenceErase"(%l) since 11 : (tensor<*xf32>) -> tensor<*xf32>
  %f = onnx.node "SequenceInsert"(%e, %y, %zero) since 11 : (tensor<*xf32>, tensor<1x12xf32>, tensor<i64>) -> tensor<*xf32>
  %z = onnx.node "ConcatFromSequence"(%f) since 11 {axis = 0 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

func.func private @emptied(%x: tensor<3x12xf32>) -> tensor<*xf32> {
  %s = onnx.node "SequenceEmpty"() since 11 : () -> tensor<*xf32>
  // expected-error @below {{node 'SequenceErase#1' (SequenceErase, since-version 11): the sequence is empty}}
  %e = onnx.node "SequenceErase"(%s) since 11 : (tensor<*xf32>) -> tensor<*xf32>
  %z = onnx.node "ConcatFromSequence"(%e) since 11 {axis = 0 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

func.func private @beyond(%x: tensor<3x12xf32>) -> tensor<*xf32> {
  %three = arith.constant dense<3> : tensor<i64>
  %r = onnx.node "SplitToSequence"(%x) since 11 : (tensor<3x12xf32>) -> tensor<*xf32>
  // expected-error @below {{node 'SequenceAt#1' (SequenceAt, since-version 11): position 3 of a sequence of 3}}
  %a = onnx.node "SequenceAt"(%r, %three) since 11 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}

// -----

func.func private @escapes(%x: tensor<3x12xf32>) -> tensor<*xf32> {
  // expected-error @below {{its result is a sequence, which only nodes over sequences can read here}}
  %r = onnx.node "SplitToSequence"(%x) since 11 : (tensor<3x12xf32>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}

// -----

func.func private @wrong_sum(%x: tensor<3x12xf32>, %i: tensor<i64>) -> tensor<*xf32> {
  %sizes = arith.constant dense<[5, 6]> : tensor<2xi64>
  %one = arith.constant dense<1> : tensor<i64>
  // expected-error @below {{'split' adds up to 11, but axis 1 has 12 elements}}
  %s = onnx.node "SplitToSequence"(%x, %sizes) since 11 {axis = 1 : i64} : (tensor<3x12xf32>, tensor<2xi64>) -> tensor<*xf32>
  %a = onnx.node "SequenceAt"(%s, %one) since 11 : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}
