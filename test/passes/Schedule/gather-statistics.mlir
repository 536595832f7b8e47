// RUN: penstock-opt %s --split-input-file --pipeline-set-training=microbatches=6 --pipeline-gather-statistics --verify-diagnostics | FileCheck %s

// What a microbatch moves the statistic by goes to its backward, which puts it
// into a row; the update moves the statistic.
// CHECK: pipeline.channel @mean.seen : [tensor<3xf32>]
// CHECK: pipeline.variable @mean : tensor<3xf32> statistic of @s
// CHECK: pipeline.variable @mean.rows : tensor<6x3xf32> gradient of @s {pipeline.parameter = @mean}
// CHECK: pipeline.task @s.F
// CHECK-NOT: @mean :
// CHECK: %[[F:.*]]:2 = func.call @forward(%{{.*}}, %{{.*}}) : (tensor<3xf32>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>)
// CHECK: pipeline.put %[[F]]#0 to @y
// CHECK: pipeline.put %[[F]]#1 to @mean.seen
// CHECK: pipeline.task @s.B
// CHECK: %[[V:.*]] = pipeline.take @mean.seen
// CHECK: %[[R:.*]] = pipeline.read @mean.rows
// CHECK: %[[K:.*]] = arith.remui %k, %c6
// CHECK: %[[N:.*]] = func.call @note(%[[V]], %[[R]], %[[K]]) : (tensor<3xf32>, tensor<6x3xf32>, index) -> tensor<6x3xf32>
// CHECK: pipeline.write %[[N]] to @mean.rows
// CHECK: pipeline.task @s.U
// CHECK: %[[B:.*]]:2 = func.call @mean.move(%{{.*}}, %{{.*}}) : (tensor<3xf32>, tensor<6x3xf32>) -> (tensor<3xf32>, tensor<6x3xf32>)
// CHECK: pipeline.write %[[B]]#0 to @mean
// CHECK: pipeline.write %[[B]]#1 to @mean.rows
// CHECK: func.func private @forward(%arg0: tensor<3xf32>, %arg1: tensor<f32> {pipeline.into = 0 : i64}) -> (tensor<f32>, tensor<3xf32>)
// CHECK: %[[S:.*]] = arith.addf %arg0, %arg0
// CHECK-NEXT: return %arg1, %[[S]]
// CHECK: func.func private @mean.move(%arg0: tensor<3xf32> {pipeline.into = 0 : i64}, %arg1: tensor<6x3xf32> {pipeline.into = 1 : i64})
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%arg1 : {{.*}}) outs(%arg0 :
// CHECK: ^bb0(%[[NEW:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK: arith.mulf %[[OLD]], %{{.*}}
// CHECK: arith.addf %{{.*}}, %[[NEW]]
// CHECK: func.func private @note(%arg0: tensor<3xf32>, %arg1: tensor<6x3xf32> {pipeline.into = 0 : i64}, %arg2: index)
// CHECK: %[[W:.*]] = tensor.insert_slice %arg0 into %arg1[%arg2, 0] [1, 3] [1, 1]
// CHECK-NEXT: return %[[W]]
#id = affine_map<(d0) -> (d0)>
pipeline.stage @s devices [0, 1]
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.channel @z : [tensor<f32>] source(input "z")
pipeline.channel @y : [tensor<f32>] sink(output "y")
pipeline.variable @mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  %z = pipeline.take @z : tensor<f32>
  %m = pipeline.read @mean : tensor<3xf32>
  %n:2 = func.call @forward(%x, %m, %z) : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<f32>)
  pipeline.put %n#1 to @y : tensor<f32>
  pipeline.write %n#0 to @mean : tensor<3xf32>
}
pipeline.task @s.B backward of @s(%k) {
}
pipeline.task @s.U update of @s(%t) {
}
func.func private @forward(%x: tensor<3xf32>, %m: tensor<3xf32> {pipeline.into = 0 : i64}, %z: tensor<f32> {pipeline.into = 1 : i64}) -> (tensor<3xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<3xf32>
  %s = arith.addf %x, %x : tensor<3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%m, %s : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %c = arith.constant 0.5 : f32
    %a = arith.mulf %old, %c : f32
    %b = arith.addf %a, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %n, %z : tensor<3xf32>, tensor<f32>
}

// -----

