// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training='method=naive microbatches=4' --pipeline-place='replicas=2,1' --pipeline-sum-replicas --pipeline-generate-schedule --pipeline-order-transfers | FileCheck %s
// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training='method=naive microbatches=130' --pipeline-place='replicas=2,1' --pipeline-sum-replicas --pipeline-generate-schedule --pipeline-order-transfers | FileCheck %s --check-prefix=LONG

// Stages of different width, which never drain: loops go round once per update,
// so that the one behind the replicas can receive from each of them in turn. A
// sum stands before the update that needs it, and nothing is received before it
// that is sent only after.
// CHECK:      pipeline.order 0 {
// CHECK-NEXT:   pipeline.repeat microbatches 2 {
// CHECK-NEXT:     pipeline.recv @x ahead(1)
// CHECK-NEXT:     pipeline.run @s0.F{{$}}
// CHECK-NEXT:     pipeline.send @h2{{$}}
// CHECK-NEXT:     pipeline.recv @dh2{{$}}
// CHECK-NEXT:     pipeline.run @s0.B{{$}}
// CHECK-NEXT:     pipeline.recv @x ahead(1)
// CHECK-NEXT:     pipeline.run @s0.F ahead(1)
// CHECK-NEXT:     pipeline.send @h2 ahead(1)
// CHECK-NEXT:     pipeline.recv @dh2 ahead(1)
// CHECK-NEXT:     pipeline.run @s0.B{{$}}
// CHECK-NEXT:     pipeline.all_reduce @s0.replicas{{$}}
// CHECK-NEXT:     pipeline.run @s0.U every(1)
// CHECK:      pipeline.order 2 {
// CHECK-NEXT:   pipeline.repeat microbatches 4 {
// CHECK-COUNT-4: pipeline.run @s1.F{{$}}
// CHECK:          pipeline.run @s1.U every(1)
// CHECK:      pipeline.schedule @evaluate
// CHECK:        pipeline.order 0
// CHECK-NEXT:     pipeline.repeat microbatches {

// An update of 130 is five turns of 26, the longest below 64.
// LONG:      pipeline.order 0 {
// LONG-NEXT:   pipeline.repeat microbatches 13 {
// LONG-COUNT-13: pipeline.run @s0.F
// LONG:          pipeline.all_reduce @s0.replicas every(5)
// LONG-NEXT:     pipeline.run @s0.U every(5)
// LONG:      pipeline.order 2 {
// LONG-NEXT:   pipeline.repeat microbatches 26 {
