// RUN: penstock-opt %s --split-input-file --pipeline-gather-statistics=microbatches=6 --verify-diagnostics | FileCheck %s

// What a microbatch moves the statistic by goes into its row; the update moves it.
// CHECK: pipeline.variable @mean : tensor<3xf32> statistic of @s
// CHECK: pipeline.variable @mean.rows : tensor<6x3xf32> gradient of @s {pipeline.parameter = @mean}
// CHECK: pipeline.task @s.F
// CHECK-NOT: @mean :
// CHECK: %[[K:.*]] = arith.remui %k, %c6
// CHECK: %[[N:.*]] = func.call @forward(%{{.*}}, %{{.*}}, %[[K]]) : (tensor<3xf32>, tensor<6x3xf32>, index) -> tensor<6x3xf32>
// CHECK: pipeline.write %[[N]] to @mean.rows
// CHECK: pipeline.task @s.U
// CHECK: %[[B:.*]]:2 = func.call @mean.move(%{{.*}}, %{{.*}}) : (tensor<3xf32>, tensor<6x3xf32>) -> (tensor<3xf32>, tensor<6x3xf32>)
// CHECK: pipeline.write %[[B]]#0 to @mean
// CHECK: pipeline.write %[[B]]#1 to @mean.rows
// CHECK: func.func private @forward(%arg0: tensor<3xf32>, %arg1: tensor<6x3xf32> {pipeline.into = 0 : i64}, %arg2: index)
// CHECK: %[[R:.*]] = tensor.insert_slice %arg0 into %arg1[%arg2, 0] [1, 3] [1, 1]
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @mean.move(%arg0: tensor<3xf32> {pipeline.into = 0 : i64}, %arg1: tensor<6x3xf32> {pipeline.into = 1 : i64})
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%arg1 : {{.*}}) outs(%arg0 :
// CHECK: ^bb0(%[[NEW:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK: arith.mulf %[[OLD]], %{{.*}}
// CHECK: arith.addf %{{.*}}, %[[NEW]]
#id = affine_map<(d0) -> (d0)>
pipeline.stage @s devices [0, 1]
pipeline.channel @x : [tensor<3xf32>] source("x")
pipeline.variable @mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  %m = pipeline.read @mean : tensor<3xf32>
  %n = func.call @forward(%x, %m) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  pipeline.write %n to @mean : tensor<3xf32>
}
pipeline.task @s.U update of @s(%t) {
}
func.func private @forward(%x: tensor<3xf32>, %m: tensor<3xf32> {pipeline.into = 0 : i64}) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%m, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%old: f32, %new: f32, %out: f32):
    %c = arith.constant 0.5 : f32
    %a = arith.mulf %old, %c : f32
    %b = arith.addf %a, %new : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %n : tensor<3xf32>
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
pipeline.task @s.U update of @s(%t) {
}
func.func private @move(tensor<3xf32>) -> tensor<3xf32>

// -----

// A value that something else needs is no sum of rows.
#id = affine_map<(d0) -> (d0)>
pipeline.stage @s devices [0, 1]
pipeline.channel @y : [tensor<3xf32>] sink("y")
// expected-error @+1 {{statistic 'mean' follows all microbatches}}
pipeline.variable @mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %m = pipeline.read @mean : tensor<3xf32>
  %n:2 = func.call @forward(%m) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  pipeline.put %n#1 to @y : tensor<3xf32>
  pipeline.write %n#0 to @mean : tensor<3xf32>
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
