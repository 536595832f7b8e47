// RUN: penstock-opt %s --pipeline-bufferize-functions --split-input-file --verify-diagnostics | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>
!h1 = tensor<5x11xf32>
!h2 = tensor<5x13xf32>
!w1 = tensor<7x11xf32>
!w2 = tensor<11x13xf32>

// Both layers are computed in the buffers of the results; nothing is temporary.
// CHECK-LABEL: func.func private @forward.kernel(
// CHECK-SAME:    %[[X:.*]]: memref<5x7xf32>, %[[W1:.*]]: memref<7x11xf32>,
// CHECK-SAME:    %[[W2:.*]]: memref<11x13xf32>, %[[H2:.*]]: memref<5x13xf32>,
// CHECK-SAME:    %[[H1:.*]]: memref<5x11xf32>) {
// CHECK:         linalg.fill {{.*}} outs(%[[H1]]
// CHECK-NEXT:    linalg.contract {{.*}} ins(%[[X]], %[[W1]] {{.*}} outs(%[[H1]]
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[H1]]
// CHECK:         linalg.fill {{.*}} outs(%[[H2]]
// CHECK-NEXT:    linalg.contract {{.*}} ins(%[[H1]], %[[W2]] {{.*}} outs(%[[H2]]
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[H2]]
// CHECK-NOT:     memref.
// CHECK:         return
func.func private @forward(%x: !x, %w1: !w1, %w2: !w2) -> (!h2, !h1) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : !h1
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !h1) -> !h1
  %a1 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w1 : !x, !w1) outs(%z1 : !h1) -> !h1
  %h1 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%a1 : !h1) {
    ^bb0(%a: f32): %r = arith.maximumf %a, %zero : f32  linalg.yield %r : f32 } -> !h1
  %e2 = tensor.empty() : !h2
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : !h2) -> !h2
  %a2 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%h1, %w2 : !h1, !w2) outs(%z2 : !h2) -> !h2
  %h2 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%a2 : !h2) {
    ^bb0(%a: f32): %r = arith.maximumf %a, %zero : f32  linalg.yield %r : f32 } -> !h2
  return %h2, %h1 : !h2, !h1
}

// Gradients accumulate in their arguments; the two cotangents of hidden values
// are temporaries. %g2 dies where %dh1 is computed from it, so their ranges
// meet: 5x13 and 5x11 floats, each rounded up to 64 bytes. %g1 overwrites %dh1.
// CHECK-LABEL: func.func private @backward.kernel(
// CHECK-SAME:    %[[DW1:[^ ]*]]: memref<7x11xf32> {pipeline.into = 0 : i64},
// CHECK-SAME:    %[[DW2:[^ ]*]]: memref<11x13xf32> {pipeline.into = 1 : i64},
// CHECK-SAME:    %[[S:[^ ]*]]: memref<576xi8> {pipeline.scratch}) {
// CHECK-DAG:     %[[AT0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[AT1:.*]] = arith.constant 320 : index
// CHECK-DAG:     %[[G2:.*]] = memref.view %[[S]][%[[AT0]]][] : memref<576xi8> to memref<5x13xf32>
// CHECK-DAG:     %[[D1:.*]] = memref.view %[[S]][%[[AT1]]][] : memref<576xi8> to memref<5x11xf32>
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     linalg.copy
// CHECK:         linalg.generic {{.*}} outs(%[[G2]]
// CHECK:         linalg.contract {{.*}} outs(%[[DW2]]
// CHECK:         linalg.contract {{.*}} ins(%[[G2]], {{.*}} outs(%[[D1]]
// CHECK:         linalg.generic {{.*}} outs(%[[D1]]
// CHECK:         linalg.contract {{.*}} outs(%[[DW1]]
// CHECK-NEXT:    return
func.func private @backward(%dh2: !h2, %x: !x, %h1: !h1, %h2: !h2, %w2: !w2,
    %dw1: !w1 {pipeline.into = 0 : i64}, %dw2: !w2 {pipeline.into = 1 : i64}) -> (!w1, !w2) {
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : !h2
  %g2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h2, %dh2 : !h2, !h2) outs(%e2 : !h2) {
    ^bb0(%h: f32, %d: f32, %o: f32): %p = arith.cmpf ogt, %h, %zero : f32  %r = arith.select %p, %d, %zero : f32  linalg.yield %r : f32 } -> !h2
  %n2 = linalg.contract indexing_maps = [#mk, #mn, #kn] ins(%h1, %g2 : !h1, !h2) outs(%dw2 : !w2) -> !w2
  %e1 = tensor.empty() : !h1
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !h1) -> !h1
  %dh1 = linalg.contract indexing_maps = [#mn, #kn, #mk] ins(%g2, %w2 : !h2, !w2) outs(%z1 : !h1) -> !h1
  %g1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h1, %dh1 : !h1, !h1) outs(%e1 : !h1) {
    ^bb0(%h: f32, %d: f32, %o: f32): %p = arith.cmpf ogt, %h, %zero : f32  %r = arith.select %p, %d, %zero : f32  linalg.yield %r : f32 } -> !h1
  %n1 = linalg.contract indexing_maps = [#mk, #mn, #kn] ins(%x, %g1 : !x, !h1) outs(%dw1 : !w1) -> !w1
  return %n1, %n2 : !w1, !w2
}

