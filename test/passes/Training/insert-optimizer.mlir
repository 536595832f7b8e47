// One update task per stage, one function per type of parameter.
// RUN: penstock-opt %S/inputs/mlp.mlir --pipeline-set-training="optimizer=sgd:lr=0.1 microbatches=2" --lower-stages-to-training | FileCheck %s --check-prefix=SGD
// RUN: penstock-opt %s --pipeline-set-training=optimizer=sgd:momentum=0.9,weight-decay=0.5,nesterov --pipeline-insert-optimizer | FileCheck %s --check-prefix=NESTEROV
// RUN: penstock-opt %s --pipeline-set-training=optimizer=sgd:momentum=0.9,dampening=momentum --pipeline-insert-optimizer | FileCheck %s --check-prefix=DAMPENED
// RUN: penstock-opt %s --pipeline-set-training=optimizer=adam:weight-decay=0.5 --pipeline-insert-optimizer | FileCheck %s --check-prefix=ADAM
// RUN: penstock-opt %s --pipeline-set-training=optimizer=adamw --pipeline-insert-optimizer | FileCheck %s --check-prefix=ADAMW
// RUN: penstock-opt %s --pipeline-set-training='optimizer=adam lr-schedule=poly:total-steps=9,warmup-steps=2' --pipeline-insert-optimizer | FileCheck %s --check-prefix=COURSE
// RUN: sed 's/\(variable @w : .* parameter of @s0\)/\1 {pipeline.rate_scale = 0.25 : f64, pipeline.no_decay}/' %s | penstock-opt - --pipeline-set-training=optimizer=adamw:weight-decay=0.5 --pipeline-insert-optimizer | FileCheck %s --check-prefix=GROUPS
// RUN: penstock-opt %s --pipeline-set-training=optimizer=sgd:momentum=0.9,ema=0.75 --pipeline-insert-optimizer | FileCheck %s --check-prefix=AVERAGE
// RUN: penstock-opt %s --pipeline-set-training=optimizer=adafactor:d=2,ema=0.75 --pipeline-insert-optimizer | FileCheck %s --check-prefix=FACTORED
// RUN: %expect-error --any-lines "for the --lr-schedule option: cosine needs total-steps, the update after which the rate stays: cosine:total-steps=1000" -- penstock-opt %s --pipeline-set-training=lr-schedule=cosine
// RUN: %expect-error --any-lines "for the --optimizer option: unknown optimizer 'sophia': known are sgd, adam, adamw, nadam, rmsprop, adagrad, lion, adafactor" -- penstock-opt %s --pipeline-set-training=optimizer=sophia
// RUN: %expect-error --any-lines "for the --optimizer option: adam has no option 'momentum': known are lr, weight-decay, beta1, beta2, eps" -- penstock-opt %s --pipeline-set-training=optimizer=adam:momentum=0.9
// RUN: %expect-error --any-lines "for the --optimizer option: sgd: nesterov needs momentum > 0 and dampening = 0, as in sgd:momentum=0.9,nesterov" -- penstock-opt %s --pipeline-set-training=optimizer=sgd:nesterov

// The gradient is zero afterwards.
// SGD-LABEL: pipeline.task @s0.U update of @s0(%t)
// SGD: %[[LR:.*]] = pipeline.hyperparameter "lr" default(1.000000e-01) : f32
// SGD: %[[W:.*]] = pipeline.read @fc1 :
// SGD: %[[G:.*]] = pipeline.read @fc1.grad
// SGD: %[[N:.*]]:2 = func.call @sgd.7x11(%[[W]], %[[G]], %[[LR]])
// SGD: pipeline.write %[[N]]#0 to @fc1 :
// SGD: pipeline.write %[[N]]#1 to @fc1.grad
// SGD: func.func private @sgd.7x11(%{{.*}}: tensor<7x11xf32>, %{{.*}}: tensor<7x11xf32> {pipeline.into = 1 : i64}, %{{.*}}: f32) -> (tensor<7x11xf32>, tensor<7x11xf32>)
// SGD: %[[STEP:.*]] = arith.mulf
// SGD: %[[NEW:.*]] = arith.subf %{{.*}}, %[[STEP]]
// SGD: %[[ZERO:.*]] = arith.constant 0.0
// SGD: linalg.yield %[[NEW]], %[[ZERO]]

