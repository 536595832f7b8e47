// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training \
// RUN:   --pipeline-verify=level=program --verify-diagnostics

// One case for each rule that needs more than one op, by its number.

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.channel @x : [tensor<2xf32>] source(input "x")
pipeline.schedule @train microbatches(1)
func.func @train.0(%n: index, %b: memref<2xf32>, %c: memref<3xf32>) {
  return
}

// -----

// C26
@@
+  // expected-error @+1 {{C26: has buffer 'memref<3xf32>' for @w of 'tensor<2xf32>'}}
+  %s = pipeline.slot @w[%n] : memref<3xf32>
   return

// -----

@@
+  // expected-error @+1 {{C26: names a field of a variable}}
+  %s = pipeline.slot @w[%n] field(0) : memref<2xf32>
   return

// -----

@@
+  // expected-error @+1 {{C26: names field 1 of @x, which has 1}}
+  %s = pipeline.slot @x[%n] field(1) : memref<2xf32>
   return

// -----

@@
+  // expected-error @+1 {{C26: names @y, which is no variable or channel of this module}}
+  %s = pipeline.slot @y[%n] : memref<2xf32>
   return

// -----

// C27
@@
+  // expected-error @+1 {{C27: moves 'memref<3xf32>' over channel @x of}}
+  pipeline.start_recv @x[%n], %c : memref<3xf32>
   return

// -----

@@
+  // expected-error @+1 {{C44: names @y, which is no channel of this module}}
+  pipeline.start_send @y[%n], %b : memref<2xf32>
   return

// -----

// C28
@@
+  // expected-error @+1 {{C44: names @y, which is no channel of this module}}
+  pipeline.await @y[%n]
   return

// -----

@@
+  // expected-error @+1 {{C44: names @y, which is no task of this module}}
+  pipeline.mark @y[%n]
   return

// -----

@@
+  // expected-error @+1 {{C43: makes a tensor at level program}}
+  %y = tensor.empty() : tensor<2xf32>
   return

// -----

// C27, of sums.
@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
+pipeline.variable @v : tensor<2xf32> gradient of @s0
+pipeline.variable @w : tensor<2xf32> gradient of @s1
+pipeline.group @g members [[@v], [@w]]
@@
+  // expected-error @+1 {{C27: sums 'memref<3xf32>' where group @g has 'tensor<2xf32>'}}
+  pipeline.start_all_reduce @g[%n], %c : memref<3xf32>
   return

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
+pipeline.variable @v : tensor<2xf32> gradient of @s0
+pipeline.variable @v2 : tensor<3xf32> gradient of @s0
+pipeline.variable @w : tensor<2xf32> gradient of @s1
+pipeline.variable @w2 : tensor<3xf32> gradient of @s1
+pipeline.group @g members [[@v, @v2], [@w, @w2]]
@@
+  // expected-error @+1 {{C27: sums 1 buffers, group @g has 2 of each member}}
+  pipeline.start_all_reduce @g[%n], %b : memref<2xf32>
   return

// -----

// C28: one bound for a loop.
@@
+  %c1 = arith.constant 1 : index
+  scf.for %t = %n to %n step %c1 {
+    %a = pipeline.bound %t
+    // expected-error @+1 {{C28: is the second of its loop}}
+    %d = pipeline.bound %t
+  }
   return

// -----

// C30
pipeline.stage @s devices [0]
pipeline.schedule @train microbatches(2)
// expected-error @+1 {{C30: is the second schedule with the role train}}
pipeline.schedule @again microbatches(2)

// -----

// C30: by the tasks that its functions execute.
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.task @s0.B backward of @s0
pipeline.task @s0.E evaluate of @s0
func.func @evaluate.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @evaluate, pipeline.device = 0 : i64} {
  pipeline.mark @s0.E[%first]
  return
}
// expected-error @+1 {{C30: has the role infer, but what it runs is to evaluate}}
pipeline.schedule @evaluate to infer microbatches(1)
