// Evaluation: the same functions and channels, and counts of right predictions.
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-derive-evaluate | FileCheck %s
// RUN: penstock-opt %s --pipeline-derive-evaluate | FileCheck %s --check-prefix=MERGED
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training=infer --pipeline-derive-evaluate | FileCheck %s --check-prefix=INFER
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training=infer --pipeline-derive-evaluate --pipeline-verify=level=training -o /dev/null

// Without training nothing is left of the forward, and nothing is counted.
// INFER-NOT: @correct
// INFER-NOT: forward of
// INFER-NOT: @s0.forward
// INFER: pipeline.task @s0.E evaluate of @s0
// INFER-NOT: @s1.forward

// CHECK: pipeline.channel @correct : [tensor<i64>] sink(correct)
// CHECK: pipeline.channel @count : [tensor<i64>] sink(count)
// CHECK-LABEL: pipeline.task @s0.E evaluate of @s0
// CHECK: func.call @s0.evaluate
// CHECK: pipeline.put %{{.*}} to @h2
// CHECK-LABEL: pipeline.task @s1.E evaluate of @s1
// CHECK: %[[R:.*]]:3 = func.call @s1.evaluate
// CHECK: pipeline.put %[[R]]#0 to @loss
// CHECK: pipeline.put %[[R]]#1 to @correct
// CHECK: pipeline.put %[[R]]#2 to @count

// The prediction is the first index of the largest logit: two reductions that
// lanes and threads can share.
// CHECK-LABEL: func.func private @s1.evaluate
// CHECK: %[[Z:.*]] = linalg.contract
// CHECK: arith.constant 0xFF800000 : f32
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[Z]]
// CHECK: arith.maxnumf
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[Z]],
// CHECK: linalg.index 1
// CHECK: arith.cmpf oeq
// CHECK: arith.minsi
// CHECK: linalg.generic {{.*}}["reduction"]}
// CHECK: arith.cmpi eq

// Stages with equal functions share one; the loss is no cross-entropy, so
// there is nothing to count.
pipeline.stage @s0
pipeline.stage @s1
pipeline.channel @x : [tensor<f32>] source(input "x")
pipeline.channel @h : [tensor<f32>]
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<f32>
  %h = func.call @s0.forward(%x) : (tensor<f32>) -> tensor<f32>
  pipeline.put %h to @h : tensor<f32>
}
pipeline.task @s1.F forward of @s1(%k) {
  %h = pipeline.take @h : tensor<f32>
  %l = func.call @s1.forward(%h) : (tensor<f32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
#scalar = affine_map<() -> ()>
func.func private @s0.forward(%x: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %y = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
      ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}
func.func private @s1.forward(%x: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %y = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
      ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}
// MERGED-NOT: @correct
// MERGED-LABEL: pipeline.task @s0.E
// MERGED: call @s0.evaluate
// MERGED-LABEL: pipeline.task @s1.E
// MERGED: call @s0.evaluate
// MERGED-NOT: @s1.evaluate
