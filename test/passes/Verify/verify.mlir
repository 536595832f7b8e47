// RUN: penstock-opt %S/../../dialects/Pipeline/round-trip.mlir -o /dev/null --split-input-file
// RUN: not penstock-opt %s --pipeline-verify=level=nothing 2>&1 | FileCheck %s

// CHECK: pipeline-verify: unknown level 'nothing'; levels are onnx, graph, stages, training, schedule, program
