// The running example: cotangents flow back, gradients accumulate.
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training=microbatches=4 --pipeline-differentiate | FileCheck %s
// RUN: penstock-opt %s --split-input-file --pipeline-set-training --pipeline-differentiate --verify-diagnostics | FileCheck %s --check-prefix=OTHER

// CHECK: pipeline.channel @s1.residuals : [tensor<5x13xf32>, tensor<5xi64>, tensor<5x3xf32>]
// CHECK: pipeline.channel @dh2 : [tensor<5x13xf32>]
// CHECK: pipeline.channel @s0.residuals : [tensor<5x7xf32>, tensor<5x11xf32>, tensor<5x13xf32>]
// CHECK: pipeline.variable @fc1.grad : tensor<7x11xf32> gradient of @s0 {pipeline.parameter = @fc1}

// What is output and residual is returned once and put twice.
// CHECK-LABEL: pipeline.task @s0.F
// CHECK: %[[X:.*]] = pipeline.take @x
// CHECK: %[[H:.*]]:2 = func.call @s0.forward
// CHECK: pipeline.put %[[H]]#0 to @h2
// CHECK: pipeline.put %[[X]], %[[H]]#1, %[[H]]#0 to @s0.residuals

// No gradient flows into x, so that fc1 is not read.
// CHECK-LABEL: pipeline.task @s0.B backward of @s0
// CHECK: %[[DH:.*]] = pipeline.take @dh2
// CHECK: %[[R:.*]]:3 = pipeline.take @s0.residuals
// CHECK-NEXT: %[[W2:.*]] = pipeline.read @fc2 :
// CHECK-NEXT: %[[G1:.*]] = pipeline.read @fc1.grad
// CHECK-NEXT: %[[G2:.*]] = pipeline.read @fc2.grad
// CHECK: %[[N:.*]]:2 = func.call @s0.backward(%[[DH]], %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[W2]], %[[G1]], %[[G2]])
// CHECK: pipeline.write %[[N]]#0 to @fc1.grad
// CHECK: pipeline.write %[[N]]#1 to @fc2.grad

// The derivative of relu reads its output; dW lands in the accumulator.
// CHECK-LABEL: func.func private @s0.backward(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<5x13xf32>, %[[ARG1:[^:]*]]: tensor<5x7xf32>, %[[ARG2:[^:]*]]: tensor<5x11xf32>, %[[ARG3:[^:]*]]: tensor<5x13xf32>, %[[ARG4:[^:]*]]: tensor<11x13xf32>
// CHECK-SAME: %[[DW1:[^:]*]]: tensor<7x11xf32> {pipeline.into = 0 : i64}
// CHECK-SAME: %[[DW2:[^:]*]]: tensor<11x13xf32> {pipeline.into = 1 : i64}
// CHECK: %[[D2:.*]] = linalg.generic {{.*}} ins(%[[ARG0]], %[[ARG3]]
// CHECK: arith.cmpf ogt
// CHECK: arith.select
// CHECK: %[[N2:.*]] = linalg.contract {{.*}} ins(%[[ARG2]], %[[D2]] {{.*}} outs(%[[DW2]]
// CHECK: %[[DH1:.*]] = linalg.contract {{.*}} ins(%[[D2]], %[[ARG4]]
// CHECK: %[[D1:.*]] = linalg.generic {{.*}} ins(%[[DH1]], %[[ARG2]]
// CHECK: %[[N1:.*]] = linalg.contract {{.*}} ins(%[[ARG1]], %[[D1]] {{.*}} outs(%[[DW1]]
// CHECK: return %[[N1]], %[[N2]]

// The seed is 1/M.
// CHECK-LABEL: func.func private @s1.backward(
// CHECK: %[[SEED:.*]] = arith.constant dense<2.500000e-01> : tensor<f32>
// CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %[[SEED]]

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