// The weight is an input and its new value a result; the gradient is reset in
// place. The learning rate stays a scalar.
// CHECK-LABEL: func.func private @sgd.7x11.kernel(
// CHECK-SAME:    %[[W:.*]]: memref<7x11xf32>, %[[G:.*]]: memref<7x11xf32> {pipeline.into = 1 : i64},
// CHECK-SAME:    %[[LR:.*]]: f32, %[[N:.*]]: memref<7x11xf32>) {
// CHECK:         linalg.generic {{.*}} ins(%[[W]] : {{.*}} outs(%[[N]], %[[G]] :
// CHECK-NOT:     memref.
// CHECK:         return
func.func private @sgd.7x11(%w: !w1, %g: !w1 {pipeline.into = 1 : i64}, %lr: f32) -> (!w1, !w1) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !w1
  %n:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : !w1) outs(%e, %g : !w1, !w1) {
    ^bb0(%a: f32, %o: f32, %b: f32): %s = arith.mulf %lr, %b : f32  %r = arith.subf %a, %s : f32  linalg.yield %r, %zero : f32, f32 } -> (!w1, !w1)
  return %n#0, %n#1 : !w1, !w1
}

// No tensors: left alone. A declaration: somebody else's.
// CHECK-NOT: .kernel
// CHECK-LABEL: func.func private @lr(
// CHECK-NOT: .kernel
func.func private @lr(%base: f32, %t: index) -> f32 {
  return %base : f32
}
func.func private @elsewhere(!x) -> !x

// -----

// A result that is a reshape: computed in place, no copy.
// CHECK-LABEL: func.func private @flatten.kernel(
// CHECK-SAME:    %[[X:.*]]: memref<2x3x4xf32>, %[[R:.*]]: memref<2x12xf32>) {
// CHECK:         %[[E:.*]] = memref.expand_shape %[[R]] {{.*}} into memref<2x3x4xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[X]] {{.*}} outs(%[[E]]
// CHECK-NOT:     linalg.copy
// CHECK:         return
#all = affine_map<(i, j, k) -> (i, j, k)>
func.func private @flatten(%x: tensor<2x3x4xf32>) -> tensor<2x12xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %n = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.negf %a : f32  linalg.yield %r : f32 } -> tensor<2x3x4xf32>
  %r = tensor.collapse_shape %n [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>
  return %r : tensor<2x12xf32>
}

// -----

