// Predicted and compensated weights become results of the updates.
// RUN: penstock-opt %s --split-input-file --verify-diagnostics --pipeline-fuse-adjusted-weights | FileCheck %s

!w = tensor<3x5xf32>
#id = affine_map<(i, j) -> (i, j)>
func.func private @update(%w: !w, %v: !w {pipeline.into = 1 : i64}, %lr: f32) -> (!w, !w) {
  %e = tensor.empty() : !w
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : !w) outs(%e, %v : !w, !w) {
    ^bb0(%a: f32, %o: f32, %b: f32):
      %s = arith.mulf %lr, %b : f32
      %n = arith.subf %a, %s : f32
      linalg.yield %n, %s : f32, f32 } -> (!w, !w)
  return %r#0, %r#1 : !w, !w
}
func.func private @direction(%w: !w, %v: !w, %x: f32) -> !w {
  %e = tensor.empty() : !w
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %v : !w, !w) outs(%e : !w) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.mulf %a, %x : f32
      %d = arith.divf %b, %s : f32
      linalg.yield %d : f32 } -> !w
  return %r : !w
}
pipeline.stage @s
pipeline.variable @w : !w parameter of @s
pipeline.variable @v : !w optimizer of @s
pipeline.variable @w.near : !w compensation of @s
pipeline.variable @w.far : !w compensation of @s
// CHECK: pipeline.task @s.U
// CHECK-NEXT: %[[LR:.*]] = pipeline.hyperparameter "lr"
// CHECK-NEXT: %[[X:.*]] = arith.constant
// CHECK-NEXT: %[[W:.*]] = pipeline.read @w :
// CHECK-NEXT: %[[V:.*]] = pipeline.read @v :
// CHECK-NEXT: %[[R:.*]]:4 = func.call @update.adjusted(%[[W]], %[[V]], %[[LR]], %[[LR]], %[[LR]], %[[X]])
// CHECK-NEXT: pipeline.write %[[R]]#0 to @w
// CHECK-NEXT: pipeline.write %[[R]]#1 to @v
// CHECK-NEXT: pipeline.write %[[R]]#2 to @w.near
// CHECK-NEXT: pipeline.write %[[R]]#3 to @w.far
// CHECK-NEXT: }
pipeline.task @s.U update of @s(%t) {
  %lr = pipeline.hyperparameter "lr" : f32
  %x = arith.constant 7.0 : f32
  %0 = pipeline.read @w : !w
  %1 = pipeline.read @v : !w
  %w, %v = func.call @update(%0, %1, %lr) : (!w, !w, f32) -> (!w, !w)
  pipeline.write %w to @w : !w
  pipeline.write %v to @v : !w
  %n = pipeline.predict %w, %v, %lr steps(1.5) : !w, f32
  pipeline.write %n to @w.near : !w
  %d = func.call @direction(%w, %v, %x) : (!w, !w, f32) -> !w
  %f = pipeline.predict %w, %d, %lr steps(2.0) : !w, f32
  pipeline.write %f to @w.far : !w
}
// The replay has declarations of the same functions.
// CHECK: module @replay
// CHECK: func.call @update.adjusted
// CHECK: func.func private @update.adjusted({{.*}}) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>){{$}}
module @replay {
  pipeline.stage @s
  pipeline.variable @w : !w parameter of @s
  pipeline.variable @v : !w optimizer of @s
  pipeline.variable @w.near : !w compensation of @s
  pipeline.variable @w.far : !w compensation of @s
  func.func private @update(!w, !w {pipeline.into = 1 : i64}, f32) -> (!w, !w)
  func.func private @direction(!w, !w, f32) -> !w
  pipeline.task @s.U update of @s(%t) {
    %lr = pipeline.hyperparameter "lr" : f32
    %x = arith.constant 7.0 : f32
    %0 = pipeline.read @w : !w
    %1 = pipeline.read @v : !w
    %w, %v = func.call @update(%0, %1, %lr) : (!w, !w, f32) -> (!w, !w)
    pipeline.write %w to @w : !w
    pipeline.write %v to @v : !w
    %n = pipeline.predict %w, %v, %lr steps(1.5) : !w, f32
    pipeline.write %n to @w.near : !w
    %d = func.call @direction(%w, %v, %x) : (!w, !w, f32) -> !w
    %f = pipeline.predict %w, %d, %lr steps(2.0) : !w, f32
    pipeline.write %f to @w.far : !w
  }
}

// -----

pipeline.stage @s
pipeline.variable @w : tensor<4xf32> parameter of @s
pipeline.variable @d : tensor<4xf32> compensation of @s
pipeline.task @s.B backward of @s(%k) {
  %w = pipeline.read @w : tensor<4xf32>
  %d = pipeline.read @d : tensor<4xf32>
  // expected-error @below {{of a weight that a task reads has no storage: let the update adjust what it writes}}
  %c = pipeline.compensate %w, %d tau(1.0) : tensor<4xf32>
}

// -----

func.func private @update(tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
pipeline.stage @s
pipeline.variable @w : tensor<4xf32> parameter of @s
pipeline.task @s.U update of @s(%t) {
  %lr = pipeline.hyperparameter "lr" : f32
  %0 = pipeline.read @w : tensor<4xf32>
  %w, %v = func.call @update(%0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  pipeline.write %w to @w : tensor<4xf32>
  %d = func.call @other(%v) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{is not an elementwise function of what one update makes}}
  %p = pipeline.predict %w, %d, %lr steps(1.0) : tensor<4xf32>, f32
}

// -----

!w = tensor<3x5xf32>
pipeline.stage @s
pipeline.variable @w : !w parameter of @s
pipeline.variable @near : !w compensation of @s
// expected-error @below {{is not one elementwise op}}
func.func private @update(!w) -> (!w, !w)
pipeline.task @s.U update of @s(%t) {
  %lr = pipeline.hyperparameter "lr" : f32
  %0 = pipeline.read @w : !w
  %w, %v = func.call @update(%0) : (!w) -> (!w, !w)
  pipeline.write %w to @w : !w
  %n = pipeline.predict %w, %v, %lr steps(1.5) : !w, f32
  pipeline.write %n to @near : !w
}

// -----

!w = tensor<3x5xf32>
module {
module @replay {
  pipeline.stage @s
  pipeline.variable @w : !w parameter of @s
  pipeline.variable @near : !w compensation of @s
  func.func private @update(!w) -> (!w, !w)
  pipeline.task @s.U update of @s(%t) {
    %lr = pipeline.hyperparameter "lr" : f32
    %0 = pipeline.read @w : !w
    // expected-error @below {{calls @update, which is no function}}
    %w, %v = func.call @update(%0) : (!w) -> (!w, !w)
    pipeline.write %w to @w : !w
    %n = pipeline.predict %w, %v, %lr steps(1.5) : !w, f32
    pipeline.write %n to @near : !w
  }
}
}
