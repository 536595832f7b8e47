// What methods that predict or compensate weights add: variables that the update
// writes, and that forward or backward read instead of the weights.

// DEFINE: %{training} =
// DEFINE: %{schedule} =
// DEFINE: %{lower} = penstock-opt %S/../Training/inputs/mlp.mlir \
// DEFINE:   --pipeline-set-training='optimizer=%{training} microbatches=2' --lower-stages-to-training \
// DEFINE:   --pipeline-set-training='%{schedule}' --lower-training-to-schedule=replay=false

// REDEFINE: %{training} = sgd:momentum=0.9
// REDEFINE: %{schedule} = method=pipemare microbatches=1
// RUN: %{lower} | FileCheck %s --check-prefix=MARE
// REDEFINE: %{schedule} = method=spectrain lr-schedule=constant:warmup-steps=4 microbatches=1
// RUN: %{lower} | FileCheck %s --check-prefix=SPEC
// REDEFINE: %{training} = adamw
// REDEFINE: %{schedule} = method=pipeoptim microbatches=2
// RUN: %{lower} | FileCheck %s --check-prefix=OPTIM
// REDEFINE: %{schedule} = method=xpipe microbatches=2
// RUN: %{lower} | FileCheck %s --check-prefix=XPIPE
// REDEFINE: %{training} = sgd
// REDEFINE: %{schedule} = method=pipeoptim microbatches=1
// RUN: not %{lower} 2>&1 | FileCheck %s --check-prefix=PLAIN
// REDEFINE: %{training} = adam
// REDEFINE: %{schedule} = method=spectrain microbatches=1
// RUN: not %{lower} 2>&1 | FileCheck %s --check-prefix=ADAM
// An update that lacks what a prediction follows from.
// RUN: penstock-opt %S/../Training/inputs/mlp.mlir --pipeline-set-training=optimizer=sgd:momentum=0.9 --lower-stages-to-training -o %t.training
// RUN: sed 's/hyperparameter "lr"/hyperparameter "rate"/' %t.training > %t.rate
// RUN: %expect-error --any-lines "error: 'pipeline.task' op has no learning rate to predict with" -- penstock-opt %t.rate --pipeline-set-training='optimizer=sgd:momentum=0.9 method=spectrain microbatches=1' --lower-training-to-schedule=replay=false
// RUN: %expect-error --any-lines "error: 'pipeline.task' op has not the state of adam for @fc1" -- penstock-opt %t.training --pipeline-set-training='optimizer=adam method=pipeoptim microbatches=1' --lower-training-to-schedule=replay=false

// The first weight is read by the forward only, which needs no compensation. The
// average starts at zero, the compensated weight as the weight.
// MARE-NOT: @fc1.delta
// MARE:     pipeline.variable @fc2.compensated : tensor<11x13xf32> compensation of @s0 init <"mlp.onnx", 447, 572> {pipeline.kind = "compensated",
// MARE:     pipeline.variable @fc2.delta : tensor<11x13xf32> compensation of @s0 {pipeline.kind = "delta",
// MARE-NOT: @fc3.delta
// MARE:     pipeline.task @s0.F
// MARE:       pipeline.read @fc2 lag(1)
// MARE:     pipeline.task @s0.B
// MARE:       pipeline.read @fc2.compensated lag(0)
// MARE:     pipeline.task @s0.E
// MARE:       pipeline.read @fc2 :
// MARE:     pipeline.task @s0.U
// MARE:       %[[D:.*]] = pipeline.read @fc2.delta
// MARE:       %[[R:.*]]:4 = func.call @sgd.11x13.delta(%{{.*}}, %{{.*}}, %{{.*}}, %[[D]], %{{.*}})
// MARE:       pipeline.write %[[R]]#3 to @fc2.delta
// MARE:       %[[U:.*]] = pipeline.compensate %[[R]]#0, %[[R]]#3 tau(1.000000e+00)
// MARE:       pipeline.write %[[U]] to @fc2.compensated
// delta' = gamma delta + (1 - gamma) (w' - w), gamma = D at tau = 1.
// MARE-LABEL: func.func private @sgd.11x13.delta(
// MARE-SAME:    {pipeline.into = 3 : i64}
// MARE:       ^bb0(%[[W:[^:]*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %[[DELTA:.*]]: f32):
// MARE:         %[[W1:.*]] = arith.subf %[[W]],
// MARE:         %[[CHANGE:.*]] = arith.subf %[[W1]], %[[W]]
// MARE:         %[[GAMMA:.*]] = arith.constant 1.353530e-01
// MARE:         %[[KEPT:.*]] = arith.mulf %[[GAMMA]], %[[DELTA]]
// MARE:         %[[REST:.*]] = arith.constant 0.864646
// MARE:         %[[NEW:.*]] = arith.mulf %[[REST]], %[[CHANGE]]
// MARE:         arith.addf %[[KEPT]], %[[NEW]]

