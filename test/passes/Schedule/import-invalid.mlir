// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-verify-schedule --verify-diagnostics
// RUN: %expect-error --any-lines "'pipeline.schedule' op is a declaration, without orders" -- penstock-opt %S/inputs/declared-schedule.mlir --pipeline-order-transfers

// What cannot be read as a schedule, before any rule of schedules is checked.

!t = tensor<3xf32>
pipeline.stage @a devices [0]
pipeline.channel @x : [!t] source(input "x") slots(1)
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 { pipeline.recv @x pipeline.run @a.F }
  } }
}

// -----

// Versions of nothing.
@@
+// expected-error @+1 {{'pipeline.double_buffer' op names no variable}}
+pipeline.double_buffer @w
 pipeline.task @a.F forward of @a(%k) {

// -----

// Nobody decided where the stage runs.
@@
-pipeline.stage @a devices [0]
-pipeline.channel @x : [!t] source(input "x") slots(1)
+// expected-error @+1 {{'pipeline.stage' op has no device; run pipeline-place first}}
+pipeline.stage @a
+pipeline.channel @x : [!t] source(input "x")

// -----

// Nobody produces what is taken.
@@
-pipeline.channel @x : [!t] source(input "x") slots(1)
+// expected-error @+1 {{'pipeline.channel' op has no source, and no task of training puts into it}}
+pipeline.channel @x : [!t] slots(1)

// -----

// Nobody takes what is put.
@@
+// expected-error @+1 {{'pipeline.channel' op has no sink, and no task of training takes from it}}
+pipeline.channel @y : [!t] slots(1)
 pipeline.task @a.F forward of @a(%k) {
@@
   %x = pipeline.take @x : !t
+  pipeline.put %x to @y : !t

// -----

// Stages tell which devices there are.
@@
-  pipeline.order 0 { pipeline.repeat updates {
+  // expected-error @+1 {{'pipeline.order' op is for a device that has no stage}}
+  pipeline.order 1 { pipeline.repeat updates {

// -----

// A task of nobody.
@@
+// expected-error @+1 {{'pipeline.task' op names no stage}}
+pipeline.task @b.F forward of @b(%k) {
+}
 pipeline.task @a.F forward of @a(%k) {

// -----

// A parameter that is not there, read and written.
@@
   %x = pipeline.take @x : !t
+  // expected-error @+1 {{'pipeline.read' op names no variable}}
+  %w = pipeline.read @w : !t

// -----

// The write.
@@
   %x = pipeline.take @x : !t
+  // expected-error @+1 {{'pipeline.write' op names no variable}}
+  pipeline.write %x to @w : !t

// -----

// A sum of nothing.
@@
+// expected-error @+1 {{'pipeline.group' op has a member that is no variable}}
+pipeline.group @sum members [[@a]]
 pipeline.task @a.F forward of @a(%k) {

// -----

// Microbatches go round the replicas in turn, so every replica gets as many.
!t = tensor<3xf32>
// expected-error @+1 {{'pipeline.stage' op has 2 replicas, which do not divide 3 microbatches}}
pipeline.stage @a devices [0, 1]
pipeline.channel @x : [!t] source(input "x")
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
}
pipeline.schedule @train microbatches(3) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 3 { pipeline.recv @x pipeline.run @a.F }
  } }
}

// -----

// A task without a body takes and puts nothing.
!t = tensor<3xf32>
pipeline.stage @a devices [0]
// expected-error @+1 {{'pipeline.task' op is a declaration, so nothing can be scheduled}}
pipeline.task @a.F forward of @a
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 { pipeline.run @a.F }
  } }
}

// -----

// A message would sometimes need a transfer and sometimes not.
!t = tensor<3xf32>
pipeline.stage @a devices [0, 1]
pipeline.stage @b devices [0, 2]
pipeline.channel @x : [!t] source(input "x") slots(1)
// expected-error @+1 {{'pipeline.channel' op joins stages of which some replicas, but not all, share a device}}
pipeline.channel @h : [!t] slots(1)
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
  pipeline.put %x to @h : !t
}
pipeline.task @b.F forward of @b(%k) {
  %h = pipeline.take @h : !t
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 2 { pipeline.recv @x pipeline.run @a.F }
  } }
}

// -----

// A schedule with a task of evaluation evaluates: it does not train as well.
!t = tensor<3xf32>
pipeline.stage @a devices [0]
pipeline.channel @x : [!t] source(input "x") slots(1)
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
}
pipeline.task @a.E evaluate of @a(%k) {
  %x = pipeline.take @x : !t
}
pipeline.schedule @evaluate to evaluate microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 {
      pipeline.recv @x
      pipeline.run @a.E
      // expected-error @+1 {{'pipeline.run' op names @a.F, which is no task of this schedule}}
      pipeline.run @a.F
    }
  } }
}

// -----

// Messages per update would have to reach every replica.
!t = tensor<3xf32>
pipeline.stage @a devices [0]
pipeline.stage @b devices [1, 2]
// expected-error @+1 {{'pipeline.channel' op counts updates, and joins replicated stages on different devices, which is not supported}}
pipeline.channel @h : [!t] slots(1)
pipeline.variable @w : !t parameter of @a
pipeline.task @a.U update of @a(%t) {
  %w = pipeline.read @w : !t
  pipeline.put %w to @h : !t
  pipeline.write %w to @w : !t
}
pipeline.task @b.U update of @b(%t) {
  %h = pipeline.take @h : !t
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.run @a.U } }
}

// -----

// A message into nothing.
!t = tensor<3xf32>
// expected-error @-4 {{tasks use @y, which is no channel}}
pipeline.stage @a devices [0]
pipeline.channel @x : [!t] source(input "x") slots(1)
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
  pipeline.put %x to @y : !t
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 { pipeline.recv @x pipeline.run @a.F }
  } }
}
