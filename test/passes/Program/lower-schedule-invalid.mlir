// RUN: %expand-cases %s | penstock-opt --pipeline-lower-schedule \
// RUN:   --split-input-file --verify-diagnostics

// One task, each time with one thing wrong.

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source(input "x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates {
      pipeline.repeat times 2 {
        pipeline.recv @x
        pipeline.run @F
        pipeline.send @loss
      }
    }
  }
}

// -----

@@ pipeline.send @loss
       }
     }
   }
+  pipeline.order 1 {
+    pipeline.repeat updates {
+      // expected-error @below {{runs @F on device 1, where its stage is not}}
+      pipeline.run @F
+    }
+  }

// -----

@@
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
@@
+  // expected-error @below {{@f has no bufferized form: run pipeline-bufferize-functions}}
   %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>

// -----

@@
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
+func.func private @f.kernel(memref<4xf32>, memref<5xf32>)
@@
+  // expected-error @below {{does not fit the bufferized form of @f}}
   %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>

// -----

@@
-      pipeline.repeat times 2 {
-        pipeline.recv @x
+      // expected-error @below {{S1: @F runs 1 times instead of 2 in one iteration}}
         pipeline.run @F
-        pipeline.send @loss
@@ pipeline.send @loss
-      }

// -----

@@
-    pipeline.repeat updates {
-      pipeline.repeat times 2 {
-        pipeline.recv @x
-        pipeline.run @F
-        pipeline.send @loss
+    pipeline.repeat microbatches {
+      // expected-error @below {{S1: @F must run once in every 1 microbatches}}
+      pipeline.run @F every(2)
@@ pipeline.send @loss
-      }

// -----

@@
-      pipeline.repeat times 2 {
-        pipeline.recv @x
+      pipeline.repeat times 4 {
+        // expected-error @below {{does not handle evenly spaced microbatches: give entries of @F in one loop the same 'ahead', or write the loop out}}
+        pipeline.run @F ahead(2)
         pipeline.run @F
-        pipeline.send @loss

// -----

@@
-      pipeline.repeat times 2 {
-        pipeline.recv @x
         pipeline.run @F
-        pipeline.send @loss
+      // expected-error @below {{entries of @F run ahead by 0 and 2 iterations, so that their numbers mix}}
+      pipeline.run @F ahead(2)
@@ pipeline.send @loss
-      }

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
+// expected-error @below {{has no staging: run pipeline-size-storage first}}
+pipeline.channel @loss : [tensor<4xf32>] sink(loss)

// -----

@@
-pipeline.channel @x : [tensor<4xf32>] source(input "x") slots(3)
+// expected-error @below {{has no slots: run pipeline-size-storage first}}
+pipeline.channel @x : [tensor<4xf32>] source(input "x")

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
@@
+  // expected-error @below {{a result of a task's function must be put or written}}
   %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>
@@
-        pipeline.send @loss

// -----

@@
-pipeline.channel @x : [tensor<4xf32>] source(input "x") slots(3)
+pipeline.channel @x : [tensor<4xf32>] slots(3)
@@
+  // expected-error @below {{takes from @x, into which "train" runs no task that puts}}
   %x = pipeline.take @x : tensor<4xf32>

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
-pipeline.task @F forward of @s(%k) {
-  %x = pipeline.take @x : tensor<4xf32>
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>
-}
+// expected-error @below {{is run by "train" but has no body}}
+pipeline.task @F forward of @s
@@
-        pipeline.send @loss

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
+pipeline.variable @m : tensor<4xf32> statistic of @s
@@
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>
+  // expected-error @below {{only a result of a call can be written: nothing is ever copied}}
+  pipeline.write %x to @m : tensor<4xf32>
@@
-        pipeline.send @loss

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
+pipeline.channel @r : [tensor<4xf32>] slots(3)
 func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
@@
-  pipeline.put %y to @loss : tensor<4xf32>
+  // expected-error @below {{puts into @r, from which "train" runs no task that takes}}
+  pipeline.put %y to @r : tensor<4xf32>
@@
-        pipeline.send @loss

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
+pipeline.channel @r : [tensor<4xf32>] slots(3)
+pipeline.variable @m : tensor<4xf32> statistic of @s
 func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
@@
+  // expected-error @below {{a value cannot be written to a variable and put into a channel}}
   %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>
+  pipeline.put %y to @r : tensor<4xf32>
+  pipeline.write %y to @m : tensor<4xf32>
+}
+pipeline.task @B backward of @s(%k) {
+  %x = pipeline.take @r : tensor<4xf32>
@@
-        pipeline.send @loss
+        pipeline.run @B

// -----

@@
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
+pipeline.variable @m : tensor<4xf32> statistic of @s
+pipeline.variable @n : tensor<4xf32> statistic of @s
@@
-  pipeline.put %y to @loss : tensor<4xf32>
+  // expected-error @below {{writes a value that is written twice}}
+  pipeline.write %y to @m : tensor<4xf32>
+  pipeline.write %y to @n : tensor<4xf32>
@@
-        pipeline.send @loss

// -----

@@
+// expected-error @below {{is sent, but no task of the schedule puts}}
 pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
@@
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>

// -----

@@
-pipeline.channel @x : [tensor<4xf32>] source(input "x") slots(3)
 pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
+pipeline.variable @w : tensor<4xf32> parameter of @s
+func.func private @f(tensor<4xf32> {pipeline.into = 0 : i64}) -> tensor<4xf32>
 pipeline.task @F forward of @s(%k) {
-  %x = pipeline.take @x : tensor<4xf32>
+  %w = pipeline.read @w : tensor<4xf32>
+  // expected-error @below {{only taken and read values and results of calls have storage}}
+  %x = pipeline.compensate %w, %w tau(1.0) : tensor<4xf32>
@@
-        pipeline.recv @x

// -----

@@
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
+func.func private @f(tensor<4xf32> {pipeline.into = 0 : i64}) -> tensor<4xf32>
@@
+  // expected-error @below {{stores a value of @f elsewhere than its argument 0, which the function changes in place; only a variable with one version can be changed in place}}
   pipeline.put %y to @loss : tensor<4xf32>

// -----

@@
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
+pipeline.variable @w : tensor<4xf32> parameter of @s
+pipeline.weight_stash @w depth(2)
+func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
+func.func private @f.kernel(memref<4xf32>, memref<4xf32>, memref<4xf32>)
+func.func private @u(tensor<4xf32>) -> tensor<4xf32>
+func.func private @u.kernel(memref<4xf32>, memref<4xf32>)
+// expected-error @below {{reads @w without a lag: run pipeline-assign-versions}}
 pipeline.task @F forward of @s(%k) {
@@
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
+  %w = pipeline.read @w : tensor<4xf32>
+  %y = func.call @f(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
   pipeline.put %y to @loss : tensor<4xf32>
+}
+pipeline.task @U update of @s(%t) {
+  %w = pipeline.read @w : tensor<4xf32>
+  %y = func.call @u(%w) : (tensor<4xf32>) -> tensor<4xf32>
+  pipeline.write %y to @w : tensor<4xf32>
@@
         pipeline.send @loss
       }
+      pipeline.run @U

// -----

@@
-pipeline.channel @x : [tensor<4xf32>] source(input "x") slots(3)
-pipeline.channel @loss : [tensor<4xf32>] sink(loss) staging(1)
-func.func private @f(tensor<4xf32>) -> tensor<4xf32>
-func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
+pipeline.channel @x : [tensor<f32>] source(input "x") slots(3)
+pipeline.channel @r : [tensor<f32>, tensor<f32>] slots(1)
+pipeline.channel @q : [tensor<f32>] slots(1)
+func.func private @f(tensor<f32>, tensor<f32>) -> tensor<f32>
+func.func private @f.kernel(memref<f32>, memref<f32>, memref<f32>)
 pipeline.task @F forward of @s(%k) {
-  %x = pipeline.take @x : tensor<4xf32>
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>
+  %x = pipeline.take @x : tensor<f32>
+  pipeline.put %x to @r : tensor<f32>
+}
+pipeline.task @B backward of @s(%k) {
+  // expected-error @below {{takes what no task of the schedule puts}}
+  %x, %y = pipeline.take @r : tensor<f32>, tensor<f32>
+  pipeline.put %y to @q : tensor<f32>
+}
+pipeline.task @W weight_grad of @s(%k) {
+  %y = pipeline.take @q : tensor<f32>
@@
-        pipeline.send @loss
+        pipeline.run @B
+        pipeline.run @W

// -----

@@
-pipeline.schedule @train microbatches(2) {
+pipeline.schedule @train microbatches(5) {
   pipeline.order 0 {
-    pipeline.repeat updates {
-      pipeline.repeat times 2 {
+    // expected-error @below {{S1: goes on by 2 microbatches, which do not divide the 5 of an update}}
+    pipeline.repeat microbatches 2 {
+      pipeline.recv @x
@@
+      pipeline.run @F
+      pipeline.send @loss
         pipeline.send @loss
@@ pipeline.send @loss
-      }

// -----

@@
-pipeline.schedule @train microbatches(2) {
+pipeline.schedule @train microbatches(4) {
   pipeline.order 0 {
-    pipeline.repeat updates {
-      pipeline.repeat times 2 {
+    pipeline.repeat microbatches 2 {
+      // expected-error @below {{S1: 1 entries instead of 2 for one channel or group in one iteration of a loop over microbatches}}
         pipeline.recv @x
@@
+      pipeline.run @F
+      pipeline.send @loss
         pipeline.send @loss
@@ pipeline.send @loss
-      }

// -----

@@
+pipeline.variable @w : tensor<4xf32> parameter of @s
 pipeline.task @F forward of @s(%k) {
@@
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
-  pipeline.put %y to @loss : tensor<4xf32>
+  %w = pipeline.read @w : tensor<4xf32>
+  // expected-error @below {{only taken values and results of calls can be put: nothing is ever copied}}
+  pipeline.put %w to @loss : tensor<4xf32>

// -----

@@
+pipeline.variable @w : tensor<4xf32> parameter of @s
 pipeline.task @F forward of @s(%k) {
@@
-  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
+  %w = pipeline.read @w : tensor<4xf32>
+  // expected-error @below {{is not lowered to device programs yet}}
+  %c = pipeline.compensate %w, %w tau(1.0) : tensor<4xf32>
+  %y = func.call @f(%c) : (tensor<4xf32>) -> tensor<4xf32>

// -----

// Values that go in a circle are stored nowhere.
pipeline.stage @s devices [0]
pipeline.channel @a : [tensor<4xf32>] slots(1)
pipeline.channel @b : [tensor<4xf32>] slots(1)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @a : tensor<4xf32>
  // expected-error @below {{puts a value that tasks pass on in a circle and none makes}}
  pipeline.put %x to @b : tensor<4xf32>
}
pipeline.task @B backward of @s(%k) {
  %x = pipeline.take @b : tensor<4xf32>
  pipeline.put %x to @a : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates {
      pipeline.repeat times 2 {
        pipeline.run @F
        pipeline.run @B
      }
    }
  }
}