// One step ahead in the forward of stage 0, none elsewhere. The rate is the one
// of the update to come.
// SPEC:     pipeline.variable @fc1.forward : tensor<7x11xf32> compensation
// SPEC-NOT: .backward
// SPEC-NOT: @fc3.forward
// SPEC:     pipeline.task @s0.F
// SPEC:       pipeline.read @fc1.forward lag(1)
// SPEC:       pipeline.read @fc2.forward lag(1)
// SPEC:     pipeline.task @s0.B
// SPEC:       pipeline.read @fc2 lag(0)
// SPEC:     pipeline.task @s0.U
// SPEC:       %[[LR:.*]] = pipeline.hyperparameter "lr"
// SPEC:       %[[NEXT:.*]] = func.call @s0.forward_rates(%[[LR]], %t) : (f32, index) -> f32
// SPEC:       %[[N:.*]]:3 = func.call @sgd.7x11
// SPEC:       pipeline.predict %[[N]]#0, %[[N]]#2, %[[NEXT]] steps(1.000000e+00)
// SPEC-LABEL: func.func private @s0.forward_rates
// SPEC:         %[[ONE:.*]] = arith.constant 1.0
// SPEC:         %[[DONE:.*]] = arith.addf %{{.*}}, %[[ONE]]
// SPEC:         arith.constant 4.0

// Half an update, along a direction that is computed from the state.
// OPTIM:     pipeline.task @s0.U
// OPTIM:       %[[R:.*]]:3 = func.call @s0.forward_rates
// OPTIM:       %[[N:.*]]:4 = func.call @adamw.7x11
// OPTIM:       %[[D:.*]] = func.call @adamw.direction.7x11(%[[N]]#0, %[[N]]#2, %[[N]]#3, %[[R]]#1, %[[R]]#2)
// OPTIM:       pipeline.predict %[[N]]#0, %[[D]], %[[R]]#0 steps(5.000000e-01)
// OPTIM-LABEL: func.func private @adamw.direction.7x11
// OPTIM:         math.sqrt
// OPTIM:         arith.addf
// OPTIM:         %[[STEP:.*]] = arith.divf
// OPTIM:         %[[DECAY:.*]] = arith.mulf %{{.*}}, %in :
// OPTIM:         arith.addf %[[STEP]], %[[DECAY]]

// The whole minibatch reads what its first microbatch did: two versions.
// XPIPE:     pipeline.variable @fc1.forward
// XPIPE:     pipeline.weight_stash @fc1.forward depth(2)
// XPIPE-NOT: weight_stash @fc3
// XPIPE:     pipeline.task @s0.F
// XPIPE:       pipeline.read @fc1.forward lag(2)
// XPIPE:     pipeline.task @s1.F
// XPIPE:       pipeline.read @fc3.forward lag(0)

// PLAIN: error: {{.*}}pipeoptim predicts along the optimizer's direction, and sgd without momentum has none: use --optimizer=sgd:momentum=0.9, adam or adamw
// ADAM: error: {{.*}}spectrain predicts along SGD's momentum, which adam does not have: use --optimizer=sgd:momentum=0.9, or --method=pipeoptim
