// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=3 --lower-training-to-schedule --pipeline-verify-schedule | FileCheck %s
// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=3 --lower-training-to-schedule=replay=0 | FileCheck %s --check-prefix=WITHOUT

// The same tasks and lags on one device, one microbatch at a time; functions are
// declared, and evaluation is left out.
// CHECK:      module @replay {
// CHECK:        pipeline.stage @s0 devices [0]
// CHECK-NEXT:   pipeline.stage @s1 devices [0]
// CHECK:        @labels : {{.*}} slots(2)
// CHECK:        @h2 : [tensor<5x13xf32>] slots(1){{$}}
// CHECK:        @s0.residuals : {{.*}} slots(1)
// CHECK:        pipeline.task @s0.B
// CHECK:          pipeline.read @fc2 lag(0)
// CHECK-NOT:    pipeline.task @s0.E
// CHECK:        func.func private @s0.forward({{.*}}) -> (tensor<5x13xf32>, tensor<5x11xf32>) attributes {pipeline.signature = {{.*}}}{{$}}
// CHECK:        pipeline.schedule @train microbatches(3) {
// CHECK-NEXT:     pipeline.order 0 {
// CHECK-NEXT:       pipeline.repeat microbatches {
// CHECK-NEXT:         pipeline.recv @x ahead(1)
// CHECK-NEXT:         pipeline.run @s0.F
// CHECK-NEXT:         pipeline.recv @labels ahead(1)
// CHECK-NEXT:         pipeline.run @s1.F
// CHECK-NEXT:         pipeline.send @loss
// CHECK-NEXT:         pipeline.run @s1.B
// CHECK-NEXT:         pipeline.run @s0.B
// CHECK-NEXT:         pipeline.run @s0.U every(3)
// CHECK-NEXT:         pipeline.run @s1.U every(3)

// WITHOUT-NOT: module @replay
