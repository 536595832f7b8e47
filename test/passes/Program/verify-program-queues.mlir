// RUN: %expand-cases %s | penstock-opt --pipeline-verify-program --split-input-file \
// RUN:   --verify-diagnostics

// Orders of transfers that would hang in a transport without tags and without
// room in between, as NCCL is.

// N1. A device's transfers are one queue. Each device here sends before it
// receives, and would do what it waits for later; as threads, with a slot and
// staging for each message, they would get through.

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @h : [tensor<f32>] slots(1) staging(1)
pipeline.channel @d : [tensor<f32>] slots(1) staging(1)
pipeline.task @F0 forward of @s0
pipeline.task @F1 forward of @s1
// expected-note @below {{device 0: at await @d[0], next transfer send @h[0], which waits for device 1}}
// expected-note @below {{device 1: at await @h[0], next transfer send @d[0], which waits for device 0}}
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
pipeline.arena 1 bytes(1024)
func.func private @read(memref<f32>)
func.func private @write(memref<f32> {pipeline.out})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  pipeline.mark @F0[%first]
  %a = pipeline.slot @h[%first] at(0) : memref<f32>
  func.call @write(%a) : (memref<f32>) -> ()
  pipeline.start_send @h[%first], %a : memref<f32>
  %b = pipeline.slot @d[%first] at(64) : memref<f32>
  pipeline.start_recv @d[%first], %b : memref<f32>
  // expected-error @below {{S7: device 0 in a segment of 1 updates deadlocks: transfers of a device end in the order of its calls (N1)}}
  pipeline.await @d[%first]
  func.call @read(%b) : (memref<f32>) -> ()
  pipeline.await @h[%first]
  return
}
func.func @train.1(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  pipeline.mark @F1[%first]
  %a = pipeline.slot @d[%first] at(0) : memref<f32>
  func.call @write(%a) : (memref<f32>) -> ()
  pipeline.start_send @d[%first], %a : memref<f32>
  %b = pipeline.slot @h[%first] at(64) : memref<f32>
  pipeline.start_recv @h[%first], %b : memref<f32>
  pipeline.await @h[%first]
  func.call @read(%b) : (memref<f32>) -> ()
  pipeline.await @d[%first]
  return
}

// -----

// N2. Two messages between the same devices, in another order at either end.
@@
-pipeline.channel @d : [tensor<f32>] slots(1) staging(1)
+pipeline.channel @g : [tensor<f32>] slots(1) staging(1)
@@
+// expected-note @below {{device 0 sends @h[0], @g[0]}}
+// expected-note @below {{device 1 receives @g[0], @h[0]}}
 pipeline.schedule @train microbatches(1)
@@
+  %b = pipeline.slot @g[%first] at(64) : memref<f32>
+  func.call @write(%b) : (memref<f32>) -> ()
+  // expected-error @below {{N2: message 0 from device 0 to device 1 in a segment of 1 updates is sent as @h[0] and received as @g[0]}}
   pipeline.start_send @h[%first], %a : memref<f32>
-  %b = pipeline.slot @d[%first] at(64) : memref<f32>
-  pipeline.start_recv @d[%first], %b : memref<f32>
-  pipeline.await @d[%first]
-  func.call @read(%b) : (memref<f32>) -> ()
+  pipeline.start_send @g[%first], %b : memref<f32>
   pipeline.await @h[%first]
+  pipeline.await @g[%first]
@@
-  %a = pipeline.slot @d[%first] at(0) : memref<f32>
-  func.call @write(%a) : (memref<f32>) -> ()
-  pipeline.start_send @d[%first], %a : memref<f32>
+  %a = pipeline.slot @g[%first] at(0) : memref<f32>
+  pipeline.start_recv @g[%first], %a : memref<f32>
@@ func.func @train.1
   pipeline.await @h[%first]
+  func.call @read(%a) : (memref<f32>) -> ()
   func.call @read(%b) : (memref<f32>) -> ()
-  pipeline.await @d[%first]

// -----

