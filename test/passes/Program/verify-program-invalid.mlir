// RUN: %expand-cases %s | penstock-opt --pipeline-verify-program --split-input-file \
// RUN:   --verify-diagnostics

// A task that is never executed, and index code that cannot be interpreted.

pipeline.stage @s devices [0]
// expected-error @below {{S1: runs 0 times instead of 1 in a segment of 1 updates of "train"}}
pipeline.task @F forward of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

@@
+func.func private @f() -> index
 func.func @train.0(%first: index, %updates: index)
@@
+  %n = func.call @f() : () -> index
+  // expected-error @below {{S8: uses a number that does not follow from the arguments of the device function}}
+  pipeline.mark @F[%n]
   return

// -----

@@
+pipeline.channel @x : [tensor<f32>] source(input "x") slots(1)
 func.func @train.0(%first: index, %updates: index)
@@
+  %b = pipeline.scratch at(0) : memref<f32>
+  // expected-error @below {{S8: uses a buffer that is no slot}}
+  pipeline.start_recv @x[%first], %b : memref<f32>
   return

// -----

@@
+  %c0 = arith.constant 0 : index
+  %c1 = arith.constant 1 : index
+  // expected-error @below {{S8: loops of device functions count upwards and carry no values}}
+  %s = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %c0) -> index {
+    scf.yield %a : index
+  }
   return

// -----

@@
+  %c0 = arith.constant 0 : index
+  // expected-error @below {{S8: divides by zero}}
+  %d = arith.remui %first, %c0 : index
   return

// -----

@@
+pipeline.channel @x : [tensor<f32>] source(input "x") slots(1)
 func.func @train.0(%first: index, %updates: index)
@@
+  %c1 = arith.constant 1 : index
+  %n = arith.subi %first, %c1 : index
+  // expected-error @below {{S8: names the slot of a negative number}}
+  %b = pipeline.slot @x[%n] at(0) : memref<f32>
   return

// -----

@@
+  %true = arith.constant true
+  // expected-error @below {{S8: tests of device functions have no results}}
+  %b = scf.if %true -> index {
+    scf.yield %first : index
+  } else {
+    scf.yield %first : index
+  }
   return

// -----

@@
+  // expected-error @below {{S8: has no place in a device function}}
+  %b = memref.alloc() : memref<f32>
   return

// -----

@@
-func.func @train.0(%first: index, %updates: index)
+// expected-error @below {{S8: the function of a device takes the first update and their number}}
+func.func @train.0(%first: index)

// -----

@@
 }
+// expected-error @below {{S8: is the second function of device 0 for "train"}}
+func.func @other(%first: index, %updates: index)
+    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
+  return
+}

// -----

// Runs.
@@
+  %c1 = arith.constant 1 : index
+  %n = arith.addi %first, %c1 : index
+  // expected-error @below {{S1: device 0 in a segment of 1 updates runs @F[1] instead of number 0}}
+  pipeline.mark @F[%n]
   return

// -----

// The bound comes too late: another update has begun.
@@
+  %one = arith.constant 1 : index
+  %end = arith.addi %first, %updates : index
+  scf.for %t = %first to %end step %one {
+    %done = arith.subi %t, %first : index
+    %n = pipeline.bound %done
+    // expected-error @below {{S8: runs for number 1 in a segment that is shortened to 1 updates, but not in one that has 1}}
+    pipeline.mark @F[%t]
+  }
   return

// -----

@@
+func.func private @f(%t: memref<64xi8> {pipeline.scratch}) {
+  %c0 = arith.constant 0 : index
+  %z = arith.constant 0 : i8
+  // expected-error @below {{uses temporary memory other than by a view at a constant offset}}
+  memref.store %z, %t[%c0] : memref<64xi8>
+  return
+}
 func.func @train.0(%first: index, %updates: index)
@@
+  %one = arith.constant 1 : index
+  %end = arith.addi %first, %updates : index
+  scf.for %t = %first to %end step %one {
+    pipeline.mark @F[%t]
+  }
+  %b = pipeline.scratch at(0) : memref<64xi8>
+  func.call @f(%b) : (memref<64xi8>) -> ()
   return

