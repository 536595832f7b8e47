// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=4 --pipeline-place --pipeline-generate-schedule --pipeline-order-transfers | FileCheck %s --check-prefix=TWO
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=4 --pipeline-place --pipeline-generate-schedule --pipeline-order-transfers | FileCheck %s --check-prefix=FOUR
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=4 --pipeline-place --pipeline-generate-schedule=schedule=gpipe --pipeline-order-transfers | FileCheck %s --check-prefix=GPIPE
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=4 --pipeline-place='devices=2' --pipeline-generate-schedule --pipeline-order-transfers | FileCheck %s --check-prefix=SHARED
// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-order-transfers --verify-diagnostics

// Data come one microbatch ahead, losses leave at once. Device 1 receives the
// next activation before it sends the gradient: both block, and device 0 sends
// the activation first.
// TWO:      pipeline.order 0 {
// TWO:          pipeline.recv @x ahead(2)
// TWO-NEXT:     pipeline.run @s0.F ahead(1)
// TWO-NEXT:     pipeline.send @h2 ahead(1)
// TWO-NEXT:     pipeline.recv @dh2{{$}}
// TWO-NEXT:     pipeline.run @s0.B
// TWO-NEXT:   }
// TWO-NEXT:   pipeline.run @s0.U
// TWO:      pipeline.order 1 {
// TWO:          pipeline.recv @labels ahead(1)
// TWO-NEXT:     pipeline.run @s1.F
// TWO-NEXT:     pipeline.send @loss
// TWO-NEXT:     pipeline.recv @h2 ahead(1)
// TWO-NEXT:     pipeline.run @s1.B
// TWO-NEXT:     pipeline.send @dh2
// TWO-NEXT:   }
// TWO:      pipeline.schedule @evaluate
// TWO:          pipeline.recv @x ahead(1)
// TWO-NEXT:     pipeline.run @s0.E
// TWO-NEXT:     pipeline.send @h2

// A value for two stages is sent twice, straight to each.
// FOUR:      pipeline.run @s0.F ahead(3)
// FOUR-NEXT: pipeline.send @h1 ahead(3)
// FOUR-NEXT: pipeline.send @skip ahead(3)
// FOUR:      pipeline.run @s1.F ahead(2)
// FOUR-NEXT: pipeline.send @h2 ahead(2)
// FOUR-NEXT: pipeline.recv @dh2
// FOUR-NEXT: pipeline.recv @h1 ahead(3)
// FOUR-NEXT: pipeline.run @s1.B
// FOUR-NEXT: pipeline.send @dh1

// GPIPE:      pipeline.order 1 {
// GPIPE:          pipeline.repeat times 4 {
// GPIPE-NEXT:       pipeline.recv @h1 ahead(1)
// GPIPE-NEXT:       pipeline.run @s1.F
// GPIPE-NEXT:       pipeline.send @h2
// GPIPE-NEXT:     }
// GPIPE-NEXT:     pipeline.repeat times 4 {
// GPIPE-NEXT:       pipeline.recv @dh2 ahead(1)
// GPIPE-NEXT:       pipeline.run @s1.B
// GPIPE-NEXT:       pipeline.send @dh1
// GPIPE-NEXT:     }

// Within a device nothing is sent.
// SHARED:     pipeline.order 0
// SHARED-NOT: @h1
// SHARED:     pipeline.send @h2
// SHARED-NOT: @dh1

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
// expected-error @+1 {{cannot be given its transfers: @a.F stands in a loop twice; write its transfers out}}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 { pipeline.repeat microbatches { pipeline.run @a.F  pipeline.run @a.F } }
  pipeline.order 1 { pipeline.repeat microbatches { pipeline.run @b.F } }
}

// -----

@@
+pipeline.channel @g : [!t]
 pipeline.task @a.F forward of @a(%k) {
-  %x = pipeline.take @x : !t
-  pipeline.put %x to @h : !t
+  %g = pipeline.take @g : !t
+  pipeline.put %g to @h : !t
@@
-  pipeline.put %h to @y : !t
+  pipeline.put %h to @g : !t
@@
+// expected-note @+3 {{device 0: | @a.F[0] waits for @b.F[0] of device 1}}
+// expected-note @+2 {{device 1: | @b.F[0] waits for @a.F[0] of device 0}}
+// expected-error @+1 {{cannot be given its transfers: run @a.F of microbatch 0 on device 0 and run @b.F of microbatch 0 on device 1 wait for each other}}
 pipeline.schedule @train microbatches(2) {
-  pipeline.order 0 { pipeline.repeat microbatches { pipeline.run @a.F  pipeline.run @a.F } }
-  pipeline.order 1 { pipeline.repeat microbatches { pipeline.run @b.F } }
+  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.run @a.F } } }
+  pipeline.order 1 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.run @b.F } } }

// -----

@@
+// expected-error @+1 {{cannot be given its transfers: the ends of @h stand in loops at different places of their orders}}
 pipeline.schedule @train microbatches(2) {
-  pipeline.order 0 { pipeline.repeat microbatches { pipeline.run @a.F  pipeline.run @a.F } }
-  pipeline.order 1 { pipeline.repeat microbatches { pipeline.run @b.F } }
+  pipeline.order 0 { pipeline.repeat microbatches { pipeline.run @a.F } }
+  pipeline.order 1 { pipeline.repeat microbatches { } }

// -----

// Between stages of different width, loops over one microbatch are made to go
// round in turns. These do already.
@@
-pipeline.stage @b devices [1]
+pipeline.stage @b devices [1, 2]
@@
-pipeline.schedule @train microbatches(2) {
-  pipeline.order 0 { pipeline.repeat microbatches { pipeline.run @a.F  pipeline.run @a.F } }
+// expected-error @+1 {{cannot be given its transfers: stages of different width need one plain loop per device; write the transfers out}}
+pipeline.schedule @train microbatches(4) {
+  pipeline.order 0 {
+    pipeline.repeat microbatches 2 {
+      pipeline.run @a.F
+      pipeline.run @a.F
+    }
+  }
   pipeline.order 1 { pipeline.repeat microbatches { pipeline.run @b.F } }
+  pipeline.order 2 { pipeline.repeat microbatches { pipeline.run @b.F } }