// One value in two results has to be copied; the pass says so.
// CHECK-LABEL: func.func private @twice.kernel(
// CHECK:         linalg.copy
// expected-remark@+1 {{a copy of 'memref<6xf32>' could not be avoided}}
func.func private @twice(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %e = tensor.empty() : tensor<6xf32>
  %n = linalg.exp ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  return %n, %n : tensor<6xf32>, tensor<6xf32>
}

// -----

// Both results begin with the same part. Each is written in its own buffer,
// part by part; where one was the other's start, a copy would come too late.
// CHECK-LABEL: func.func private @same_start.kernel(
// CHECK-SAME:    %[[X:.*]]: memref<5x7xf32>, %[[Y:.*]]: memref<5x4xf32>, %[[Z:.*]]: memref<5x4xf32>, %[[A:.*]]: memref<5x11xf32>, %[[B:.*]]: memref<5x11xf32>) {
// CHECK-DAG:     memref.subview %[[A]][0, 0]
// CHECK-DAG:     memref.subview %[[A]][0, 7]
// CHECK-DAG:     memref.subview %[[B]][0, 0]
// CHECK-DAG:     memref.subview %[[B]][0, 7]
// CHECK:         return
func.func private @same_start(%x: tensor<5x7xf32>, %y: tensor<5x4xf32>, %z: tensor<5x4xf32>) -> (tensor<5x11xf32>, tensor<5x11xf32>) {
  %e = tensor.empty() : tensor<5x11xf32>
  // expected-remark@+1 {{a copy of 'memref<5x7xf32>' could not be avoided}}
  %start = tensor.insert_slice %x into %e[0, 0] [5, 7] [1, 1] : tensor<5x7xf32> into tensor<5x11xf32>
  // expected-remark@+1 {{could not be avoided}}
  %a = tensor.insert_slice %y into %start[0, 7] [5, 4] [1, 1] : tensor<5x4xf32> into tensor<5x11xf32>
  // expected-remark@+1 {{could not be avoided}}
  %b = tensor.insert_slice %z into %start[0, 7] [5, 4] [1, 1] : tensor<5x4xf32> into tensor<5x11xf32>
  return %a, %b : tensor<5x11xf32>, tensor<5x11xf32>
}

// -----

// A result is made from a tensor of which another result is a part: the
// tensor stays out of both buffers.
// CHECK-LABEL: func.func private @part_of_start.kernel(
// CHECK-SAME:    %[[X:.*]]: memref<7xf32>, %[[I:.*]]: index, %[[A:.*]]: memref<7xf32>, %[[B:.*]]: memref<3xf32>, %[[S:.*]]: memref<64xi8> {pipeline.scratch}) {
// CHECK:         %[[T:.*]] = memref.view %[[S]]
// CHECK:         linalg.generic {{.*}} outs(%[[T]]
// CHECK:         linalg.copy ins(%[[T]] {{.*}} outs(%[[A]]
// CHECK:         memref.store %{{.*}}, %[[A]]
// CHECK:         %[[PART:.*]] = memref.subview %[[T]]
// CHECK:         linalg.copy ins(%[[PART]] {{.*}} outs(%[[B]]
// CHECK-NEXT:    return
// expected-remark@+1 {{could not be avoided}}
func.func private @part_of_start(%x: tensor<7xf32>, %i: index) -> (tensor<7xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<7xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) {
    ^bb0(%a: f32, %b: f32): %r = arith.maximumf %a, %zero : f32  linalg.yield %r : f32 } -> tensor<7xf32>
  %a = scf.for %k = %c0 to %i step %c1 iter_args(%t = %s) -> tensor<7xf32> {
    %u = tensor.insert %zero into %t[%k] : tensor<7xf32>
    scf.yield %u : tensor<7xf32>
  }
  %part = tensor.extract_slice %s[2] [3] [1] : tensor<7xf32> to tensor<3xf32>
  return %a, %part : tensor<7xf32>, tensor<3xf32>
}
