// RUN: penstock-opt %s --pipeline-merge-updates | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#line = affine_map<(i) -> (i)>
#all = affine_map<(i, j) -> ()>
#scalar = affine_map<(i) -> ()>

// Calls with the same numbers and the same body become one, where all slots are
// there. What updates a variable again waits for the others.
// CHECK-LABEL: func.func @train.0(
// CHECK:         %[[LR:.*]] = pipeline.hyperparameter "lr"
// CHECK:         %[[OTHER:.*]] = pipeline.hyperparameter "other"
// CHECK-DAG:     %[[W1:.*]] = pipeline.slot @w1
// CHECK-DAG:     %[[G1:.*]] = pipeline.slot @g1
// CHECK-NOT:     call
// CHECK-DAG:     %[[W2:.*]] = pipeline.slot @w2
// CHECK-DAG:     %[[G2:.*]] = pipeline.slot @g2
// CHECK:         call @sgd.merged(%[[W1]], %[[G1]], %[[LR]], %[[W2]], %[[G2]])
// CHECK:         call @sgd.11(%{{.*}}, %{{.*}}, %[[OTHER]])
// CHECK:         call @half.11(
// CHECK:         call @sgd.merged_0(%{{.*}}, %{{.*}}, %[[LR]], %[[W2]], %[[G2]])
// CHECK-NOT:     call
// CHECK:         func.func private @sgd.merged(%[[A:.*]]: memref<7x11xf32>, %[[B:.*]]: memref<7x11xf32>, %[[R:.*]]: f32, %[[C:.*]]: memref<11xf32>, %[[D:.*]]: memref<11xf32>) attributes {pipeline.target = #cuda.target<"sm_90">}
// CHECK-COUNT-1:   arith.constant 0.000000e+00
// CHECK:           scf.forall (%[[N:.*]]) in (2) {
// CHECK:             scf.index_switch %[[N]]
// CHECK:             case 0 {
// CHECK:               linalg.generic {{.*}} ins(%[[R]] : f32) outs(%[[A]], %[[B]] :
// CHECK:             case 1 {
// CHECK:               linalg.generic {{.*}} ins(%[[R]] : f32) outs(%[[C]], %[[D]] :
func.func @train.0(%first: index, %updates: index) attributes {pipeline.device = 0 : i64} {
  %lr = pipeline.hyperparameter "lr" default(1.0e-02) : f32
  %other = pipeline.hyperparameter "other" default(1.0e-02) : f32
  %w1 = pipeline.slot @w1[%first] at(0) : memref<7x11xf32>
  %g1 = pipeline.slot @g1[%first] at(512) : memref<7x11xf32>
  func.call @sgd.7x11(%w1, %g1, %lr) : (memref<7x11xf32>, memref<7x11xf32>, f32) -> ()
  %w2 = pipeline.slot @w2[%first] at(1024) : memref<11xf32>
  %g2 = pipeline.slot @g2[%first] at(1280) : memref<11xf32>
  func.call @sgd.11(%w2, %g2, %lr) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  %w3 = pipeline.slot @w3[%first] at(2048) : memref<11xf32>
  %g3 = pipeline.slot @g3[%first] at(2304) : memref<11xf32>
  func.call @sgd.11(%w3, %g3, %other) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  %w4 = pipeline.slot @w4[%first] at(3072) : memref<11xf32>
  %g4 = pipeline.slot @g4[%first] at(3328) : memref<11xf32>
  func.call @half.11(%w4, %g4, %lr) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  func.call @sgd.11(%w4, %g4, %lr) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  func.call @sgd.11(%w2, %g2, %lr) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  return
}
func.func private @sgd.7x11(%w: memref<7x11xf32>, %g: memref<7x11xf32>, %lr: f32) attributes {pipeline.target = #cuda.target<"sm_90">} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#all, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%lr : f32) outs(%w, %g : memref<7x11xf32>, memref<7x11xf32>) {
    ^bb0(%r: f32, %a: f32, %b: f32): %s = arith.mulf %r, %b : f32  %n = arith.subf %a, %s : f32  linalg.yield %n, %zero : f32, f32 }
  return
}
func.func private @sgd.11(%w: memref<11xf32>, %g: memref<11xf32>, %lr: f32) attributes {pipeline.target = #cuda.target<"sm_90">} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#scalar, #line, #line], iterator_types = ["parallel"]}
    ins(%lr : f32) outs(%w, %g : memref<11xf32>, memref<11xf32>) {
    ^bb0(%r: f32, %a: f32, %b: f32): %s = arith.mulf %r, %b : f32  %n = arith.subf %a, %s : f32  linalg.yield %n, %zero : f32, f32 }
  return
}
func.func private @half.11(%w: memref<11xf32>, %g: memref<11xf32>, %lr: f32) attributes {pipeline.target = #cuda.target<"sm_90">} {
  %half = arith.constant 0.5 : f32
  linalg.generic {indexing_maps = [#scalar, #line, #line], iterator_types = ["parallel"]}
    ins(%lr : f32) outs(%w, %g : memref<11xf32>, memref<11xf32>) {
    ^bb0(%r: f32, %a: f32, %b: f32): %s = arith.mulf %r, %b : f32  %n = arith.subf %a, %s : f32  linalg.yield %n, %half : f32, f32 }
  return
}

// What writes a message does not wait: its memory may be another one's before.
// CHECK-LABEL: func.func @train.1(
// CHECK:         %[[X:.*]] = pipeline.slot @x
// CHECK:         call @sgd.11(%[[X]],
// CHECK:         call @sgd.11(
pipeline.channel @x : [tensor<11xf32>] source(input "x") slots(3)
func.func @train.1(%first: index, %updates: index) attributes {pipeline.device = 1 : i64} {
  %lr = pipeline.hyperparameter "lr" default(1.0e-02) : f32
  %x = pipeline.slot @x[%first] at(0) : memref<11xf32>
  %g1 = pipeline.slot @g1[%first] at(512) : memref<11xf32>
  func.call @sgd.11(%x, %g1, %lr) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  %w2 = pipeline.slot @w2[%first] at(1024) : memref<11xf32>
  %g2 = pipeline.slot @g2[%first] at(1280) : memref<11xf32>
  func.call @sgd.11(%w2, %g2, %lr) : (memref<11xf32>, memref<11xf32>, f32) -> ()
  return
}
