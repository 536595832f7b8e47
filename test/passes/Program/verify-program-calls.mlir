// RUN: %expand-cases %s | penstock-opt --pipeline-verify-program --split-input-file \
// RUN:   --verify-diagnostics

// S11: behind a mark, a device makes the calls that its task states, each once
// and by position. This is what is changed below.

!b = memref<2xf32>
pipeline.stage @s devices [0]
pipeline.variable @w : tensor<2xf32> parameter of @s
pipeline.variable @g : tensor<2xf32> gradient of @s {pipeline.parameter = @w}
pipeline.channel @x : [tensor<2xf32>] source(input "x")
pipeline.channel @r : [tensor<2xf32>]
pipeline.channel @loss : [tensor<2xf32>] sink(loss)
pipeline.task @F forward of @s
  calls [#pipeline.call<@f [#pipeline.operand<read @x>, #pipeline.operand<read @w lag 0>, #pipeline.operand<write @r>, #pipeline.operand<write @loss>]>]
  puts [#pipeline.put<@loss from @loss>]
pipeline.task @B backward of @s
  calls [#pipeline.call<@b [#pipeline.operand<read @r>, #pipeline.operand<update @g>]>]
pipeline.task @U update of @s
  calls [#pipeline.call<@rate ["lr", unit]>, #pipeline.call<@u [#pipeline.operand<update @w>, #pipeline.operand<update @g>, #pipeline.computed<@rate -> f32 ["lr", unit] {}>]>]
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @f(!b, !b, !b {pipeline.out}, !b {pipeline.out})
func.func private @b(!b, !b {pipeline.into = 0})
func.func private @u(!b {pipeline.into = 0}, !b {pipeline.into = 1}, f32)
func.func private @rate(f32, index) -> f32
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %one = arith.constant 1 : index
  %end = arith.addi %first, %updates : index
  scf.for %n = %first to %end step %one {
    %x = pipeline.slot @x[%n] at(0) : !b
    pipeline.start_recv @x[%n], %x : !b
    pipeline.await @x[%n]
    pipeline.mark @F[%n]
    %w = pipeline.slot @w[%n] at(64) : !b
    %r = pipeline.slot @r[%n] at(128) : !b
    %l = pipeline.slot @loss[%n] at(192) : !b
    func.call @f(%x, %w, %r, %l) : (!b, !b, !b, !b) -> ()
    pipeline.start_send @loss[%n], %l : !b
    pipeline.await @loss[%n]
    pipeline.mark @B[%n]
    %g = pipeline.slot @g[%n] at(256) : !b
    func.call @b(%r, %g) : (!b, !b) -> ()
    pipeline.mark @U[%n]
    %lr = pipeline.hyperparameter "lr" default(1.0e-1) : f32
    %rate = func.call @rate(%lr, %n) : (f32, index) -> f32
    func.call @u(%w, %g, %rate) : (!b, !b, f32) -> ()
  }
  return
}

// -----

// A gradient is added twice.
@@
+// expected-note @+1 {{the task states its calls}}
 pipeline.task @B backward of @s
@@
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates calls @b in @B[0], which has made its 1 calls}}
+    func.call @b(%r, %g) : (!b, !b) -> ()
     pipeline.mark @U[%n]

// -----

// Never.
@@
+// expected-note @+1 {{the task states its calls}}
 pipeline.task @B backward of @s
@@
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates makes 0 of the 1 calls of @B[0]: that of @b is missing}}
     pipeline.mark @B[%n]
@@
-    func.call @b(%r, %g) : (!b, !b) -> ()

// -----

// The backward adds to the weights.
@@
+// expected-note @+1 {{the task states its calls}}
 pipeline.task @B backward of @s
@@
-    func.call @b(%r, %g) : (!b, !b) -> ()
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates calls @b, which updates @w as buffer 1 where @B updates @g}}
+    func.call @b(%r, %w) : (!b, !b) -> ()

// -----

// Two arguments of a type in each other's place.
@@
+// expected-note @+1 {{the task states its calls}}
 pipeline.task @F forward of @s
@@
-    func.call @f(%x, %w, %r, %l) : (!b, !b, !b, !b) -> ()
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates calls @f, which reads @w as buffer 0 where @F reads @x}}
+    func.call @f(%w, %x, %r, %l) : (!b, !b, !b, !b) -> ()

// -----

// Another number.
@@
+// expected-note @+1 {{the task states its calls}}
 pipeline.task @U update of @s
@@
-    func.call @u(%w, %g, %rate) : (!b, !b, f32) -> ()
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates calls @u in @U[0], whose number 0 is not #pipeline.computed<@rate -> f32 ["lr", unit] {}>}}
+    func.call @u(%w, %g, %lr) : (!b, !b, f32) -> ()

// -----

// The rate of the first update, for ever.
@@
+// expected-note @+1 {{the task states its calls}}
 pipeline.task @U update of @s
@@
-    %rate = func.call @rate(%lr, %n) : (f32, index) -> f32
+    // expected-error @+1 {{S11: device 0 in a segment of 2 updates calls @rate in @U[1], whose number 1 is not unit}}
+    %rate = func.call @rate(%lr, %first) : (f32, index) -> f32

// -----

// Another message is sent.
@@
+// expected-note @+1 {{the task states its messages}}
 pipeline.task @F forward of @s
@@
-    pipeline.start_send @loss[%n], %l : !b
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates sends message 0 of @loss from @r where @F puts it into @loss}}
+    pipeline.start_send @loss[%n], %r : !b

// -----

// Calls belong to runs.
@@
+  %early = pipeline.hyperparameter "lr" default(1.0e-1) : f32
   %end = arith.addi %first, %updates : index
@@
+    // expected-error @+1 {{S11: device 0 in a segment of 1 updates calls @rate outside of a run}}
+    %before = func.call @rate(%early, %n) : (f32, index) -> f32
     pipeline.mark @F[%n]

// -----

// S12: what a group sums is read behind the sum.
!b = memref<2xf32>
pipeline.stage @s devices [0]
pipeline.stage @t devices [0]
pipeline.variable @g : tensor<2xf32> gradient of @s
pipeline.variable @h : tensor<2xf32> gradient of @t
// expected-note @+1 {{the group}}
pipeline.group @sum members [[@g], [@h]]
pipeline.task @B backward of @s
pipeline.task @U update of @s
pipeline.schedule @train microbatches(1)
pipeline.arena 0 bytes(1024)
func.func private @b(!b {pipeline.into = 0})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %one = arith.constant 1 : index
  %end = arith.addi %first, %updates : index
  scf.for %n = %first to %end step %one {
    pipeline.mark @B[%n]
    %g = pipeline.slot @g[%n] at(0) : !b
    func.call @b(%g) : (!b) -> ()
    pipeline.mark @U[%n]
    // expected-error @+1 {{S12: device 0 in a segment of 1 updates reads @g in @U[0] before @sum is summed for this update}}
    func.call @b(%g) : (!b) -> ()
  }
  return
}
