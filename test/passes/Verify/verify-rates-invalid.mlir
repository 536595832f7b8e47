// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training=microbatches=1 --pipeline-verify=level=training --verify-diagnostics

// C47: what the learning rate goes through, from training to an update.

// A parameter that takes the rate of training.
!t = tensor<2xf32>
pipeline.stage @s0
pipeline.stage @s1
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
pipeline.variable @w.m : !t optimizer of @s0 {pipeline.parameter = @w}
func.func private @g(!t) -> !t
func.func private @lr(f32, index) -> f32
  attributes {pipeline.rate, pipeline.signature = #pipeline.signature<("lr", "counter") -> ("lr")>}
func.func private @s0.rate(f32, index) -> f32
  attributes {pipeline.rate_of = @s0, pipeline.signature = #pipeline.signature<("lr", "counter") -> ("lr")>}
func.func private @s1.rate(f32, index) -> f32
  attributes {pipeline.rate_of = @s1, pipeline.signature = #pipeline.signature<("lr", "counter") -> ("lr")>}
func.func private @half(f32) -> f32
  attributes {pipeline.rate_scale = 5.0e-1, pipeline.signature = #pipeline.signature<("lr") -> ("lr")>}
func.func private @rates(f32, index) -> f32
  attributes {pipeline.signature = #pipeline.signature<("lr", "counter") -> ("rate")>}
func.func private @next(f32, index) -> f32
  attributes {pipeline.signature = #pipeline.signature<("lr", "counter") -> ("rate over 1 steps")>}
func.func private @sgd(!t, !t {pipeline.into = 1}, !t {pipeline.into = 2}, f32) -> (!t, !t, !t)
  attributes {pipeline.signature = #pipeline.signature<(parameter, gradient, optimizer, "rate") -> (parameter, gradient, optimizer)>}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.read @w.grad : !t
  %1 = func.call @g(%0) : (!t) -> !t
  pipeline.write %1 to @w.grad : !t
}
pipeline.task @s0.U update of @s0(%t) {
  %base = pipeline.hyperparameter "lr" default(1.0e-2) : f32
  %a = func.call @lr(%base, %t) : (f32, index) -> f32
  %b = func.call @s0.rate(%a, %t) : (f32, index) -> f32
  // Drops what training makes of the base rate.
  %r = func.call @rates(%base, %t) : (f32, index) -> f32
  %w = pipeline.read @w : !t
  %g = pipeline.read @w.grad : !t
  %m = pipeline.read @w.m : !t
  // expected-error @+1 {{C47: takes the learning rate of @w through no function instead of @lr, @s0.rate}}
  %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)
  pipeline.write %2#0 to @w : !t
  pipeline.write %2#1 to @w.grad : !t
  pipeline.write %2#2 to @w.m : !t
}

// -----

// The rate before its stage has made its own of it.
@@
-  %r = func.call @rates(%base, %t) : (f32, index) -> f32
+  %r = func.call @rates(%a, %t) : (f32, index) -> f32
@@
+  // expected-error @+1 {{C47: takes the learning rate of @w through @lr instead of @lr, @s0.rate}}
   %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)

// -----

// That of another stage.
@@
-  %b = func.call @s0.rate(%a, %t) : (f32, index) -> f32
+  %b = func.call @s1.rate(%a, %t) : (f32, index) -> f32
@@
-  %r = func.call @rates(%base, %t) : (f32, index) -> f32
+  %r = func.call @rates(%b, %t) : (f32, index) -> f32
@@
+  // expected-error @+1 {{C47: takes the learning rate of @w through @lr, @s1.rate instead of @lr, @s0.rate}}
   %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)

// -----

// Scaled, which the parameter does not say.
@@
-  %r = func.call @rates(%base, %t) : (f32, index) -> f32
+  %c = func.call @half(%b) : (f32) -> f32
+  %r = func.call @rates(%c, %t) : (f32, index) -> f32
@@
+  // expected-error @+1 {{C47: takes the learning rate of @w through @lr, @s0.rate, @half instead of @lr, @s0.rate}}
   %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)

// -----

// Not scaled, which it does say,
@@
-pipeline.variable @w : !t parameter of @s0
+pipeline.variable @w : !t parameter of @s0 {pipeline.rate_scale = 5.0e-1}
@@
-  %r = func.call @rates(%base, %t) : (f32, index) -> f32
+  %r = func.call @rates(%b, %t) : (f32, index) -> f32
@@
+  // expected-error @+1 {{C47: takes the learning rate of @w through @lr, @s0.rate instead of @lr, @s0.rate, @half}}
   %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)

// -----

// or by another factor.
@@
-pipeline.variable @w : !t parameter of @s0
+pipeline.variable @w : !t parameter of @s0 {pipeline.rate_scale = 2.5e-1}
@@
+  // expected-error @+1 {{C47: is of @w, but no function scales the learning rate by 2.500000e-01}}
   %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)

// -----

// Two optimizers' numbers, one of the other.
@@
-  %r = func.call @rates(%base, %t) : (f32, index) -> f32
+  %c = func.call @next(%b, %t) : (f32, index) -> f32
+  %r = func.call @rates(%b, %t) : (f32, index) -> f32
@@
-  %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)
+  %2:3 = func.call @sgd(%w, %g, %m, %r) : (!t, !t, !t, f32) -> (!t, !t, !t)
+  // expected-error @+1 {{C47: takes the learning rate through @lr, @s0.rate, @next instead of one function of the rates to come}}
+  %p = pipeline.predict %2#0, %2#2, %c steps(1.0) : !t, f32
