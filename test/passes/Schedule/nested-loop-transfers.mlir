// RUN: penstock-opt %s --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule | FileCheck %s

// A loop within a loop over microbatches has no period of its own: its transfers
// are placed by time, and the result is proved.

// CHECK-LABEL: pipeline.order 0
// CHECK-COUNT-2: pipeline.recv @x
// CHECK:         pipeline.run @a.F
// CHECK-NEXT:    pipeline.send @h
// CHECK-NEXT:    pipeline.run @a.F
// CHECK-NEXT:    pipeline.send @h
// CHECK-LABEL: pipeline.order 1
// CHECK-COUNT-2: pipeline.recv @h
// CHECK-NEXT:    pipeline.run @b.F
// CHECK-NEXT:    pipeline.send @y
// CHECK-NEXT:    pipeline.run @b.F
// CHECK-NEXT:    pipeline.send @y
!t = tensor<3xf32>
pipeline.stage @a devices [0]
pipeline.stage @b devices [1]
pipeline.channel @x : [!t] source(input "x")
pipeline.channel @y : [!t] sink(output "y")
pipeline.channel @h : [!t]
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
  pipeline.put %x to @h : !t
}
pipeline.task @b.F forward of @b(%k) {
  %h = pipeline.take @h : !t
  pipeline.put %h to @y : !t
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.repeat times 1 { pipeline.run @a.F } } } }
  pipeline.order 1 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.run @b.F } } }
}
