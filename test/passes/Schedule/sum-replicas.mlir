// RUN: penstock-opt %s --split-input-file --pipeline-sum-replicas --verify-diagnostics | FileCheck %s

// Gradients of a stage with replicas form a group, unless they are summed over
// stages already; one replica has nothing to sum.

// CHECK-DAG: pipeline.group @s0.replicas members {{\[\[}}@a.grad, @b.grad]]
// CHECK-DAG: pipeline.group @t.tied members {{\[\[}}@t.grad], [@t.s1.grad]]
// CHECK-NOT: pipeline.group @s1.replicas
pipeline.stage @s0 devices [0, 1]
pipeline.stage @s1 devices [2]
pipeline.variable @a : tensor<3x7xf32> parameter of @s0
pipeline.variable @b : tensor<5xf32> parameter of @s0
pipeline.variable @c : tensor<5xf32> parameter of @s1
pipeline.variable @t : tensor<5xf32> parameter of @s0
pipeline.variable @t.s1 : tensor<5xf32> parameter of @s1 {pipeline.parameter = @t}
pipeline.variable @a.grad : tensor<3x7xf32> gradient of @s0 {pipeline.parameter = @a}
pipeline.variable @b.grad : tensor<5xf32> gradient of @s0 {pipeline.parameter = @b}
pipeline.variable @c.grad : tensor<5xf32> gradient of @s1 {pipeline.parameter = @c}
pipeline.variable @t.grad : tensor<5xf32> gradient of @s0 {pipeline.parameter = @t}
pipeline.variable @t.s1.grad : tensor<5xf32> gradient of @s1 {pipeline.parameter = @t.s1}
pipeline.group @t.tied members [[@t.grad], [@t.s1.grad]]

// -----

// Each replica would have a statistic of its own.
pipeline.stage @s devices [0, 1]
// expected-error @+1 {{statistic 'bn.mean' follows all microbatches, and stage @s has replicas, which see but some each: use one replica there, or --batch-norm=frozen, or run pipeline-gather-statistics}}
pipeline.variable @bn.mean : tensor<3xf32> statistic of @s
pipeline.task @s.F forward of @s(%k) {
  %m = pipeline.read @bn.mean : tensor<3xf32>
  %n = func.call @move(%m) : (tensor<3xf32>) -> tensor<3xf32>
  pipeline.write %n to @bn.mean : tensor<3xf32>
}
func.func private @move(tensor<3xf32>) -> tensor<3xf32>
