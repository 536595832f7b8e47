// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-verify-schedule --verify-diagnostics

// Two stages under 1F1B, each time with one thing wrong.

!t = tensor<3xf32>
pipeline.stage @a devices [0]
pipeline.stage @b devices [1]
pipeline.channel @x : [!t] source(input "x") slots(3)
pipeline.channel @loss : [!t] sink(loss) staging(1)
pipeline.channel @h : [!t] slots(2) staging(1)
pipeline.channel @dh : [!t] slots(1) staging(1)
pipeline.channel @ra : [!t] slots(2)
pipeline.channel @rb : [!t] slots(1)
pipeline.variable @w : !t parameter of @b
pipeline.variable @g : !t gradient of @b
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
  %h = func.call @f(%x) : (!t) -> !t
  pipeline.put %h to @h : !t
  pipeline.put %x to @ra : !t
}
pipeline.task @a.B backward of @a(%k) {
  %d = pipeline.take @dh : !t
  %x = pipeline.take @ra : !t
}
pipeline.task @b.F forward of @b(%k) {
  %h = pipeline.take @h : !t
  %w = pipeline.read @w lag(0) : !t
  %l = func.call @f(%h) : (!t) -> !t
  pipeline.put %l to @loss : !t
  pipeline.put %h to @rb : !t
}
pipeline.task @b.B backward of @b(%k) {
  %h = pipeline.take @rb : !t
  %w = pipeline.read @w lag(0) : !t
  %g = pipeline.read @g : !t
  %d = func.call @f(%h) : (!t) -> !t
  pipeline.put %d to @dh : !t
  pipeline.write %g to @g : !t
}
pipeline.task @b.U update of @b(%t) {
  %w = pipeline.read @w : !t
  %g = pipeline.read @g : !t
  pipeline.write %w to @w : !t
  pipeline.write %g to @g : !t
}
func.func private @f(!t) -> !t
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 {
      pipeline.recv @x ahead(2)
      pipeline.run @a.F ahead(1)
      pipeline.send @h ahead(1)
      pipeline.recv @dh
      pipeline.run @a.B
    }
  } }
  pipeline.order 1 { pipeline.repeat updates {
    pipeline.repeat times 4 {
      pipeline.recv @h ahead(1)
      pipeline.run @b.F
      pipeline.send @loss
      pipeline.run @b.B
      pipeline.send @dh
    }
    pipeline.run @b.U
  } }
}

// -----

