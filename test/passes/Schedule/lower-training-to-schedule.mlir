// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=8 --lower-training-to-schedule | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=3 --lower-training-to-schedule=schedule=gpipe | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=1 --lower-training-to-schedule=devices=2 | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=5 --lower-training-to-schedule=devices=3 | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=4 --lower-training-to-schedule='devices=1 schedule=gpipe' | penstock-opt --pipeline-verify-schedule | FileCheck %s
// RUN: %expect-error --any-lines "for the --schedule option: schedule 'zigzag' is not known" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --lower-training-to-schedule=schedule=zigzag

// On one device nothing is sent but losses and counts.
// CHECK:     @h2 : [tensor<5x13xf32>] slots(4){{$}}
// CHECK-NOT: pipeline.send @h2
// CHECK:     predicted_bubble(0.000000e+00)
