// A task of kind norm per stage; a sum over the stages; every update has the
// factor.
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training='microbatches=2 optimizer=sgd clip-grad-norm=0.5' --lower-stages-to-training | FileCheck %s --check-prefix=GLOBAL
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training='microbatches=2 optimizer=sgd clip-grad-norm=0.5 clip-scope=stage' --lower-stages-to-training | FileCheck %s --check-prefix=STAGE
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training='microbatches=2 optimizer=sgd' --lower-stages-to-training | FileCheck %s --check-prefix=NONE
// RUN: %expect-error --any-lines "error: the bound of a norm is a positive f64, got -1.000000e+00 : f64" -- penstock-opt %S/inputs/mlp.mlir --pipeline-set-training=clip-grad-norm=-1

// GLOBAL-DAG: pipeline.variable @s0.squares : tensor<3xf64> scalar of @s0
// GLOBAL-DAG: pipeline.variable @s1.squares : tensor<3xf64> scalar of @s1
// GLOBAL-DAG: pipeline.group @clip_squares members {{\[\[}}@s0.squares], [@s1.squares]] {pipeline.once}
// GLOBAL:      pipeline.task @s0.G norm of @s0
// GLOBAL-NEXT:   %[[G1:.*]] = pipeline.read @fc1.grad
// GLOBAL-NEXT:   %[[G2:.*]] = pipeline.read @fc2.grad
// GLOBAL-NEXT:   %[[N:.*]] = func.call @s0.norm(%[[G1]], %[[G2]])
// GLOBAL-NEXT:   pipeline.write %[[N]] to @s0.squares
// GLOBAL:      pipeline.task @s0.U update of @s0
// GLOBAL-NEXT:   %[[T:.*]] = pipeline.read @s0.squares
// GLOBAL-NEXT:   %[[C:.*]] = func.call @clip_factor(%[[T]]) : (tensor<3xf64>) -> tensor<f32>
// GLOBAL:        func.call @sgd.7x11(%{{.*}}, %{{.*}}, %[[C]], %{{.*}}) : (tensor<7x11xf32>, tensor<7x11xf32>, tensor<f32>, f32)
// GLOBAL:      pipeline.task @s1.G norm of @s1
// GLOBAL-NEXT:   pipeline.read @fc3.grad
// GLOBAL-NEXT:   %[[F:.*]] = func.call @s1.norm
// GLOBAL-NEXT:   pipeline.write %[[F]] to @s1.squares
// GLOBAL:        func.call @clip_factor

// The gradient is scaled before all else.
// GLOBAL-LABEL: func.func private @sgd.7x11
// GLOBAL-SAME: %[[ARGUMENT:[^: ]*]]: tensor<f32>, %{{[^:]*}}: f32) ->
// GLOBAL: linalg.generic {{.*}} ins(%{{.*}}, %[[ARGUMENT]] : tensor<7x11xf32>, tensor<f32>)
// GLOBAL-NEXT: ^bb0(%{{.*}}: f32, %[[FACTOR:.*]]: f32, %{{.*}}: f32, %[[G:.*]]: f32):
// GLOBAL-NEXT: %[[SCALED:.*]] = arith.mulf %[[G]], %[[FACTOR]]
// GLOBAL-NEXT: arith.mulf %{{.*}}, %[[SCALED]]

// In double precision, one gradient after the other.
// GLOBAL-LABEL: func.func private @s0.norm
// GLOBAL: tensor.collapse_shape %{{.*}} : tensor<7x11xf32> into tensor<77xf32>
// GLOBAL: tensor.extract_slice %{{.*}}[0] [1] [1]
// GLOBAL: arith.extf
// GLOBAL: tensor.extract_slice %{{.*}}[1] [1] [1]
// What the other stage has is zero here.
// GLOBAL-LABEL: func.func private @s1.norm
// GLOBAL: tensor.extract_slice %{{.*}}[2] [1] [1]
// min(1, X / (norm + 1e-6)), in the order of the parameters.
// GLOBAL-LABEL: func.func private @clip_factor
// GLOBAL: linalg.generic
// GLOBAL: tensor.extract
// GLOBAL: math.sqrt
// GLOBAL: arith.divf
// GLOBAL: arith.minimumf

// No stage waits for another.
// STAGE-NOT: pipeline.group
// STAGE-DAG: pipeline.variable @s0.squares : tensor<2xf64> scalar of @s0
// STAGE-DAG: pipeline.variable @s1.squares : tensor<1xf64> scalar of @s1
// STAGE:      pipeline.task @s0.G norm of @s0
// STAGE:        pipeline.write %{{.*}} to @s0.squares
// STAGE:      pipeline.task @s1.G norm of @s1
// STAGE:        pipeline.write %{{.*}} to @s1.squares

// NONE-NOT: norm of
