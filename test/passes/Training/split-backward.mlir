// The last stage splits; the first has no input cotangent and stays whole.
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --pipeline-differentiate --pipeline-split-backward | FileCheck %s

// CHECK: pipeline.channel @s1.weight_residuals : [tensor<5x13xf32>, tensor<5x3xf32>]
// CHECK-LABEL: pipeline.task @s0.B backward of @s0
// CHECK-LABEL: pipeline.task @s1.I input_grad of @s1
// CHECK: %[[R:.*]]:3 = pipeline.take @s1.residuals
// CHECK: %[[W:.*]] = pipeline.read @fc3 :
// CHECK: %[[D:.*]]:2 = func.call @s1.input_grad(%[[R]]#1, %[[R]]#2, %[[W]])
// CHECK: pipeline.put %[[D]]#0 to @dh2
// CHECK: pipeline.put %[[R]]#0, %[[D]]#1 to @s1.weight_residuals
// CHECK-LABEL: pipeline.task @s1.W weight_grad of @s1
// CHECK: %[[S:.*]]:2 = pipeline.take @s1.weight_residuals
// CHECK: %[[G:.*]] = pipeline.read @fc3.grad
// CHECK: %[[N:.*]] = func.call @s1.weight_grad(%[[S]]#0, %[[S]]#1, %[[G]])
// CHECK: pipeline.write %[[N]] to @fc3.grad
// CHECK-NOT: @s1.backward
// CHECK-LABEL: func.func private @s1.weight_grad(
// CHECK-SAME: {pipeline.into = 0 : i64}
// CHECK-NOT: tensor.empty
// CHECK: linalg.contract
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @s1.input_grad(
// CHECK: nn.cross_entropy_grad
// CHECK: linalg.contract
// CHECK: return