// -----

@@
+// expected-error @below {{S1: runs 1 times instead of 2 in a segment of 1 updates of "train"}}
 pipeline.task @F forward of @s
-pipeline.schedule @train microbatches(1)
+pipeline.schedule @train microbatches(2)
@@
+  %c2 = arith.constant 2 : index
+  %n = arith.muli %first, %c2 : index
+  pipeline.mark @F[%n]
   return

// -----

// All forwards of a segment come before the first backward: no two updates are
// ever in flight as they would be in a longer segment.
@@
 pipeline.task @F forward of @s
+pipeline.task @B backward of @s
@@
+// expected-error @below {{S8: begins to do something only when all else is done, however long the segment}}
 func.func @train.0(%first: index, %updates: index)
@@
+  %c1 = arith.constant 1 : index
+  %end = arith.addi %first, %updates : index
+  scf.for %t = %first to %end step %c1 {
+    pipeline.mark @F[%t]
+  }
+  scf.for %t = %first to %end step %c1 {
+    pipeline.mark @B[%t]
+  }
   return

// -----

// A range test that does not go by the bound.
@@
+  %zero = arith.constant 0 : index
+  %one = arith.constant 1 : index
+  %end = arith.addi %updates, %one : index
+  scf.for %j = %zero to %end step %one {
+    %least = arith.addi %j, %one : index
+    %n = pipeline.bound %least
+    %test = arith.cmpi ult, %j, %updates : index
+    scf.if %test {
+      %t = arith.addi %first, %j : index
+      // expected-error @below {{S8: runs for number 1 in a segment that is shortened to 1 updates, but not in one that has 1}}
+      pipeline.mark @F[%t]
+    }
+  }
   return

// -----

pipeline.stage @s devices [0]
pipeline.task @F forward of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func private @modify(memref<f32> {pipeline.into = 0 : i64})
pipeline.channel @x : [tensor<f32>] source(input "x") slots(1)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %a = pipeline.slot @x[%first] at(0) : memref<f32>
  // expected-error @below {{S2: device 0 in a segment of 1 updates reads @x[0], but nothing was stored there}}
  func.call @read(%a) : (memref<f32>) -> ()
  return
}

// -----

// Buffers.
@@
-pipeline.channel @x : [tensor<f32>] source(input "x") slots(1)
@@
-  %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  %b = pipeline.slot @F[%first] at(0) : memref<f32>
+  // expected-error @below {{S8: device 0 in a segment of 1 updates uses a slot of @F, which is no variable or channel}}
+  func.call @read(%b) : (memref<f32>) -> ()

// -----

@@
-pipeline.channel @x : [tensor<f32>] source(input "x") slots(1)
+pipeline.variable @w : tensor<f32> parameter of @s
@@
-  %a = pipeline.slot @x[%first] at(0) : memref<f32>
+  %a = pipeline.slot @w[%first] at(0) : memref<f32>
   func.call @read(%a) : (memref<f32>) -> ()
+  %b = pipeline.slot @w[%first] ring(2) at(0) stride(64) : memref<f32>
+  // expected-error @below {{S8: device 0 in a segment of 1 updates uses a ring of 2 for @w, but one of 1 elsewhere}}
+  func.call @read(%b) : (memref<f32>) -> ()

// -----

@@
+  %c1 = arith.constant 1 : index
   %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  pipeline.start_recv @x[%first], %a : memref<f32>
+  %n = arith.addi %first, %c1 : index
+  %b = pipeline.slot @x[%n] at(0) : memref<f32>
+  // expected-error @below {{S5: device 0 in a segment of 1 updates fills @x[1] while it may still be received into: a slot or an await is missing}}
+  pipeline.start_recv @x[%n], %b : memref<f32>

// -----

@@
+  %c1 = arith.constant 1 : index
   %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  pipeline.start_recv @x[%first], %a : memref<f32>
+  pipeline.await @x[%first]
+  %n = arith.addi %first, %c1 : index
+  %b = pipeline.slot @x[%n] at(0) : memref<f32>
+  // expected-error @below {{S5: device 0 in a segment of 1 updates fills @x[1] before message 0 in the same slot is used: a slot is missing}}
+  pipeline.start_recv @x[%n], %b : memref<f32>

