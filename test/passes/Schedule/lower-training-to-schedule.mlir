// RUN: penstock-opt %S/inputs/four-stages.mlir --lower-training-to-schedule='microbatches=8' | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/four-stages.mlir --lower-training-to-schedule='microbatches=3 schedule=gpipe' | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/four-stages.mlir --lower-training-to-schedule='microbatches=1 devices=2' | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/four-stages.mlir --lower-training-to-schedule='microbatches=5 devices=3' | penstock-opt --pipeline-verify-schedule -o /dev/null
// RUN: penstock-opt %S/inputs/two-stages.mlir --lower-training-to-schedule='microbatches=4 devices=1 schedule=gpipe' | penstock-opt --pipeline-verify-schedule | FileCheck %s
// RUN: not penstock-opt %S/inputs/two-stages.mlir --lower-training-to-schedule='schedule=zigzag' 2>&1 | FileCheck %s --check-prefix=NAME

// On one device nothing is sent but losses and counts.
// CHECK:     @h2 : [tensor<5x13xf32>] slots(4){{$}}
// CHECK-NOT: pipeline.send @h2
// CHECK:     predicted_bubble(0.000000e+00)
// NAME: error: schedule 'zigzag' is not known
