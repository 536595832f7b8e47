// RUN: %expand-cases %s | penstock-opt --pipeline-verify-program --split-input-file \
// RUN:   --verify-diagnostics

// Segments of up to 4 updates are executed, if the functions repeat themselves by
// then, and otherwise longer ones. What they never come to is not covered.

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<f32>] source(input "x") slots(1)
pipeline.task @F forward of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @f(memref<f32>)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c1000 = arith.constant 1000 : index
  %true = arith.constant true
  %end = arith.addi %first, %updates : index
  scf.for %t = %first to %end step %c1 {
    %n = arith.subi %t, %first : index
    scf.if %true {
      %x = pipeline.slot @x[%t] at(0) : memref<f32>
      pipeline.start_recv @x[%t], %x : memref<f32>
      pipeline.await @x[%t]
      pipeline.mark @F[%t]
      func.call @f(%x) : (memref<f32>) -> ()
    }
  }
  return
}

// -----

// The loop never has more than 4 iterations.
@@
-  %end = arith.addi %first, %updates : index
-  scf.for %t = %first to %end step %c1 {
+  %end = arith.addi %first, %c4 : index
+  // expected-error @below {{S8: has no more iterations in a segment of more updates}}
+  scf.for %t = %first to %end step %c1 {
@@
-    scf.if %true {
+    %is = arith.cmpi ult, %n, %updates : index
+    scf.if %is {

// -----

// Nothing is done from update 9 on, in that update, or in segments of 9 or more.
@@
-pipeline.task @F forward of @s
+// expected-error @below {{S1: runs 9 times instead of 10 in a segment of 10 updates of}}
+pipeline.task @F forward of @s
@@
-    scf.if %true {
+    %is = arith.cmpi ult, %n, %c9 : index
+    scf.if %is {

// -----

@@
-pipeline.task @F forward of @s
+// expected-error @below {{S1: runs 9 times instead of 10 in a segment of 10 updates of}}
+pipeline.task @F forward of @s
@@
-    scf.if %true {
+    %is = arith.cmpi ne, %n, %c9 : index
+    scf.if %is {

// -----

@@
-pipeline.task @F forward of @s
+// expected-error @below {{S1: runs 0 times instead of 9 in a segment of 9 updates of}}
+pipeline.task @F forward of @s
@@
-    scf.if %true {
+    %is = arith.cmpi ult, %updates, %c9 : index
+    scf.if %is {

// -----

// The same, after very many updates.
@@
-    scf.if %true {
+    // expected-error @below {{S8: does not repeat itself within a segment of 4 updates, so that nothing is known of longer ones}}
+    %is = arith.cmpi ult, %n, %c1000 : index
+    scf.if %is {

// -----

@@
-    scf.if %true {
+    // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+    %is = arith.cmpi ne, %n, %c1000 : index
+    scf.if %is {

// -----

@@
-    scf.if %true {
+    // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+    %is = arith.cmpi ult, %updates, %c1000 : index
+    scf.if %is {

// -----

// Numbers that do not grow evenly.
@@
-      pipeline.mark @F[%t]
+      // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+      %m = arith.minsi %n, %c1000 : index
+      %k = arith.addi %first, %m : index
+      pipeline.mark @F[%k]

// -----

@@
-func.func @train.0(%first: index, %updates: index)
+// expected-error @below {{S8: does not repeat itself within 4 updates}}
+func.func @train.0(%first: index, %updates: index)
@@
-      pipeline.mark @F[%t]
+      %m = arith.remui %n, %c1000 : index
+      %k = arith.addi %first, %m : index
+      pipeline.mark @F[%k]

// -----

@@
-      pipeline.mark @F[%t]
+      %m = arith.addi %n, %c1000 : index
+      %some = arith.divui %c9, %m : index
+      %k = arith.addi %t, %some : index
+      // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+      pipeline.mark @F[%k]

// -----

// The quotient of a number that becomes negative.
@@
-      pipeline.mark @F[%t]
+      %down = arith.subi %c1000, %n : index
+      // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+      %halfDown = arith.divui %down, %c2 : index
+      %up = arith.addi %n, %c1 : index
+      %halfUp = arith.divui %up, %c2 : index
+      %both = arith.addi %halfDown, %halfUp : index
+      %c500 = arith.constant 500 : index
+      %none = arith.subi %both, %c500 : index
+      %k = arith.addi %t, %none : index
+      pipeline.mark @F[%k]

// -----

// A loop that becomes longer from one iteration to the next.
@@
-    scf.if %true {
+    // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+    scf.for %j = %c0 to %n step %c1 {
+    }
+    scf.if %true {

// -----

// The first updates may differ, and others alternate: the rest is a repetition.
@@
-      pipeline.mark @F[%t]
+      %isLater = arith.cmpi ugt, %n, %c1 : index
+      scf.if %isLater {
+        pipeline.mark @F[%t]
+      } else {
+        %k = arith.addi %first, %n : index
+        pipeline.mark @F[%k]
+      }

// -----

@@
-      pipeline.mark @F[%t]
+      %turn = arith.remui %n, %c9 : index
+      %isFirst = arith.cmpi eq, %turn, %c0 : index
+      scf.if %isFirst {
+        %ninth = arith.divui %n, %c9 : index
+        %whole = arith.muli %ninth, %c9 : index
+        %k = arith.addi %first, %whole : index
+        pipeline.mark @F[%k]
+      } else {
+        pipeline.mark @F[%t]
+      }

// -----

// The end of the loop is another one in long segments.
@@
-  scf.for %t = %first to %end step %c1 {
+  %most = arith.addi %first, %c1000 : index
+  %least = arith.minsi %end, %most : index
+  // expected-error @below {{S8: does not repeat itself within a segment of 4 updates}}
+  scf.for %t = %first to %least step %c1 {

// -----

// Data may depend on any update, as a learning rate on update 1000.
@@
-      pipeline.mark @F[%t]
+      pipeline.mark @F[%t]
+      %turn = arith.remui %n, %c1000 : index
+      %isLast = arith.cmpi eq, %turn, %c9 : index
+      %one = arith.constant 1.0 : f32
+      %two = arith.constant 2.0 : f32
+      %rate = arith.select %isLast, %one, %two : f32

// -----

// Segments begin anywhere, and do the same wherever that is.
@@
-    scf.if %true {
+    // expected-error @below {{S8: is decided otherwise where a segment begins later}}
+    %is = arith.cmpi ult, %first, %c1000 : index
+    scf.if %is {

// -----

@@
-      pipeline.mark @F[%t]
+      // expected-error @below {{S8: is decided otherwise where a segment begins later}}
+      %k = arith.minsi %t, %c1000 : index
+      pipeline.mark @F[%k]