// -----

@@
+  pipeline.start_recv @x[%first], %a : memref<f32>
+  // expected-error @below {{S2: device 0 in a segment of 1 updates reads @x[0] without having awaited it}}
   func.call @read(%a) : (memref<f32>) -> ()

// -----

// Messages.
@@
+  %c2 = arith.constant 2 : index
   %a = pipeline.slot @x[%first] at(0) : memref<f32>
+  pipeline.start_recv @x[%first], %a : memref<f32>
+  pipeline.await @x[%first]
   func.call @read(%a) : (memref<f32>) -> ()
+  %n = arith.addi %first, %c2 : index
+  %b = pipeline.slot @x[%n] at(0) : memref<f32>
+  // expected-error @below {{S8: device 0 in a segment of 1 updates receives message 2 of @x after message 0}}
+  pipeline.start_recv @x[%n], %b : memref<f32>

// -----

@@
-  %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  %c1 = arith.constant 1 : index
+  %n = arith.addi %first, %c1 : index
+  %b = pipeline.slot @x[%n] at(0) : memref<f32>
+  // expected-error @below {{S8: device 0 in a segment of 1 updates begins @x with message 1}}
+  pipeline.start_recv @x[%n], %b : memref<f32>

// -----

@@
-  %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  %c1 = arith.constant 1 : index
+  %n = arith.addi %first, %c1 : index
+  %b = pipeline.slot @x[%n] at(0) : memref<f32>
+  // expected-error @below {{S8: device 0 in a segment of 1 updates receives message 0 of @x into @x[1]}}
+  pipeline.start_recv @x[%first], %b : memref<f32>

// -----

@@
-  %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  // expected-error @below {{S7: device 0 in a segment of 1 updates awaits message 0 of @x before it is queued}}
+  pipeline.await @x[%first]

// -----

@@
+// expected-error @below {{S6: on device 0, message 0 of @x is never used in a segment of 1 updates}}
 pipeline.schedule @train microbatches(1)
@@
-  %a = pipeline.slot @x[%first] at(0) : memref<f32>
-  func.call @read(%a) : (memref<f32>) -> ()
+  pipeline.mark @F[%first]
+  %b = pipeline.slot @x[%first] at(0) : memref<f32>
+  pipeline.start_recv @x[%first], %b : memref<f32>

// -----

// An update too early.
pipeline.stage @s devices [0]
pipeline.task @B backward of @s
pipeline.task @U update of @s
pipeline.variable @w : tensor<f32> parameter of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func private @modify(memref<f32> {pipeline.into = 0 : i64})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %last = arith.addi %first, %updates : index
  scf.for %t = %first to %last step %c1 {
    // expected-error @below {{S4: device 0 in a segment of 1 updates runs @U[0] after 0 instead of 1 runs of @B}}
    pipeline.mark @U[%t]
    pipeline.mark @B[%t]
  }
  return
}

// -----

// A send may still be under way when its staging slot is filled again.
@@
-pipeline.task @B backward of @s
-pipeline.task @U update of @s
-pipeline.variable @w : tensor<f32> parameter of @s
+pipeline.task @F forward of @s
@@
+pipeline.channel @loss : [tensor<f32>] sink(loss) staging(1)
 func.func @train.0(%first: index, %updates: index)
@@
-    pipeline.mark @U[%t]
-    pipeline.mark @B[%t]
+    pipeline.mark @F[%t]
+    %l = pipeline.slot @loss[%t] at(0) : memref<f32>
+    // expected-error @below {{S5: device 0 in a segment of 2 updates fills @loss[1] while message 0 may still be sent from there: a slot or an await is missing}}
+    func.call @write(%l) : (memref<f32>) -> ()
+    pipeline.start_send @loss[%t], %l : memref<f32>

// -----

// A version that is gone.
@@
+    pipeline.mark @B[%t]
+    %w = pipeline.slot @w[%first] at(0) : memref<f32>
+    // expected-error @below {{S3: device 0 in a segment of 2 updates reads @w[0], but the buffer holds number 1}}
+    func.call @read(%w) : (memref<f32>) -> ()
     pipeline.mark @U[%t]
