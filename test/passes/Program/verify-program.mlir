// RUN: penstock-opt %S/lower-schedule.mlir --split-input-file \
// RUN:   --pipeline-lower-schedule --pipeline-plan-memory \
// RUN:   --pipeline-verify-program | FileCheck %s

// What pipeline-lower-schedule makes of valid schedules passes: a drained and
// an open loop, and a replay program.

// CHECK: func.func @train.1
// CHECK: func.func @open.0
// CHECK: func.func @evaluate.0
// CHECK: module @replay
