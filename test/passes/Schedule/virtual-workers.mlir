// RUN: penstock-opt %s --split-input-file --pipeline-virtual-workers --verify-diagnostics | FileCheck %s

// Two workers of one stage, one wave apart: the second has the first one's
// functions, and variables and channels of its own. Sources and sinks go round;
// what counts microbatches counts those of the run, and rates count waves.

// CHECK: pipeline.training {{.*}}method<hetpipe, distance = 1, wave = 3, workers = 2>
// CHECK-DAG: pipeline.stage @s0
// CHECK-DAG: pipeline.stage @vw1.s0 worker(1)
// CHECK-DAG: pipeline.variable @w : tensor<3x7xf32> parameter of @s0
// CHECK-DAG: pipeline.variable @vw1.w : tensor<3x7xf32> parameter of @vw1.s0
// CHECK-DAG: pipeline.variable @vw1.w.global : tensor<3x7xf32> compensation of @vw1.s0 {pipeline.parameter = @vw1.w}
// CHECK-DAG: pipeline.weight_stash @w.wave depth(2)
// CHECK-DAG: pipeline.channel @x : [tensor<3x7xf32>] source(input "x") {pipeline.turn = array<i64: 0, 2>}
// CHECK-DAG: pipeline.channel @vw1.x : [tensor<3x7xf32>] source(input "x") {pipeline.turn = array<i64: 1, 2>}
// CHECK-DAG: pipeline.channel @w.wave.0.1 : [tensor<3x7xf32>] queue own
// CHECK-DAG: pipeline.channel @w.wave.1.0 : [tensor<3x7xf32>] queue own
// CHECK-NOT: pipeline.task @vw1.s0.E

// CHECK-LABEL: pipeline.task @vw1.s0.F forward of @vw1.s0(%k)
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[TURN:.*]] = arith.muli %k, %[[TWO]]
// CHECK: %[[ALL:.*]] = arith.addi %[[TURN]], %[[ONE]]
// CHECK: pipeline.take @vw1.x
// CHECK: call @forward(%{{.*}}, %{{.*}}, %[[ALL]])

// CHECK-LABEL: pipeline.task @vw1.s0.U update of @vw1.s0(%t)
// CHECK: %[[WAVE:.*]] = arith.divui %t,
// CHECK: call @lr(%{{.*}}, %[[WAVE]])

// CHECK-LABEL: pipeline.task @s0.P push of @s0(%t)
// CHECK: %[[NOW:.*]] = pipeline.read @w : tensor<3x7xf32>
// CHECK: %[[BEFORE:.*]] = pipeline.read @w lag(3)
// CHECK: %[[KEPT:.*]] = func.call @push.3x7(%[[NOW]], %[[BEFORE]])
// CHECK: %[[SENT:.*]] = func.call @push.3x7(%[[NOW]], %[[BEFORE]])
// CHECK: pipeline.write %[[KEPT]] to @w.wave
// CHECK: pipeline.put %[[SENT]] to @w.wave.0.1

// CHECK-LABEL: pipeline.task @vw1.s0.S fold of @vw1.s0(%t)
// CHECK: %[[LATER:.*]] = pipeline.later_waves distance(1)
// CHECK: %[[COUNT:.*]] = arith.sitofp
// CHECK: %[[OTHER:.*]] = pipeline.take @w.wave.0.1
// CHECK: %[[OWN:.*]] = pipeline.read @vw1.w.wave lag(1)
// CHECK: %[[NEXT:.*]] = pipeline.read @vw1.w.wave lag(0)
// CHECK: %[[GLOBAL:.*]] = pipeline.read @vw1.w.global : tensor<3x7xf32>
// CHECK: func.call @fold.3x7(%[[OTHER]], %[[OWN]], %[[NEXT]], %[[GLOBAL]], %[[COUNT]])
// CHECK: pipeline.write %{{.*}} to @vw1.w :
// CHECK: pipeline.write %{{.*}} to @vw1.w.global :
pipeline.training optimizer<sgd> method<hetpipe, workers = 2, distance = 1, wave = 3>
pipeline.stage @s0
pipeline.variable @w : tensor<3x7xf32> parameter of @s0
pipeline.variable @w.grad : tensor<3x7xf32> gradient of @s0 {pipeline.parameter = @w}
pipeline.channel @x : [tensor<3x7xf32>] source(input "x")
pipeline.channel @r : [tensor<3x7xf32>]
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<3x7xf32>
  %w = pipeline.read @w : tensor<3x7xf32>
  %l, %r = func.call @forward(%x, %w, %k) : (tensor<3x7xf32>, tensor<3x7xf32>, index) -> (tensor<f32>, tensor<3x7xf32>)
  pipeline.put %l to @loss : tensor<f32>
  pipeline.put %r to @r : tensor<3x7xf32>
}
pipeline.task @s0.E evaluate of @s0(%k) {
  %x = pipeline.take @x : tensor<3x7xf32>
  %w = pipeline.read @w : tensor<3x7xf32>
  %l, %r = func.call @forward(%x, %w, %k) : (tensor<3x7xf32>, tensor<3x7xf32>, index) -> (tensor<f32>, tensor<3x7xf32>)
  pipeline.put %l to @loss : tensor<f32>
}
pipeline.task @s0.B backward of @s0(%k) {
  %r = pipeline.take @r : tensor<3x7xf32>
  %g = func.call @back(%r) : (tensor<3x7xf32>) -> tensor<3x7xf32>
  pipeline.write %g to @w.grad : tensor<3x7xf32>
}
pipeline.task @s0.U update of @s0(%t) {
  %lr = pipeline.hyperparameter "lr" default(1.0e-02) : f32
  %rate = func.call @lr(%lr, %t) : (f32, index) -> f32
  %w = pipeline.read @w : tensor<3x7xf32>
  %g = pipeline.read @w.grad : tensor<3x7xf32>
  %n = func.call @step(%w, %g, %rate) : (tensor<3x7xf32>, tensor<3x7xf32>, f32) -> tensor<3x7xf32>
  pipeline.write %n to @w : tensor<3x7xf32>
}
func.func private @forward(tensor<3x7xf32>, tensor<3x7xf32>, index) -> (tensor<f32>, tensor<3x7xf32>)
func.func private @back(tensor<3x7xf32>) -> tensor<3x7xf32>
func.func private @lr(f32, index) -> f32 attributes {pipeline.rate}
func.func private @step(tensor<3x7xf32>, tensor<3x7xf32>, f32) -> tensor<3x7xf32>

