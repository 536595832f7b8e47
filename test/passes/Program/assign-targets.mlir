// RUN: penstock-opt %s --pipeline-assign-targets --split-input-file | FileCheck %s

// A function that devices of two targets run becomes two; the second calls its
// own version of what it calls. The replay runs the functions of the program.

// CHECK: pipeline.task @s0.F
// CHECK: func.call @shared(
// CHECK: pipeline.task @s1.F
// CHECK: func.call @[[SECOND:shared_[0-9]+]](
// CHECK: func.call @own(
// CHECK: func.func private @inner(%{{.*}}: f32) -> f32 attributes {pipeline.target = #cpu.target<>}
// CHECK: func.func private @[[INNER:inner_[0-9]+]](%{{.*}}: f32) -> f32 attributes {pipeline.target = #cpu.target<threads(2)>}
// CHECK: func.func private @shared(%{{.*}}: f32) -> f32 attributes {pipeline.target = #cpu.target<>}
// CHECK-NEXT: call @inner(
// CHECK: func.func private @[[SECOND]](%{{.*}}: f32) -> f32 attributes {pipeline.target = #cpu.target<threads(2)>}
// CHECK-NEXT: call @[[INNER]](
// CHECK: func.func private @own(%{{.*}}: f32) -> f32 attributes {pipeline.target = #cpu.target<threads(2)>}
// CHECK: func.func private @unused(%{{.*}}: f32) -> f32 {
// CHECK: module @replay
// CHECK: func.call @shared(
// CHECK: func.call @[[SECOND]](
// CHECK-DAG: func.func private @shared(f32) -> f32{{$}}
// CHECK-DAG: func.func private @[[SECOND]](f32) -> f32{{$}}
pipeline.device 0 target(#cpu.target<>)
pipeline.device 1 target(#cpu.target<threads(2)>)
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.task @s0.F forward of @s0(%k) {
  %lr = pipeline.hyperparameter "lr" default(0.5) : f32
  %0 = func.call @shared(%lr) : (f32) -> f32
}
pipeline.task @s1.F forward of @s1(%k) {
  %lr = pipeline.hyperparameter "lr" default(0.5) : f32
  %0 = func.call @shared(%lr) : (f32) -> f32
  %1 = func.call @own(%0) : (f32) -> f32
}
func.func private @inner(%a: f32) -> f32 {
  return %a : f32
}
func.func private @shared(%a: f32) -> f32 {
  %0 = call @inner(%a) : (f32) -> f32
  return %0 : f32
}
func.func private @own(%a: f32) -> f32 {
  return %a : f32
}
func.func private @unused(%a: f32) -> f32 {
  return %a : f32
}
module @replay {
  pipeline.device 0 target(#cpu.target<threads(2)>)
  pipeline.stage @s0 devices [0]
  pipeline.stage @s1 devices [0]
  pipeline.task @s0.F forward of @s0(%k) {
    %lr = pipeline.hyperparameter "lr" default(0.5) : f32
    %0 = func.call @shared(%lr) : (f32) -> f32
  }
  pipeline.task @s1.F forward of @s1(%k) {
    %lr = pipeline.hyperparameter "lr" default(0.5) : f32
    %0 = func.call @shared(%lr) : (f32) -> f32
  }
  func.func private @shared(f32) -> f32
}