// N3. Two sums of the same devices, in another order on either.

pipeline.stage @s devices [0]
pipeline.stage @r devices [1]
pipeline.variable @a : tensor<2xf32> gradient of @s
pipeline.variable @b : tensor<2xf32> gradient of @r
pipeline.variable @c : tensor<2xf32> gradient of @s
pipeline.variable @d : tensor<2xf32> gradient of @r
pipeline.group @one members [[@a], [@b]]
pipeline.group @two members [[@c], [@d]]
pipeline.task @B backward of @s
pipeline.task @R backward of @r
// expected-note @below {{device 0 sums @one[0], @two[0]}}
// expected-note @below {{device 1 sums @two[0], @one[0]}}
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
pipeline.arena 1 bytes(1024)
func.func private @add(memref<2xf32> {pipeline.into = 0 : i64})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %a = pipeline.slot @a[%first] at(0) : memref<2xf32>
  %c = pipeline.slot @c[%first] at(64) : memref<2xf32>
  pipeline.mark @B[%first]
  func.call @add(%a) : (memref<2xf32>) -> ()
  func.call @add(%c) : (memref<2xf32>) -> ()
  // expected-error @below {{N3: sum 0 of devices 0 and 1 in a segment of 1 updates is @one[0] on device 0 and @two[0] on device 1}}
  pipeline.start_all_reduce @one[%first], %a : memref<2xf32>
  pipeline.start_all_reduce @two[%first], %c : memref<2xf32>
  pipeline.await @two[%first]
  return
}
func.func @train.1(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  %b = pipeline.slot @b[%first] at(0) : memref<2xf32>
  %d = pipeline.slot @d[%first] at(64) : memref<2xf32>
  pipeline.mark @R[%first]
  func.call @add(%b) : (memref<2xf32>) -> ()
  func.call @add(%d) : (memref<2xf32>) -> ()
  pipeline.start_all_reduce @two[%first], %d : memref<2xf32>
  pipeline.start_all_reduce @one[%first], %b : memref<2xf32>
  pipeline.await @one[%first]
  return
}

// -----

// A sum is one node of the queue of each of its devices: what one has behind it
// the other one may not have before it.
@@
-pipeline.group @two members [[@c], [@d]]
+pipeline.channel @h : [tensor<f32>] slots(1) staging(1)
+func.func private @read(memref<f32>)
+func.func private @write(memref<f32> {pipeline.out})
@@
+// expected-note @below {{device 0: at await @one[0], next transfer send @h[0], which waits for device 1}}
+// expected-note @below {{device 1: at await @one[0], next transfer sum @one[0], which waits for device 0}}
 pipeline.schedule @train microbatches(1)
@@
-  %c = pipeline.slot @c[%first] at(64) : memref<2xf32>
+  %h = pipeline.slot @h[%first] at(64) : memref<f32>
   pipeline.mark @B[%first]
+  func.call @write(%h) : (memref<f32>) -> ()
+  pipeline.start_send @h[%first], %h : memref<f32>
   func.call @add(%a) : (memref<2xf32>) -> ()
-  func.call @add(%c) : (memref<2xf32>) -> ()
@@
-  pipeline.start_all_reduce @two[%first], %c : memref<2xf32>
-  pipeline.await @two[%first]
+  // expected-error @below {{S7: device 0 in a segment of 1 updates deadlocks: transfers of a device end in the order of its calls (N1)}}
+  pipeline.await @one[%first]
+  pipeline.await @h[%first]
@@
-  %d = pipeline.slot @d[%first] at(64) : memref<2xf32>
+  %h = pipeline.slot @h[%first] at(64) : memref<f32>
@@
-  func.call @add(%d) : (memref<2xf32>) -> ()
-  pipeline.start_all_reduce @two[%first], %d : memref<2xf32>
@@
   pipeline.await @one[%first]
+  pipeline.start_recv @h[%first], %h : memref<f32>
+  pipeline.await @h[%first]
+  func.call @read(%h) : (memref<f32>) -> ()