// A value with two consuming stages: its cotangent goes from the last of them
// to the other, which adds to it, and then to the producer, whose derivative
// needs nothing but what arrives. Stage s1 has no parameter and passes through.
// A frozen parameter has no gradient, and one that nothing uses is not trained.
pipeline.stage @s0
pipeline.stage @s1
pipeline.stage @s2
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.channel @a : [tensor<3xf32>]
pipeline.channel @b : [tensor<3xf32>]
pipeline.channel @c : [tensor<3xf32>]
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w : tensor<3xf32> parameter of @s0
// expected-remark @below {{no gradient reaches parameter @unused: it is not trained}}
pipeline.variable @unused : tensor<3xf32> parameter of @s0
pipeline.variable @frozen : tensor<3xf32> parameter of @s2 {frozen}
// expected-remark @below {{stage @s0 keeps 12 bytes of residuals per microbatch}}
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  %w = pipeline.read @w : tensor<3xf32>
  %u = pipeline.read @unused : tensor<3xf32>
  %y = func.call @s0.forward(%x, %w, %u) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  pipeline.put %y to @a : tensor<3xf32>
  pipeline.put %y to @b : tensor<3xf32>
}
// expected-remark @below {{stage @s1 keeps 12 bytes of residuals per microbatch}}
pipeline.task @s1.F forward of @s1(%k) {
  %a = pipeline.take @a : tensor<3xf32>
  %y = func.call @s1.forward(%a) : (tensor<3xf32>) -> tensor<3xf32>
  pipeline.put %y to @c : tensor<3xf32>
}
// expected-remark @below {{stage @s2 keeps 24 bytes of residuals per microbatch}}
pipeline.task @s2.F forward of @s2(%k) {
  %b = pipeline.take @b : tensor<3xf32>
  %c = pipeline.take @c : tensor<3xf32>
  %f = pipeline.read @frozen : tensor<3xf32>
  %l = func.call @s2.forward(%b, %c, %f) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @s0.forward(%x: tensor<3xf32>, %w: tensor<3xf32>, %u: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %w : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func private @s1.forward(%a: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = math.exp %p : f32
    linalg.yield %r : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func private @s2.forward(%b: tensor<3xf32>, %c: tensor<3xf32>, %f: tensor<3xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id, #id, #id, #none], iterator_types = ["reduction"]}
      ins(%b, %c, %f : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) outs(%i : tensor<f32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.mulf %m, %s : f32
    %r = arith.addf %o, %n : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
// OTHER: pipeline.variable @w.grad
// OTHER-NOT: pipeline.variable @{{(unused|frozen)}}.grad
// OTHER-LABEL: pipeline.task @s0.B backward of @s0
// OTHER: pipeline.take @da
// OTHER: pipeline.write %{{.*}} to @w.grad
// OTHER-LABEL: pipeline.task @s1.B backward of @s1
// OTHER: %[[DC:.*]] = pipeline.take @dc
// OTHER: %[[DB:.*]] = pipeline.take @db
// OTHER: %[[R:.*]] = pipeline.take @s1.residuals
// OTHER: %[[DA:.*]] = func.call @s1.backward(%[[DC]], %[[DB]], %[[R]])
// OTHER: pipeline.put %[[DA]] to @da
// OTHER-LABEL: pipeline.task @s2.B backward of @s2
// OTHER: pipeline.put %{{.*}} to @db
// OTHER: pipeline.put %{{.*}} to @dc

// -----

// A stage that only feeds the loss from data has no backward.
pipeline.stage @s0
pipeline.channel @x : [tensor<f32>] source(input "x")
pipeline.channel @loss : [tensor<f32>] sink(loss)
// expected-remark @below {{stage @s0 keeps 0 bytes of residuals per microbatch}}
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<f32>
  %l = func.call @s0.forward(%x) : (tensor<f32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @s0.forward(%x: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %y = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}
// OTHER-LABEL: func.func private @s2.backward
// OTHER: // -----
// OTHER-NOT: backward