-    pipeline.mark @B[%t]
+    %n = arith.addi %t, %c1 : index
+    %v = pipeline.slot @w[%n] at(0) : memref<f32>
+    func.call @write(%v) : (memref<f32>) -> ()

// -----

// The same when the update is in place.
@@
+    pipeline.mark @B[%t]
+    %w = pipeline.slot @w[%first] at(0) : memref<f32>
+    // expected-error @below {{S3: device 0 in a segment of 2 updates reads @w[0], but the buffer holds number 1}}
+    func.call @read(%w) : (memref<f32>) -> ()
     pipeline.mark @U[%t]
-    pipeline.mark @B[%t]
+    %v = pipeline.slot @w[%t] at(0) : memref<f32>
+    func.call @modify(%v) : (memref<f32>) -> ()

// -----

@@
+    pipeline.mark @B[%t]
     pipeline.mark @U[%t]
-    pipeline.mark @B[%t]
+    %v = pipeline.slot @w[%t] at(0) : memref<f32>
+    // expected-error @below {{S3: device 0 in a segment of 1 updates writes version 0 of @w in update 0}}
+    func.call @write(%v) : (memref<f32>) -> ()

// -----

// A version that is there, but not the method's.
@@
-pipeline.stage @s devices [0]
+pipeline.stage @s devices [0] {pipeline.lags = array<i64: 0, 1>}
@@
-func.func private @write(memref<f32> {pipeline.out})
+func.func private @write(memref<f32>, memref<f32> {pipeline.out})
@@
-    pipeline.mark @U[%t]
+    %next = arith.addi %t, %c1 : index
+    %old = pipeline.slot @w[%t] ring(2) at(0) stride(64) : memref<f32>
+    %new = pipeline.slot @w[%next] ring(2) at(0) stride(64) : memref<f32>
     pipeline.mark @B[%t]
+    // expected-error @below {{S3: device 0 in a segment of 2 updates reads version 1 of @w in run 1 of @B, but its lag(1) asks for 0}}
+    func.call @read(%old) : (memref<f32>) -> ()
+    pipeline.mark @U[%t]
+    func.call @write(%old, %new) : (memref<f32>, memref<f32>) -> ()

// -----

// Evaluation reads another version than the newest: it takes its first
// microbatch for the number of updates.
pipeline.stage @s devices [0]
pipeline.task @E evaluate of @s
pipeline.variable @w : tensor<f32> parameter of @s
pipeline.weight_stash @w depth(2)
pipeline.schedule @evaluate to evaluate microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @read(memref<f32>)
func.func @evaluate.0(%first: index, %updates: index, %version: index)
    attributes {pipeline.schedule = @evaluate, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  %last = arith.addi %first, %updates : index
  scf.for %k = %first to %last step %c1 {
    pipeline.mark @E[%k]
    %w = pipeline.slot @w[%first] ring(2) at(0) stride(64) : memref<f32>
    // expected-error @below {{S3: device 0 in a segment of 1 updates reads @w[0], but nothing was stored there}}
    func.call @read(%w) : (memref<f32>) -> ()
  }
  return
}

// -----

// A message that is never received.
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @h : [tensor<f32>] slots(1) staging(1)
pipeline.channel @d : [tensor<f32>] slots(1) staging(1)
pipeline.task @F0 forward of @s0
pipeline.task @F1 forward of @s1
// expected-error @+3 {{S6: transfers are left over in a segment of 1 updates}}
// expected-note @+2 {{device 0: at the end, next transfer send @h[0]}}
// expected-note @+1 {{device 1: at the end, no transfer}}
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
pipeline.arena 1 bytes(1024)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func private @modify(memref<f32> {pipeline.into = 0 : i64})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  pipeline.mark @F0[%first]
  %a = pipeline.slot @h[%first] at(0) : memref<f32>
  func.call @write(%a) : (memref<f32>) -> ()
  pipeline.start_send @h[%first], %a : memref<f32>
  return
}
func.func @train.1(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  pipeline.mark @F1[%first]
  return
}

