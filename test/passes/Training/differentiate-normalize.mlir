// What the backward of a normalization keeps.
// RUN: penstock-opt %s --split-input-file --pipeline-set-training --pipeline-differentiate | FileCheck %s

#row = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>

// Read element by element alone: x, mean and variance, and a loop of its own
// for each that reads the normalized x.
// CHECK: pipeline.channel @s0.residuals : [tensor<5x7xf32>, tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>]
// CHECK-LABEL: func.func private @s0.backward(
// CHECK-SAME: %{{[^:]*}}: tensor<5x7xf32>, %[[H:[^:]*]]: tensor<5x7xf32>, %[[M:[^:]*]]: tensor<5xf32>, %[[V:[^:]*]]: tensor<5xf32>,
// CHECK: %[[A:.*]] = nn.standardize %[[H]] mean(%[[M]]) variance(%[[V]]) dims [1] epsilon(1.000000e-05)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[A]] :
// CHECK: %[[B:.*]] = nn.standardize %[[H]] mean(%[[M]]) variance(%[[V]])
// CHECK: nn.normalize_grad %{{.*}}, %[[B]], %[[V]]
pipeline.stage @s0
pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w : tensor<7xf32> parameter of @s0
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<5x7xf32>
  %w = pipeline.read @w : tensor<7xf32>
  %l = func.call @s0.forward(%x, %w) : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @s0.forward(%x: tensor<5x7xf32>, %w: tensor<7xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<5x7xf32>
  %h = linalg.generic {indexing_maps = [#both, #row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<5x7xf32>, tensor<7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x7xf32>
  %y, %m, %v = nn.normalize %h dims [1] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<5xf32>
  %z = linalg.generic {indexing_maps = [#both, #row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%y, %w : tensor<5x7xf32>, tensor<7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x7xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %l = linalg.generic {indexing_maps = [#both, #none], iterator_types = ["reduction", "reduction"]}
      ins(%z : tensor<5x7xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// -----

#both = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>

// A product wants the normalized x itself: that is kept, and x is not.
// CHECK: pipeline.channel @s0.residuals : [tensor<5x3xf32>, tensor<5x7xf32>, tensor<5xf32>]
// CHECK-LABEL: func.func private @s0.backward(
// CHECK-SAME: %{{[^:]*}}: tensor<5x3xf32>, %[[N:[^:]*]]: tensor<5x7xf32>, %[[V:[^:]*]]: tensor<5xf32>,
// CHECK-NOT: nn.standardize
// CHECK: linalg.contract {{.*}} ins(%[[N]],
// CHECK-NOT: nn.standardize
// CHECK: nn.normalize_grad %{{.*}}, %[[N]], %[[V]]
pipeline.stage @s0
pipeline.channel @x : [tensor<5x3xf32>] source(input "x")
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w1 : tensor<3x7xf32> parameter of @s0
pipeline.variable @w2 : tensor<7x3xf32> parameter of @s0
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<5x3xf32>
  %w1 = pipeline.read @w1 : tensor<3x7xf32>
  %w2 = pipeline.read @w2 : tensor<7x3xf32>
  %l = func.call @s0.forward(%x, %w1, %w2) : (tensor<5x3xf32>, tensor<3x7xf32>, tensor<7x3xf32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @s0.forward(%x: tensor<5x3xf32>, %w1: tensor<3x7xf32>, %w2: tensor<7x3xf32>) -> tensor<f32> {
  %none = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<5x7xf32>
  %z1 = linalg.fill ins(%none : f32) outs(%e1 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %h = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%x, %w1 : tensor<5x3xf32>, tensor<3x7xf32>) outs(%z1 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %y, %m, %v = nn.normalize %h dims [1] epsilon(1.0e-5) : tensor<5x7xf32> -> tensor<5xf32>
  %e2 = tensor.empty() : tensor<5x3xf32>
  %z2 = linalg.fill ins(%none : f32) outs(%e2 : tensor<5x3xf32>) -> tensor<5x3xf32>
  %z = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%y, %w2 : tensor<5x7xf32>, tensor<7x3xf32>) outs(%z2 : tensor<5x3xf32>) -> tensor<5x3xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %l = linalg.generic {indexing_maps = [#both, #none], iterator_types = ["reduction", "reduction"]}
      ins(%z : tensor<5x3xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
