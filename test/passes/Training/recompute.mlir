// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --pipeline-differentiate --pipeline-recompute=policy=full 2>%t.remarks | FileCheck %s --check-prefix=FULL
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --pipeline-differentiate --pipeline-recompute='policy=budget budgets=460,-1' 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --pipeline-differentiate --pipeline-recompute=policy=full --pipeline-split-backward --pipeline-verify | FileCheck %s --check-prefix=SPLIT
// RUN: %expect-error --any-lines "error: --recompute=(: parentheses not balanced" -- penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --pipeline-differentiate --pipeline-recompute='policy=matching nodes=('
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training --pipeline-differentiate --pipeline-recompute='policy=matching nodes=nothing' 2>&1 -o /dev/null | FileCheck %s --check-prefix=NOTHING
// RUN: %expect-error --any-lines "error: 'pipeline.task' op runs ops of the forward again, but method naive does not keep the weights that the forward saw" -- penstock-opt %S/inputs/mlp.mlir --pipeline-set-training=method=naive --lower-stages-to-training=recompute=full --lower-training-to-schedule=replay=false

// Only what the stage takes is stored; the backward runs the forward again, with
// the parameters that it then has to read.
// REMARK: remark: stage @s0 keeps 140 of 620 bytes of residuals per microbatch and runs 9 ops of the forward again
// FULL: pipeline.channel @s0.residuals : [tensor<5x7xf32>]
// FULL-LABEL: pipeline.task @s0.F
// FULL: %[[H:.*]] = func.call @s0.forward
// FULL-NEXT: pipeline.put %[[H]] to @h2
// FULL-NEXT: pipeline.put %{{.*}} to @s0.residuals : tensor<5x7xf32>
// FULL-LABEL: pipeline.task @s0.B
// FULL-DAG: %[[D:.*]] = pipeline.take @dh2
// FULL-DAG: %[[X:.*]] = pipeline.take @s0.residuals
// FULL-DAG: %[[W1:.*]] = pipeline.read @fc1 :
// FULL-DAG: %[[W2:.*]] = pipeline.read @fc2 :
// FULL-DAG: %[[G1:.*]] = pipeline.read @fc1.grad
// FULL-DAG: %[[G2:.*]] = pipeline.read @fc2.grad
// FULL: func.call @s0.backward(%[[D]], %[[X]], %[[W2]], %[[W1]], %[[G1]], %[[G2]])
// FULL: attributes {pipeline.recomputes}
// FULL-LABEL: func.func private @s0.backward
// FULL-SAME: tensor<7x11xf32> {pipeline.into = 0 : i64}, %{{.*}}: tensor<11x13xf32> {pipeline.into = 1 : i64}
// FULL-COUNT-5: linalg.contract
// FULL: return

// The cheapest that is enough: h1 by the first product, h2 stays.
// BUDGET: remark: stage @s0 keeps 400 of 620 bytes
// BUDGET: pipeline.channel @s0.residuals : [tensor<5x7xf32>, tensor<5x13xf32>]

// The first half of a split backward makes what both need.
// SPLIT-LABEL: pipeline.task @s1.I
// SPLIT: pipeline.take @s1.residuals : tensor<5x13xf32>, tensor<5xi64>
// SPLIT-LABEL: pipeline.task @s1.W
// SPLIT: pipeline.take @s1.weight_residuals : tensor<5x13xf32>, tensor<5x3xf32>

// NOTHING: warning: --recompute=nothing: no node of this name keeps anything for the backward that could be computed again