// -----

// Each device waits until the other receives: a deadlock.
@@
+// expected-note @below {{device 0: at await @h[0], next transfer send @h[0]}}
+// expected-note @below {{device 1: at await @d[0], next transfer send @d[0]}}
 pipeline.schedule @train microbatches(1)
@@
   pipeline.start_send @h[%first], %a : memref<f32>
+  // expected-error @below {{S7: device 0 in a segment of 1 updates deadlocks}}
+  pipeline.await @h[%first]
+  %b = pipeline.slot @d[%first] at(64) : memref<f32>
+  pipeline.start_recv @d[%first], %b : memref<f32>
+  pipeline.await @d[%first]
+  func.call @read(%b) : (memref<f32>) -> ()
@@
   pipeline.mark @F1[%first]
+  %a = pipeline.slot @d[%first] at(0) : memref<f32>
+  func.call @write(%a) : (memref<f32>) -> ()
+  pipeline.start_send @d[%first], %a : memref<f32>
+  pipeline.await @d[%first]
+  %b = pipeline.slot @h[%first] at(64) : memref<f32>
+  pipeline.start_recv @h[%first], %b : memref<f32>
+  pipeline.await @h[%first]
+  func.call @read(%b) : (memref<f32>) -> ()

// -----

// Rings continue over segments: the ends must agree where they begin.
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @h : [tensor<f32>] slots(1) staging(1)
pipeline.channel @d : [tensor<f32>] slots(1) staging(1)
pipeline.schedule @train microbatches(2)
pipeline.arena 0 bytes(1024)
pipeline.arena 1 bytes(1024)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func private @modify(memref<f32> {pipeline.into = 0 : i64})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c2 = arith.constant 2 : index
  %last = arith.muli %updates, %c2 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k0 = arith.muli %first, %c2 : index
  scf.for %j = %c0 to %last step %c1 {
    %k = arith.addi %k0, %j : index
    %o = arith.subi %k, %c1 : index
    pipeline.await @h[%o]
    %a = pipeline.slot @h[%k] at(0) : memref<f32>
    func.call @write(%a) : (memref<f32>) -> ()
    pipeline.start_send @h[%k], %a : memref<f32>
  }
  return
}
func.func @train.1(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  %c2 = arith.constant 2 : index
  %last = arith.muli %updates, %c2 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %last step %c1 {
    %k = arith.addi %first, %j : index
    %a = pipeline.slot @h[%k] at(0) : memref<f32>
    // expected-error @below {{S8: device 1 in a segment of 1 updates receives message 3 of @h when device 0 sends message 6}}
    pipeline.start_recv @h[%k], %a : memref<f32>
    pipeline.await @h[%k]
    func.call @read(%a) : (memref<f32>) -> ()
  }
  return
}

// -----

pipeline.schedule @train microbatches(1)
pipeline.variable @a : tensor<4xf32> parameter
pipeline.variable @b : tensor<4xf32> parameter
pipeline.arena 0 bytes(256)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// The arena.
@@
+pipeline.arena 0 bytes(256)
+// expected-error @below {{S9: is the second arena of this device}}
 pipeline.arena 0 bytes(256)

// -----

@@
-pipeline.arena 0 bytes(256)
+// expected-error @below {{S9: device 0 has no pipeline.arena}}
 func.func @train.0(%first: index, %updates: index)

// -----

@@
+  // expected-error @below {{S9: has no place in the arena}}
+  %a = pipeline.slot @a[%first] : memref<4xf32>
   return

// -----

@@
+  // expected-error @below {{S9: is not aligned to 64 bytes}}
+  %a = pipeline.slot @a[%first] ring(2) at(64) stride(16) : memref<4xf32>
   return

// -----

@@
+  // expected-note @below {{elsewhere}}
+  %a = pipeline.slot @a[%first] at(64) : memref<4xf32>
+  // expected-error @below {{S9: is in another place than elsewhere}}
+  %b = pipeline.slot @a[%first] at(0) : memref<4xf32>
   return

// -----