// Where the backward is in halves, the one that makes gradients; what it takes
// of the forward anyway is no further result; a statistic that moves twice has
// two rows per microbatch.
// CHECK: pipeline.channel @mean.seen : [tensor<3xf32>, tensor<3xf32>]
// CHECK: pipeline.variable @mean.rows : tensor<12x3xf32>
// CHECK: pipeline.task @s.F
// CHECK: %[[F:.*]]:2 = func.call @twice(%{{.*}}) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
// CHECK: pipeline.put %[[F]]#0 to @r
// CHECK: pipeline.put %[[F]]#0, %[[F]]#1 to @mean.seen
// CHECK: pipeline.task @s.I
// CHECK-NOT: @mean
// CHECK: pipeline.task @s.W
// CHECK: pipeline.take @mean.seen
// CHECK: func.call @note
// CHECK: func.func private @twice(%arg0: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
// CHECK: func.func private @note(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<12x3xf32> {pipeline.into = 0 : i64}, %arg3: index)
// CHECK: %[[ROW:.*]] = arith.muli %arg3, %c2
// CHECK: tensor.insert_slice %arg0 into %arg2[%[[ROW]], 0]
// CHECK: %[[NEXT:.*]] = arith.addi %[[ROW]], %c1
// CHECK: tensor.insert_slice %arg1 into %{{.*}}[%[[NEXT]], 0]
#id = affine_map<(d0) -> (d0)>
pipeline.stage @s devices [0, 1]
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.channel @r : [tensor<3xf32>]
pipeline.variable @mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  %m = pipeline.read @mean : tensor<3xf32>
  %n:2 = func.call @twice(%x, %m) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  pipeline.put %n#0 to @r : tensor<3xf32>
  pipeline.write %n#1 to @mean : tensor<3xf32>
}
pipeline.task @s.I input_grad of @s(%k) {
}
pipeline.task @s.W weight_grad of @s(%k) {
  %r = pipeline.take @r : tensor<3xf32>
}
pipeline.task @s.U update of @s(%t) {
}
func.func private @twice(%x: tensor<3xf32>, %m: tensor<3xf32> {pipeline.into = 1 : i64}) -> (tensor<3xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %s = arith.addf %x, %x : tensor<3xf32>
  %t = arith.mulf %x, %x : tensor<3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%m, %s : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %b = arith.addf %old, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  %o = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%n, %t : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %b = arith.addf %old, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %s, %o : tensor<3xf32>, tensor<3xf32>
}

// -----

// A stage where nothing is trained gets the tasks that do it, once.
// CHECK: pipeline.stage @still devices [0, 1]
// CHECK: pipeline.task @still.F forward of @still
// CHECK: pipeline.put %{{.*}} to @mean.seen
// CHECK: pipeline.put %{{.*}} to @var.seen
// CHECK: pipeline.task @still.B backward of @still(%[[K:.*]]) {
// CHECK: pipeline.take @mean.seen
// CHECK: pipeline.write %{{.*}} to @mean.rows
// CHECK: pipeline.take @var.seen
// CHECK: pipeline.write %{{.*}} to @var.rows
// CHECK: pipeline.task @still.U update of @still(%{{.*}}) {
// CHECK: func.call @mean.move
// CHECK: func.call @var.move
// CHECK-NOT: pipeline.task
// CHECK: func.func private @both
#id = affine_map<(d0) -> (d0)>
pipeline.stage @still devices [0, 1]
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.variable @mean : tensor<3xf32> statistic of @still
pipeline.variable @var : tensor<3xf32> statistic of @still
pipeline.task @still.F forward of @still(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  %m = pipeline.read @mean : tensor<3xf32>
  %v = pipeline.read @var : tensor<3xf32>
  %n:2 = func.call @both(%x, %m, %v) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  pipeline.write %n#0 to @mean : tensor<3xf32>
  pipeline.write %n#1 to @var : tensor<3xf32>
}
func.func private @both(%x: tensor<3xf32>, %m: tensor<3xf32> {pipeline.into = 0 : i64}, %v: tensor<3xf32> {pipeline.into = 1 : i64}) -> (tensor<3xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %s = arith.addf %x, %x : tensor<3xf32>
  %t = arith.mulf %x, %x : tensor<3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%m, %s : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %b = arith.addf %old, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  %o = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%v, %t : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %b = arith.addf %old, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %n, %o : tensor<3xf32>, tensor<3xf32>
}

// -----

// One replica sees all microbatches.
// CHECK: pipeline.stage @one
// CHECK-NOT: rows
#id = affine_map<(d0) -> (d0)>
pipeline.stage @one devices [0]
pipeline.variable @mean : tensor<3xf32> statistic of @one
pipeline.task @one.F forward of @one(%k) {
  %m = pipeline.read @mean : tensor<3xf32>
  %n = func.call @move(%m) : (tensor<3xf32>) -> tensor<3xf32>
  pipeline.write %n to @mean : tensor<3xf32>
}
func.func private @move(tensor<3xf32>) -> tensor<3xf32>

// -----

// How it moves must be known.
pipeline.stage @s devices [0, 1]
// expected-error @+1 {{statistic 'mean' follows all microbatches, and stage @s has replicas, which see but some each: use one replica there, or --batch-norm=frozen}}
pipeline.variable @mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %m = pipeline.read @mean : tensor<3xf32>
  %n = func.call @move(%m) : (tensor<3xf32>) -> tensor<3xf32>
  pipeline.write %n to @mean : tensor<3xf32>
}
pipeline.task @s.B backward of @s(%k) {
}
pipeline.task @s.U update of @s(%t) {
}
func.func private @move(tensor<3xf32>) -> tensor<3xf32>

// -----

// A value that something else needs is no sum of rows.
#id = affine_map<(d0) -> (d0)>
pipeline.stage @s devices [0, 1]
pipeline.channel @y : [tensor<3xf32>] sink(output "y")
// expected-error @+1 {{statistic 'mean' follows all microbatches}}
pipeline.variable @mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %m = pipeline.read @mean : tensor<3xf32>
  %n:2 = func.call @forward(%m) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  pipeline.put %n#1 to @y : tensor<3xf32>
  pipeline.write %n#0 to @mean : tensor<3xf32>
}
pipeline.task @s.B backward of @s(%k) {
}
pipeline.task @s.U update of @s(%t) {
}
func.func private @forward(%m: tensor<3xf32> {pipeline.into = 0 : i64}) -> (tensor<3xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %c = arith.constant dense<1.0> : tensor<3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%m, %c : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %b = arith.addf %old, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %n, %n : tensor<3xf32>, tensor<3xf32>
}