// -----

// One worker exchanges nothing; its waves are as long as its line.

// CHECK: method<hetpipe, distance = 2, wave = 1, workers = 1>
// CHECK: pipeline.stage @s0
// CHECK-NOT: worker
// CHECK-NOT: push
pipeline.training optimizer<sgd> method<hetpipe, workers = 1, distance = 2>
pipeline.stage @s0
pipeline.variable @w : tensor<3xf32> parameter of @s0

// -----

// Running statistics are each worker's own, in no wave.

// CHECK: method<hetpipe, wave = 1, workers = 2>
// CHECK: pipeline.variable @mean : tensor<3xf32> statistic of @s0
// CHECK-NOT: wave
// CHECK: pipeline.variable @vw1.mean : tensor<3xf32> statistic of @vw1.s0
// CHECK-NOT: wave
pipeline.training optimizer<sgd> method<hetpipe, workers = 2>
pipeline.stage @s0
pipeline.variable @mean : tensor<3xf32> statistic of @s0

// -----

// A line that is cut for itself has a module. Of its functions, one is known.

// CHECK: method<hetpipe, wave = 2, workers = 2>
// CHECK-NOT: module
// CHECK-DAG: pipeline.stage @vw1.s1 worker(1)
// CHECK-DAG: pipeline.variable @vw1.w : tensor<3xf32> parameter of @vw1.s1
// CHECK-LABEL: pipeline.task @vw1.s1.U update of @vw1.s1
// CHECK: call @step(
// CHECK: call @vw1.other(
// CHECK: pipeline.write %{{.*}} to @vw1.w :
// CHECK-LABEL: pipeline.task @vw1.s1.P push of @vw1.s1
// CHECK: pipeline.put %{{.*}} to @w.wave.1.0
// CHECK-LABEL: pipeline.task @vw1.s1.S fold of @vw1.s1
// CHECK: pipeline.take @w.wave.0.1
// CHECK: func.func private @step(
// CHECK-NOT: @vw1.step
// CHECK: func.func private @other(tensor<3xf32>)
// CHECK: func.func private @vw1.other(tensor<3xf32>, f32)
pipeline.training optimizer<sgd> method<hetpipe, workers = 2>
pipeline.stage @s0
pipeline.variable @w : tensor<3xf32> parameter of @s0
pipeline.task @s0.U update of @s0(%t) {
  %w = pipeline.read @w : tensor<3xf32>
  %n = func.call @step(%w) : (tensor<3xf32>) -> tensor<3xf32>
  %o = func.call @other(%n) : (tensor<3xf32>) -> tensor<3xf32>
  pipeline.write %o to @w : tensor<3xf32>
}
func.func private @step(tensor<3xf32>) -> tensor<3xf32>
func.func private @other(tensor<3xf32>) -> tensor<3xf32>
module {
  pipeline.stage @s0
  pipeline.stage @s1
  pipeline.variable @w : tensor<3xf32> parameter of @s1
  pipeline.task @s1.U update of @s1(%t) {
    %rate = pipeline.hyperparameter "lr" default(1.0e-02) : f32
    %w = pipeline.read @w : tensor<3xf32>
    %n = func.call @step(%w) : (tensor<3xf32>) -> tensor<3xf32>
    %o = func.call @other(%n, %rate) : (tensor<3xf32>, f32) -> tensor<3xf32>
    pipeline.write %o to @w : tensor<3xf32>
  }
  func.func private @step(tensor<3xf32>) -> tensor<3xf32>
  func.func private @other(tensor<3xf32>, f32) -> tensor<3xf32>
}

// -----

pipeline.training optimizer<sgd> method<hetpipe, workers = 2>
pipeline.stage @s0
pipeline.variable @w : tensor<3xf32> parameter of @s0
pipeline.variable @v : tensor<3xf32> parameter of @s0
// expected-error @+1 {{hetpipe does not sum over stages}}
pipeline.group @g members [[@w], [@v]]

// -----

// expected-error @+1 {{has lines of stages for 2 workers, and the method has 3}}
module {
  pipeline.training optimizer<sgd> method<hetpipe, workers = 3>
  pipeline.stage @s0
  module {
    pipeline.stage @s0
  }
}