@@
+  // expected-error @below {{S9: ends at byte 272 of an arena of 256}}
+  %a = pipeline.slot @a[%first] at(256) : memref<4xf32>
   return

// -----

@@
+  // expected-note @below {{the other buffer}}
+  %a = pipeline.slot @a[%first] ring(2) at(0) stride(64) : memref<4xf32>
+  // expected-error @below {{S9: shares bytes from 64 on with another buffer}}
+  %b = pipeline.slot @b[%first] at(64) : memref<4xf32>
   return

// -----

pipeline.schedule @train microbatches(1)
pipeline.variable @a : tensor<2x8x16x24xf32> parameter
pipeline.variable @b : tensor<16x8x3x3xf32> parameter
pipeline.variable @c : tensor<2x16x16x24xf32> parameter
pipeline.arena 0 bytes(4194304)
func.func private @convolution(%a: memref<2x8x16x24xf32>, %b: memref<16x8x3x3xf32>, %c: memref<2x16x16x24xf32> {pipeline.out}, %s: memref<2097152xi8> {pipeline.scratch}) attributes {pipeline.target = #cpu.target<>} {
  %at = arith.constant 0 : index
  %0 = memref.view %s[%at][] : memref<2097152xi8> to memref<2x8x16x24xf32>
  linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
  return
}
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c0 = arith.constant 0 : index
  %a = pipeline.slot @a[%c0] at(0) : memref<2x8x16x24xf32>
  %b = pipeline.slot @b[%c0] at(24576) : memref<16x8x3x3xf32>
  %c = pipeline.slot @c[%c0] at(29184) : memref<2x16x16x24xf32>
  %s0 = pipeline.scratch at(131072) : memref<2097152xi8>
  func.call @convolution(%a, %b, %c, %s0) : (memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>, memref<2097152xi8>) -> ()
  return
}

// -----

// A library call has its scratch among the temporaries of its kernel.
@@
   linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
+  // expected-error-re @below {{S9: takes {{[0-9]+}} bytes of scratch and has 0}}
+  kernel.conv forward %0, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>

// -----

@@
   linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
+  // expected-error @below {{S9: has its scratch from byte 2097088 to }}
+  kernel.conv forward %0, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <1048576 at 2097088> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>

// -----

// What is alive at the call keeps clear of it.
@@
+  // expected-error @below {{S9: shares bytes with the scratch of a library call while it is in use}}
   %0 = memref.view %s[%at][] : memref<2097152xi8> to memref<2x8x16x24xf32>
@@
   linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
+  kernel.conv forward %0, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <1048576 at 0> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>

// -----

@@
-  %at = arith.constant 0 : index
+  %at = arith.constant 2097088 : index
+  // expected-error @below {{S9: ends at byte 2121664 of temporary memory of 2097152}}
   %0 = memref.view %s[%at][] : memref<2097152xi8> to memref<2x8x16x24xf32>
@@
   linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
+  kernel.conv forward %0, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <1048576 at 24576> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>

// -----

// It is prepared once for all calls of the kernel.
@@
   linalg.copy ins(%a : memref<2x8x16x24xf32>) outs(%0 : memref<2x8x16x24xf32>)
+  kernel.conv forward %0, %b, %c strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) config(#cpu.conv<tiles_4x4>) scratch <1048576 at 24576> : memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>
@@
   func.call @convolution(%a, %b, %c, %s0) : (memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>, memref<2097152xi8>) -> ()
+  %s1 = pipeline.scratch at(131136) : memref<2097152xi8>
+  // expected-error @below {{S9: has its temporaries elsewhere than another call of @convolution, whose library calls have one place}}
+  func.call @convolution(%a, %b, %c, %s1) : (memref<2x8x16x24xf32>, memref<16x8x3x3xf32>, memref<2x16x16x24xf32>, memref<2097152xi8>) -> ()

// -----

// A gradient that is summed is not read before it has been awaited, and holds
// all microbatches.
pipeline.stage @s devices [0]
pipeline.variable @g : tensor<2xf32> gradient of @s
pipeline.group @sum members [[@g]]
pipeline.task @B backward of @s
pipeline.task @U update of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @add(memref<2xf32> {pipeline.into = 0 : i64})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  %end = arith.addi %first, %updates : index
  scf.for %t = %first to %end step %c1 {
    %g = pipeline.slot @g[%t] at(0) : memref<2xf32>
    pipeline.mark @B[%t]
    func.call @add(%g) : (memref<2xf32>) -> ()
    pipeline.start_all_reduce @sum[%t], %g : memref<2xf32>
    pipeline.mark @U[%t]
    // expected-error @below {{S2: device 0 in a segment of 1 updates reads @g[0] without having awaited it}}
    func.call @add(%g) : (memref<2xf32>) -> ()
  }
  return
}