// g' = g + decay w; v' = mu v + g'; w' = w - lr (g' + mu v')
// NESTEROV: pipeline.variable @w.momentum : tensor<3x5xf32> optimizer of @s0 {pipeline.kind = "momentum", pipeline.parameter = @w}
// NESTEROV: func.func private @sgd.3x5({{.*}}{pipeline.into = 1 : i64}, {{.*}}{pipeline.into = 2 : i64}, %[[LR:.*]]: f32)
// NESTEROV: ^bb0(%[[W:.*]]: f32, %{{.*}}: f32, %[[G:.*]]: f32, %[[V:.*]]: f32)
// NESTEROV: %[[DECAY:.*]] = arith.mulf %{{.*}}, %[[W]]
// NESTEROV: %[[G1:.*]] = arith.addf %[[G]], %[[DECAY]]
// NESTEROV: %[[MV:.*]] = arith.mulf %{{.*}}, %[[V]]
// NESTEROV: %[[V1:.*]] = arith.addf %[[MV]], %[[G1]]
// NESTEROV: %[[MV1:.*]] = arith.mulf %{{.*}}, %[[V1]]
// NESTEROV: %[[D:.*]] = arith.addf %[[G1]], %[[MV1]]
// NESTEROV: %[[S:.*]] = arith.mulf %[[LR]], %[[D]]
// NESTEROV: %[[W1:.*]] = arith.subf %[[W]], %[[S]]
// NESTEROV: linalg.yield %[[W1]], %{{.*}}, %[[V1]]

// A parameter with a rate of its own and no decay: its numbers come from the
// scaled rate, and its function keeps the weight as it is before the step.
// GROUPS: %[[LR:.*]] = pipeline.hyperparameter "lr"
// GROUPS: %[[OWN:.*]] = func.call @lr.scaled(%[[LR]]) : (f32) -> f32
// GROUPS: %[[R:.*]]:{{[0-9]}} = func.call @adamw.rates.no_decay(%[[OWN]], %t)
// GROUPS: func.call @adamw.3x5.no_decay(%{{.*}}, %[[R]]#0, %[[R]]#1
// GROUPS-LABEL: func.func private @lr.scaled
// GROUPS: arith.constant 2.500000e-01 : f64

// One more state: e' = e + (1 - decay) (w' - e).
// AVERAGE: pipeline.variable @w.ema : tensor<3x5xf32> compensation of @s0 {pipeline.kind = "ema", pipeline.parameter = @w}
// AVERAGE: %[[E:.*]] = pipeline.read @w.ema
// AVERAGE: %[[N:.*]]:4 = func.call @sgd.3x5(%{{.*}}, %{{.*}}, %{{.*}}, %[[E]], %{{.*}})
// AVERAGE: pipeline.write %[[N]]#3 to @w.ema
// AVERAGE-LABEL: func.func private @sgd.3x5
// AVERAGE-SAME: {pipeline.into = 3 : i64}
// AVERAGE: ^bb0({{.*}}, %[[OLD:[^:]*]]: f32):
// AVERAGE: %[[MOVED:.*]] = arith.subf
// AVERAGE: %[[FAR:.*]] = arith.subf %[[MOVED]], %[[OLD]]
// AVERAGE: %[[PART:.*]] = arith.constant 2.500000e-01
// AVERAGE: %[[STEP:.*]] = arith.mulf %[[PART]], %[[FAR]]
// AVERAGE: %[[NEXT:.*]] = arith.addf %[[OLD]], %[[STEP]]
// AVERAGE: linalg.yield %[[MOVED]], %{{.*}}, %{{.*}}, %[[NEXT]]