// S1: a run is missing.
@@
+  // expected-error @+1 {{S1: device 0 runs @a.B 0 times per update, not 4 times}}
   pipeline.order 0 { pipeline.repeat updates {
@@
-      pipeline.run @a.B

// -----

// S1: a message is never received.
@@
+  // expected-error @+1 {{S1: device 1 receives @h 0 times per update, not 4 times}}
   pipeline.order 1 { pipeline.repeat updates {
@@
-      pipeline.recv @h ahead(1)

// -----

// S1: a loss is sent twice.
@@
+  // expected-error @+1 {{S1: device 1 sends @loss 8 times per update, not 4 times}}
   pipeline.order 1 { pipeline.repeat updates {
@@
+      pipeline.send @loss
       pipeline.send @loss

// -----

// S2: the receive stands behind the run that needs it.
@@
-      pipeline.recv @h ahead(1)
+      // expected-error @+1 {{S2: device 1: run @b.F of microbatch 0 takes from @h before the recv}}
       pipeline.run @b.F
@@
+      pipeline.recv @h
       pipeline.run @b.B

// -----

// S2: backward before forward.
@@
-      pipeline.recv @x ahead(2)
-      pipeline.run @a.F ahead(1)
-      pipeline.send @h ahead(1)
+      pipeline.recv @x ahead(1)
       pipeline.recv @dh
+      // expected-error @+1 {{S2: device 0: run @a.B of microbatch 0 takes from @ra before @a.F has put}}
       pipeline.run @a.B
+      pipeline.run @a.F
+      pipeline.send @h

// -----

// S2: sent before it is made.
@@
+      // expected-error @+1 {{S2: device 1: send @dh of microbatch 0 stands before the run of @b.B}}
+      pipeline.send @dh
       pipeline.run @b.B
-      pipeline.send @dh

// -----

// S3: in an open loop B reads a version that is gone.
@@
-  %w = pipeline.read @w lag(0) : !t
+  %w = pipeline.read @w lag(4) : !t
   %l = func.call @f(%h) : (!t) -> !t
@@
-  %w = pipeline.read @w lag(0) : !t
+  %w = pipeline.read @w lag(4) : !t
   %g = pipeline.read @g : !t
@@
-  pipeline.order 0 { pipeline.repeat updates {
-    pipeline.repeat times 4 {
+  pipeline.order 0 { pipeline.repeat microbatches {
@@
-    }
   } }
-  pipeline.order 1 { pipeline.repeat updates {
-    pipeline.repeat times 4 {
+  pipeline.order 1 { pipeline.repeat microbatches {
       pipeline.recv @h ahead(1)
+      // expected-error @+1 {{S3: device 1: run @b.F of microbatch 4 reads version 0 of @w, which is gone: 1 update done, 1 version kept}}
       pipeline.run @b.F
@@
-    }
-    pipeline.run @b.U
+    pipeline.run @b.U every(4)

// -----

// S3: forward reads a version before its update.
@@
-pipeline.channel @x : [!t] source(input "x") slots(3)
+pipeline.channel @x : [!t] source(input "x") slots(4)
 pipeline.channel @loss : [!t] sink(loss) staging(1)
-pipeline.channel @h : [!t] slots(2) staging(1)
+pipeline.channel @h : [!t] slots(3) staging(1)
 pipeline.channel @dh : [!t] slots(1) staging(1)
-pipeline.channel @ra : [!t] slots(2)
-pipeline.channel @rb : [!t] slots(1)
+pipeline.channel @ra : [!t] slots(3)
+pipeline.channel @rb : [!t] slots(2)
@@
-  pipeline.order 0 { pipeline.repeat updates {
-    pipeline.repeat times 4 {
-      pipeline.recv @x ahead(2)
-      pipeline.run @a.F ahead(1)
-      pipeline.send @h ahead(1)
+  pipeline.order 0 { pipeline.repeat microbatches {
+      pipeline.recv @x ahead(3)
+      pipeline.run @a.F ahead(2)
+      pipeline.send @h ahead(2)
@@
-    }
   } }
-  pipeline.order 1 { pipeline.repeat updates {
-    pipeline.repeat times 4 {
-      pipeline.recv @h ahead(1)
-      pipeline.run @b.F
-      pipeline.send @loss
+  pipeline.order 1 { pipeline.repeat microbatches {
+      pipeline.recv @h ahead(2)
+      // expected-error @+1 {{S3: device 1: run @b.F of microbatch 4 reads version 1 of @w, which is not there yet: 0 updates done}}
+      pipeline.run @b.F ahead(1)
+      pipeline.send @loss ahead(1)
@@
-    }
-    pipeline.run @b.U
+    pipeline.run @b.U every(4)

// -----

// S3: one version is enough when the loop drains.
@@
+// expected-error @+1 {{S3: keeps 2 versions, but the reads need 1}}
+pipeline.weight_stash @w depth(2)
 pipeline.variable @g : !t gradient of @b

// -----

// S4: an update before its last backward.
@@
-  pipeline.order 0 { pipeline.repeat updates {
-    pipeline.repeat times 4 {
+  pipeline.order 0 { pipeline.repeat microbatches {
@@
-    }
   } }
-  pipeline.order 1 { pipeline.repeat updates {
-    pipeline.repeat times 4 {
+  pipeline.order 1 { pipeline.repeat microbatches {
@@
+      // expected-error @+1 {{S4: device 1: run @b.U of update 0 comes after 3 runs of @b.B, not 4}}
+      pipeline.run @b.U every(4)
       pipeline.run @b.B
@@
-    }
-    pipeline.run @b.U

// -----

// S5: a slot too few at the receiver.
@@
-pipeline.channel @h : [!t] slots(2) staging(1)
+pipeline.channel @h : [!t] slots(1) staging(1)
@@
+      // expected-error @+1 {{S5: device 1: recv @h of microbatch 1 makes 2 messages of @h alive, slots(1)}}
       pipeline.recv @h ahead(1)

// -----

// S5: a slot too few for residuals.
@@
-pipeline.channel @ra : [!t] slots(2)
+pipeline.channel @ra : [!t] slots(1)
@@
+      // expected-error @+1 {{S5: device 0: run @a.F of microbatch 1 leaves 2 messages alive in @ra, slots(1)}}
       pipeline.run @a.F ahead(1)

// -----

// S5: results are sent too late for their staging.
@@
+      // expected-error @+1 {{S5: device 1: run @b.F of microbatch 1 leaves 2 messages unsent in @loss, staging(1)}}
       pipeline.run @b.F
-      pipeline.send @loss
@@
       pipeline.send @dh
+      pipeline.send @loss ahead(-1)

// -----

// S5: a slot that is never used.
@@
-pipeline.channel @h : [!t] slots(2) staging(1)
+// expected-error @+1 {{S5: slots(3), but at most 2 messages are alive}}
+pipeline.channel @h : [!t] slots(3) staging(1)

// -----

// S5: no size.
@@
-pipeline.channel @ra : [!t] slots(2)
+// expected-error @+1 {{S5: has no slots; run pipeline-size-storage}}
+pipeline.channel @ra : [!t]

// -----

// S5: no staging.
@@
-pipeline.channel @loss : [!t] sink(loss) staging(1)
+// expected-error @+1 {{S5: has no staging; run pipeline-size-storage}}
+pipeline.channel @loss : [!t] sink(loss)

// -----

// S7: the textbook order. Device 1 sends the gradient before it receives the next
// activation, which device 0 sends before it receives the gradient: both wait.
@@
-pipeline.channel @h : [!t] slots(2) staging(1)
+pipeline.channel @h : [!t] slots(1) staging(1)
@@
+// expected-error @+3 {{S7: deadlock in a segment of 1 update: send @h of microbatch 1 on device 0 and send @dh of microbatch 0 on device 1 wait for each other}}
+// expected-note @+2 {{device 0: compute queue: run @a.B of microbatch 0 (waits for the message of @dh); transfer queue: send @h of microbatch 1 (waits for device 1, which is at send @dh of microbatch 0)}}
+// expected-note @+1 {{device 1: compute queue: run @b.F of microbatch 1 (waits for the message of @h); transfer queue: send @dh of microbatch 0 (waits for device 0, which is at send @h of microbatch 1)}}
 pipeline.schedule @train microbatches(4) {
@@
-      pipeline.recv @h ahead(1)
+      pipeline.recv @h

// -----

// S1: a sum is missing on the second replica.
!t = tensor<3xf32>
pipeline.stage @a devices [0, 1]
pipeline.channel @x : [!t] source(input "x") slots(1)
pipeline.variable @w : !t parameter of @a
pipeline.variable @g : !t gradient of @a
pipeline.group @sum members [[@g]]
pipeline.channel @r : [!t] slots(1)
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
  pipeline.put %x to @r : !t
}
pipeline.task @a.B backward of @a(%k) {
  %x = pipeline.take @r : !t
  %g = pipeline.read @g : !t
  pipeline.write %g to @g : !t
}
pipeline.task @a.U update of @a(%t) {
  %w = pipeline.read @w : !t
  %g = pipeline.read @g : !t
  pipeline.write %w to @w : !t
  pipeline.write %g to @g : !t
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 2 { pipeline.recv @x  pipeline.run @a.F  pipeline.run @a.B }
    pipeline.all_reduce @sum
    pipeline.run @a.U
  } }
  // expected-error @+1 {{S1: device 1 reduces @sum 0 times per update, not 1 time}}
  pipeline.order 1 { pipeline.repeat updates {
    pipeline.repeat times 2 { pipeline.recv @x  pipeline.run @a.F  pipeline.run @a.B }
    pipeline.run @a.U
  } }
}
