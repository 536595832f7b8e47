// RUN: penstock-opt %s --pipeline-assign-targets --split-input-file --verify-diagnostics

pipeline.device 0 target(#cpu.target<>)
// expected-error @below {{runs on device 1, which has no target: run pipeline-declare-devices first}}
pipeline.stage @s0 devices [0, 1]