// The state of a matrix is a vector for its rows and one for its columns. The last
// loop alone writes the weight, and reads it.
// FACTORED-DAG: pipeline.variable @w.row_var : tensor<3xf32> optimizer of @s0 {pipeline.kind = "row_var", pipeline.parameter = @w}
// FACTORED-DAG: pipeline.variable @w.col_var : tensor<5xf32> optimizer of @s0 {pipeline.kind = "col_var", pipeline.parameter = @w}
// FACTORED: %[[N:.*]]:5 = func.call @adafactor.3x5
// FACTORED-DAG: pipeline.write %[[N]]#0 to @w :
// FACTORED-DAG: pipeline.write %[[N]]#2 to @w.row_var
// FACTORED-DAG: pipeline.write %[[N]]#4 to @w.ema
// FACTORED-LABEL: func.func private @adafactor.3x5
// FACTORED-SAME: %[[W:[^:]*]]: tensor<3x5xf32>, %[[G:[^:]*]]: tensor<3x5xf32> {pipeline.into = 1 : i64}, %[[R:[^:]*]]: tensor<3xf32> {pipeline.into = 2 : i64}, %[[C:[^:]*]]: tensor<5xf32> {pipeline.into = 3 : i64}, %{{.*}}: tensor<3x5xf32> {pipeline.into = 4 : i64}
// FACTORED: %[[ROWS:.*]] = linalg.generic {{.*}}iterator_types = ["parallel"]{{.*}} outs(%[[R]] :
// FACTORED: %[[COLUMNS:.*]] = linalg.generic {{.*}}iterator_types = ["parallel"]{{.*}} outs(%[[C]] :
// FACTORED: %[[LAST:.*]]:3 = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]{{.*}} ins(%[[W]], %[[ROWS]], %[[COLUMNS]],
// FACTORED: return %[[LAST]]#0, %[[LAST]]#1, %[[ROWS]], %[[COLUMNS]], %[[LAST]]#2

// The first buffer is the gradient itself.
// DAMPENED: %[[R:.*]]:2 = func.call @sgd.rates(%{{.*}}, %t) : (f32, index) -> (f32, f32)
// DAMPENED: func.call @sgd.3x5(%{{.*}}, %[[R]]#0, %[[R]]#1)
// DAMPENED-LABEL: func.func private @sgd.rates
// DAMPENED: %[[FIRST:.*]] = arith.cmpf oeq
// DAMPENED: arith.select %[[FIRST]]

// ADAM-DAG: pipeline.variable @w.m : tensor<3x5xf32> optimizer of @s0 {pipeline.kind = "m",
// ADAM-DAG: pipeline.variable @w.v : tensor<3x5xf32> optimizer of @s0 {pipeline.kind = "v",
// ADAM: pipeline.hyperparameter "lr" default(1.000000e-03)
// ADAM: %[[R:.*]]:2 = func.call @adam.rates
// ADAM: func.call @adam.3x5(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[R]]#0, %[[R]]#1)
// ADAM-LABEL: func.func private @adam.rates
// ADAM: math.powf {{.*}} : f64
// ADAM: math.powf {{.*}} : f64
// Both corrections of the bias are in the numbers: an element takes one
// division.
// ADAM: %[[CORRECTION:.*]] = math.sqrt {{.*}} : f64
// ADAM: arith.mulf %{{.*}}, %[[CORRECTION]] : f64
// ADAM: arith.divf {{.*}} : f64
// ADAM: arith.mulf %{{.*}}, %[[CORRECTION]] : f64
// ADAM: arith.truncf
// ADAM-LABEL: func.func private @adam.3x5
// ADAM: %[[ROOT:.*]] = math.sqrt
// ADAM: %[[DENOM:.*]] = arith.addf %[[ROOT]]
// ADAM: %[[STEP:.*]] = arith.divf %{{.*}}, %[[DENOM]]
// ADAM: arith.subf %{{.*}}, %[[STEP]]

// Decay apart from the gradient: w (1 - lr decay).
// ADAMW: %[[R:.*]]:3 = func.call @adamw.rates
// ADAMW-LABEL: func.func private @adamw.3x5(
// ADAMW-SAME: %[[KEEP:[^ ]*]]: f32) ->
// ADAMW: ^bb0(%[[W:[^:]*]]: f32
// ADAMW: %[[KEPT:.*]] = arith.mulf %[[W]], %[[KEEP]]
// ADAMW: arith.subf %[[KEPT]]

// The optimizer's numbers follow from the rate of the update.
// COURSE: %[[BASE:.*]] = pipeline.hyperparameter "lr"
// COURSE: %[[RATE:.*]] = func.call @lr(%[[BASE]], %t) : (f32, index) -> f32
// COURSE: func.call @adam.rates(%[[RATE]], %t)
// COURSE-LABEL: func.func private @lr(%{{.*}}: f32, %{{.*}}: index) -> f32 attributes {pipeline.rate, pipeline.signature = #pipeline.signature<("lr", "counter") -> ("lr")>}
// COURSE: math.powf
// COURSE: arith.cmpf olt
// COURSE: arith.select

pipeline.stage @s0
pipeline.variable @w : tensor<3x5xf32> parameter of @s0
pipeline.variable @u : tensor<3x5xf32> parameter of @s0
pipeline.variable @w.grad : tensor<3x5xf32> gradient of @s0 {pipeline.parameter = @w}
