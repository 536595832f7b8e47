// Batch normalization in its two meanings. In training the microbatch's
// statistics count, and the running ones are results that the task writes into
// the variables they were read from; evaluation reads these and writes nothing.
// RUN: penstock-opt %s --pipeline-derive-evaluate --pipeline-expand-training | FileCheck %s
// RUN: penstock-opt %s --pipeline-set-training=batch-norm=frozen --pipeline-derive-evaluate --pipeline-expand-training | FileCheck %s --check-prefix=FROZEN
// RUN: penstock-opt %s --pipeline-set-training --pipeline-derive-evaluate --pipeline-expand-training --pipeline-differentiate --pipeline-insert-optimizer --pipeline-verify | FileCheck %s --check-prefix=BACK
// RUN: %expect-error --any-lines "for the --batch-norm option: Cannot find option named 'often'!" -- penstock-opt %s --pipeline-set-training=batch-norm=often

pipeline.stage @s0
pipeline.channel @x : [tensor<5x7x11xf32>] source(input "x")
pipeline.channel @loss : [tensor<f32>] sink(loss)
// CHECK: pipeline.variable @scale : tensor<7xf32> parameter
// CHECK: pipeline.variable @mean : tensor<7xf32> statistic
// CHECK: pipeline.variable @variance : tensor<7xf32> parameter of @s0 {frozen}
// FROZEN: pipeline.variable @mean : tensor<7xf32> parameter
pipeline.variable @scale : tensor<7xf32> parameter of @s0
pipeline.variable @mean : tensor<7xf32> parameter of @s0
pipeline.variable @variance : tensor<7xf32> parameter of @s0 {frozen}

// A frozen variable stays; two ops that share a statistic move it one after the
// other.
// CHECK-LABEL: pipeline.task @s0.F
// CHECK: %[[MEAN:.*]] = pipeline.read @mean
// CHECK: %[[R:.*]]:2 = func.call @s0.forward
// CHECK: pipeline.put %[[R]]#0 to @loss
// CHECK: pipeline.write %[[R]]#1 to @mean
// CHECK-NOT: pipeline.write
// FROZEN-LABEL: pipeline.task @s0.F
// FROZEN-NOT: pipeline.write
// FROZEN: func.func private @s0.forward
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<5x7x11xf32>
  %s = pipeline.read @scale : tensor<7xf32>
  %m = pipeline.read @mean : tensor<7xf32>
  %v = pipeline.read @variance : tensor<7xf32>
  %l = func.call @s0.forward(%x, %s, %m, %v) : (tensor<5x7x11xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
// CHECK-LABEL: pipeline.task @s0.E
// CHECK: func.call @s0.evaluate
// CHECK-NOT: pipeline.write

// CHECK-LABEL: func.func private @s0.forward(
// CHECK-SAME: %[[X:[^:]*]]: tensor<5x7x11xf32>, %[[S:[^:]*]]: tensor<7xf32>, %[[M:[^:]*]]: tensor<7xf32> {pipeline.into = 1 : i64}, %{{[^:]*}}: tensor<7xf32>)
// CHECK: %[[N:[^ ,]*]], %[[MU:[^ ,]*]], %{{[^ ,]*}} = nn.normalize %[[X]] dims [0, 2] epsilon(1.000000e-05)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[N]], %[[S]], %[[S]] :
// CHECK: %[[M1:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[MU]] :
// CHECK: %{{[^ ,]*}}, %[[MU2:[^ ,]*]], %{{[^ ,]*}} = nn.normalize
// CHECK: %[[M2:.*]] = linalg.generic {{.*}} ins(%[[M1]], %[[MU2]]
// CHECK: return %{{.*}}, %[[M2]]
// CHECK-LABEL: func.func private @s0.evaluate
// CHECK-NOT: nn.normalize
// CHECK: math.sqrt

// What the backward keeps is operands and statistics, from which it normalizes
// again, for each of its ops.
// BACK: pipeline.channel @s0.residuals : [tensor<5x7x11xf32>, tensor<7xf32>, tensor<7xf32>, tensor<5x7x11xf32>, tensor<7xf32>, tensor<7xf32>]
// BACK-LABEL: func.func private @s0.backward
// BACK-SAME: %[[X:[^:]*]]: tensor<5x7x11xf32>, %[[M1:[^:]*]]: tensor<7xf32>, %[[V1:[^:]*]]: tensor<7xf32>, %[[Y:[^:]*]]: tensor<5x7x11xf32>, %[[M2:[^:]*]]: tensor<7xf32>, %[[V2:[^:]*]]: tensor<7xf32>,
// BACK: nn.standardize %[[Y]] mean(%[[M2]]) variance(%[[V2]]) dims [0, 2]
// BACK: %[[N2:.*]] = nn.standardize %[[Y]] mean(%[[M2]]) variance(%[[V2]]) dims [0, 2]
// BACK: nn.normalize_grad %{{.*}}, %[[N2]], %[[V2]]
// BACK: nn.standardize %[[X]] mean(%[[M1]]) variance(%[[V1]]) dims [0, 2]
// BACK-NOT: nn.standardize
// BACK-NOT: nn.normalize_grad
func.func private @s0.forward(%x: tensor<5x7x11xf32>, %s: tensor<7xf32>, %m: tensor<7xf32>, %v: tensor<7xf32>) -> tensor<f32> {
  %y, %m1, %v1 = nn.batch_norm %x, %s, %s, %m, %v momentum(0.9) epsilon(1.0e-5) : tensor<5x7x11xf32>, tensor<7xf32>
  %z, %m2, %v2 = nn.batch_norm %y, %s, %s, %m, %v momentum(0.9) epsilon(1.0e-5) : tensor<5x7x11xf32>, tensor<7xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %l = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> ()>], iterator_types = ["reduction", "reduction", "reduction"]}
      ins(%z : tensor<5x7x11xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
