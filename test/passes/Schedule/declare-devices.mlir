// RUN: penstock-opt %s --pipeline-declare-devices='targets="#cpu.target<threads(2)>"' | FileCheck %s
// RUN: penstock-opt %s --pipeline-declare-devices='targets="[#cpu.target<>, #cpu.target<threads(5)>, #cpu.target<threads(3)>]"' | FileCheck %s --check-prefix=LIST
// RUN: %expect-error --any-lines "error: pipeline-declare-devices: there are 2 targets for 3 devices; there is one for all, or one for each" -- penstock-opt %s --pipeline-declare-devices='targets="[#cpu.target<>, #cpu.target<>]"'
// RUN: %expect-error --any-lines "error: pipeline-declare-devices: there are 4 targets for 3 devices; there is one for all, or one for each" -- penstock-opt %s --pipeline-declare-devices='targets="[#cpu.target<>, #cpu.target<>, #cpu.target<>, #cpu.target<>]"'
// RUN: %expect-error --any-lines "error: pipeline-declare-devices: there is no target" -- penstock-opt %s --pipeline-declare-devices='targets="[]"'
// RUN: %expect-error --any-lines "error: pipeline-declare-devices: 1 : i64 is not the target of a device" -- penstock-opt %s --pipeline-declare-devices='targets="1 : i64"'

// What is declared stays. The replay has a device of its own.

// CHECK: pipeline.device 0 target(#cpu.target<threads(2)>)
// CHECK: pipeline.device 2 target(#cpu.target<threads(2)>)
// CHECK: pipeline.device 1 target(#cpu.target<threads(4)>)
// CHECK: module @replay
// CHECK: pipeline.device 0 target(#cpu.target<threads(2)>)
// LIST: pipeline.device 0 target(#cpu.target<>)
// LIST: pipeline.device 2 target(#cpu.target<threads(3)>)
// LIST: pipeline.device 1 target(#cpu.target<threads(4)>)
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [2, 1]
pipeline.device 1 target(#cpu.target<threads(4)>)
module @replay {
  pipeline.stage @s0 devices [0]
  pipeline.stage @s1 devices [0]
}