// -----

@@
-pipeline.schedule @train microbatches(1)
+pipeline.schedule @train microbatches(2)
@@
+  %c2 = arith.constant 2 : index
   %end = arith.addi %first, %updates : index
@@
-    pipeline.mark @B[%t]
+    %k = arith.muli %t, %c2 : index
+    pipeline.mark @B[%k]
     func.call @add(%g) : (memref<2xf32>) -> ()
+    // expected-error @below {{S4: device 0 in a segment of 1 updates sums @sum[0] after 1 instead of 2 runs of @B}}
     pipeline.start_all_reduce @sum[%t], %g : memref<2xf32>
+    pipeline.await @sum[%t]

// -----

// Device 1 never sums.
@@
-pipeline.group @sum members [[@g]]
+pipeline.stage @r devices [1]
+pipeline.variable @h : tensor<2xf32> gradient of @r
+pipeline.group @sum members [[@g], [@h]]
@@
+// expected-note @below {{device 0: at await @sum[0], next transfer sum @sum[0]}}
+// expected-note @below {{device 1: at the end, no transfer}}
 pipeline.schedule @train microbatches(1)
+pipeline.arena 1 bytes(1024)
+func.func @train.1(%first: index, %updates: index)
+    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
+  return
+}
@@
     pipeline.start_all_reduce @sum[%t], %g : memref<2xf32>
+    // expected-error @below {{S7: device 0 in a segment of 1 updates deadlocks}}
+    pipeline.await @sum[%t]

// -----

// The sums are those of the members, in their order.
@@
-pipeline.group @sum members [[@g]]
+pipeline.variable @h : tensor<2xf32> gradient of @s
+pipeline.group @sum members [[@g, @h]]
@@
-    pipeline.start_all_reduce @sum[%t], %g : memref<2xf32>
+    %h = pipeline.slot @h[%t] at(64) : memref<2xf32>
+    // expected-error @below {{S8: device 0 in a segment of 1 updates sums @h where @sum has @g}}
+    pipeline.start_all_reduce @sum[%t], %h, %g : memref<2xf32>, memref<2xf32>

// -----

@@
-pipeline.group @sum members [[@g]]
+pipeline.stage @r devices [0]
+pipeline.variable @h : tensor<2xf32> gradient of @r
+pipeline.group @sum members [[@g], [@h]]
@@
+    // expected-error @below {{S8: device 0 in a segment of 1 updates sums 1 buffers of @sum instead of 2}}
     pipeline.start_all_reduce @sum[%t], %g : memref<2xf32>

// -----

// Parts are the gradients of microbatches 0, 2, .. and 1, 3, ..; the first comes
// first.
pipeline.stage @s devices [0]
pipeline.variable @g : tensor<2xf32> gradient of @s {pipeline.parts = 2 : i64}
pipeline.group @sum members [[@g]]
pipeline.task @B backward of @s
pipeline.schedule @train microbatches(2)
pipeline.arena 0 bytes(1024)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.muli %first, %c2 : index
  %n = arith.addi %k, %c1 : index
  %a = pipeline.slot @g[%k] ring(2) at(0) stride(64) : memref<2xf32>
  %b = pipeline.slot @g[%n] ring(2) at(0) stride(64) : memref<2xf32>
  pipeline.mark @B[%k]
  // expected-error @below {{S8: device 0 in a segment of 1 updates sums @g part 1 where @sum has @g}}
  pipeline.start_all_reduce @sum[%first], %b, %a : memref<2xf32>, memref<2xf32>
  return
}
