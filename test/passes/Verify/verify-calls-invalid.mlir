// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training=microbatches=1 --pipeline-verify=level=training --verify-diagnostics

// C38: functions of tasks say what their arguments and results stand for.

// The weight and its gradient.
!t = tensor<2xf32>
pipeline.stage @s0
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
func.func private @sgd(!t, !t {pipeline.into = 1}, f32) -> (!t, !t)
  attributes {pipeline.signature = #pipeline.signature<(parameter, gradient, "lr") -> (parameter, gradient)>}
func.func private @g(!t) -> !t
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.read @w.grad : !t
  %1 = func.call @g(%0) : (!t) -> !t
  pipeline.write %1 to @w.grad : !t
}
pipeline.task @s0.U update of @s0(%t) {
  %lr = pipeline.hyperparameter "lr" default(1.0e-2) : f32
  %w = pipeline.read @w : !t
  %g = pipeline.read @w.grad : !t
  // expected-error @+1 {{C38: gives @sgd as argument 0 @w.grad of role gradient, which stands for parameter}}
  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
  pipeline.write %2#0 to @w : !t
  pipeline.write %2#1 to @w.grad : !t
}

// -----

// The gradient of another parameter.
@@
-pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
+pipeline.variable @v : !t parameter of @s0
+pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @v}
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
+  // expected-error @+1 {{C38: gives @sgd as argument 1 @w.grad of role gradient, which belongs to @v, and others that belong to @w}}
+  %2:2 = func.call @sgd(%w, %g, %lr) : (!t, !t, f32) -> (!t, !t)

// -----

// Results in each other's place, another number, and states in another order.
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
-  pipeline.write %2#0 to @w : !t
-  pipeline.write %2#1 to @w.grad : !t
+  %2:2 = func.call @sgd(%w, %g, %lr) : (!t, !t, f32) -> (!t, !t)
+  pipeline.write %2#1 to @w : !t
+  // expected-error @+1 {{C38: writes result 0 of @sgd, a new parameter of @w, to @w.grad}}
+  pipeline.write %2#0 to @w.grad : !t

// -----

@@
-  %lr = pipeline.hyperparameter "lr" default(1.0e-2) : f32
+  %lr = pipeline.hyperparameter "momentum" default(0.9) : f32
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
+  // expected-error @+1 {{C38: gives @sgd as argument 2 "momentum", which stands for "lr"}}
+  %2:2 = func.call @sgd(%w, %g, %lr) : (!t, !t, f32) -> (!t, !t)

// -----

@@
 pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.m : !t optimizer of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.v : !t optimizer of @s0 {pipeline.parameter = @w}
-func.func private @sgd(!t, !t {pipeline.into = 1}, f32) -> (!t, !t)
-  attributes {pipeline.signature = #pipeline.signature<(parameter, gradient, "lr") -> (parameter, gradient)>}
+func.func private @adam(!t, !t, !t {pipeline.into = 1}, !t {pipeline.into = 2}) -> (!t, !t, !t)
+  attributes {pipeline.signature = #pipeline.signature<(parameter, gradient, optimizer, optimizer) -> (parameter, optimizer, optimizer)>}
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
-  pipeline.write %2#0 to @w : !t
-  pipeline.write %2#1 to @w.grad : !t
+  %m = pipeline.read @w.m : !t
+  %v = pipeline.read @w.v : !t
+  // expected-error @+1 {{C38: gives @adam @w.v before @w.m, which comes first}}
+  %2:3 = func.call @adam(%w, %g, %v, %m) : (!t, !t, !t, !t) -> (!t, !t, !t)
+  pipeline.write %2#0 to @w : !t
+  pipeline.write %2#1 to @w.v : !t
+  pipeline.write %2#2 to @w.m : !t

// -----

// The same of states that were just made.
@@
 pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.m : !t optimizer of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.v : !t optimizer of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.forward : !t compensation of @s0 {pipeline.parameter = @w}
-func.func private @sgd(!t, !t {pipeline.into = 1}, f32) -> (!t, !t)
-  attributes {pipeline.signature = #pipeline.signature<(parameter, gradient, "lr") -> (parameter, gradient)>}
+func.func private @adam(!t, !t, !t {pipeline.into = 1}, !t {pipeline.into = 2}) -> (!t, !t, !t)
+  attributes {pipeline.signature = #pipeline.signature<(parameter, gradient, optimizer, optimizer) -> (parameter, optimizer, optimizer)>}
+func.func private @direction(!t, !t, !t) -> !t
+  attributes {pipeline.signature = #pipeline.signature<(parameter, optimizer, optimizer) -> (optimizer)>}
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
-  pipeline.write %2#0 to @w : !t
-  pipeline.write %2#1 to @w.grad : !t
+  %m = pipeline.read @w.m : !t
+  %v = pipeline.read @w.v : !t
+  %2:3 = func.call @adam(%w, %g, %m, %v) : (!t, !t, !t, !t) -> (!t, !t, !t)
+  pipeline.write %2#0 to @w : !t
+  pipeline.write %2#1 to @w.m : !t
+  pipeline.write %2#2 to @w.v : !t
+  // expected-error @+1 {{C38: gives @direction @w.v before @w.m, which comes first}}
+  %3 = func.call @direction(%2#0, %2#2, %2#1) : (!t, !t, !t) -> !t
+  %4 = pipeline.predict %2#0, %3, %lr steps(1.0) : !t, f32
+  pipeline.write %4 to @w.forward : !t

// -----

// The delta is no weight to adjust: that is a parameter or a master,
@@
 pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.delta : !t compensation of @s0 {pipeline.kind = "delta", pipeline.parameter = @w}
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
-  pipeline.write %2#0 to @w : !t
-  pipeline.write %2#1 to @w.grad : !t
+  %d = pipeline.read @w.delta : !t
+  // expected-error @+1 {{C38: adjusts @w.delta of role compensation, which is no weight}}
+  %2 = pipeline.compensate %d, %d tau(1.0) : !t
+  pipeline.write %2 to @w : !t

// -----

// and moves along what is made to be a direction.
@@
 pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.m : !t optimizer of @s0 {pipeline.parameter = @w}
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
-  pipeline.write %2#0 to @w : !t
-  pipeline.write %2#1 to @w.grad : !t
+  %m = pipeline.read @w.m : !t
+  // expected-error @+1 {{C38: adjusts @w.grad of role gradient, which is no weight}}
+  %2 = pipeline.predict %g, %m, %lr steps(1.0) : !t, f32
+  pipeline.write %2 to @w : !t

// -----

@@
 pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.m : !t optimizer of @s0 {pipeline.parameter = @w}
+pipeline.variable @w.v : !t optimizer of @s0 {pipeline.parameter = @w}
@@
-  %2:2 = func.call @sgd(%g, %w, %lr) : (!t, !t, f32) -> (!t, !t)
-  pipeline.write %2#0 to @w : !t
-  pipeline.write %2#1 to @w.grad : !t
+  %v = pipeline.read @w.v : !t
+  // expected-error @+1 {{C38: moves along @w.v of role optimizer, one of 2 states of @w}}
+  %2 = pipeline.predict %w, %v, %lr steps(1.0) : !t, f32
+  pipeline.write %2 to @w : !t

// -----

// What a function of one task takes is named after what made it.
!t = tensor<2xf32>
pipeline.stage @s0
pipeline.stage @s1
pipeline.channel @x : [!t] source(input "x")
pipeline.channel @h : [!t]
pipeline.channel @loss : [!t] sink(loss)
func.func private @s0.forward(!t) -> (!t, !t)
  attributes {pipeline.signature = #pipeline.signature<(@x) -> (_, _)>}
func.func private @s1.forward(!t) -> !t
  attributes {pipeline.signature = #pipeline.signature<(@s0.forward[0]) -> (@loss)>}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.take @x : !t
  %1:2 = func.call @s0.forward(%0) : (!t) -> (!t, !t)
  // expected-note @+1 {{put here}}
  pipeline.put %1#1 to @h : !t
}
pipeline.task @s1.F forward of @s1(%k) {
  %0 = pipeline.take @h : !t
  // expected-error @+1 {{C38: gives @s1.forward as argument 0 @s0.forward[1], which stands for @s0.forward[0]}}
  %1 = func.call @s1.forward(%0) : (!t) -> !t
  pipeline.put %1 to @loss : !t
}

// -----

!t = tensor<2xf32>
pipeline.stage @s0
pipeline.variable @a : !t parameter of @s0
pipeline.variable @b : !t parameter of @s0
pipeline.channel @loss : [!t] sink(loss)
func.func private @s0.forward(!t, !t) -> !t
  attributes {pipeline.signature = #pipeline.signature<(@a, @b) -> (@loss)>}
pipeline.task @s0.F forward of @s0(%k) {
  %a = pipeline.read @a : !t
  %b = pipeline.read @b : !t
  // expected-error @+1 {{C38: gives @s0.forward as argument 0 @b of role parameter, which stands for @a}}
  %1 = func.call @s0.forward(%b, %a) : (!t, !t) -> !t
  pipeline.put %1 to @loss : !t
}

// -----

!t = tensor<2xf32>
pipeline.stage @s0
pipeline.channel @x : [!t] source(input "x")
pipeline.channel @loss : [!t] sink(loss)
pipeline.channel @y : [!t] sink(output "y")
func.func private @s0.forward(!t) -> (!t, !t)
  attributes {pipeline.signature = #pipeline.signature<(@x) -> (@loss, @y)>}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.take @x : !t
  // expected-error @+1 {{C38: has result 0 of @s0.forward go to @y, which stands for @loss}}
  %1:2 = func.call @s0.forward(%0) : (!t) -> (!t, !t)
  pipeline.put %1#1 to @loss : !t
  pipeline.put %1#0 to @y : !t
}

// -----

// Once, even if nobody wants the second result.
@@
+  // expected-note @+1 {{the other call}}
   %1:2 = func.call @s0.forward(%0) : (!t) -> (!t, !t)
-  pipeline.put %1#1 to @loss : !t
-  pipeline.put %1#0 to @y : !t
+  // expected-error @+1 {{C38: calls @s0.forward again, which stands for values of one call}}
+  %2:2 = func.call @s0.forward(%0) : (!t) -> (!t, !t)
+  pipeline.put %1#0 to @loss : !t
+  pipeline.put %1#1 to @y : !t

// -----

// What takes nothing has a term for each of its calls among the results.
!t = tensor<2xf32>
pipeline.stage @s0
pipeline.channel @a : [!t]
pipeline.channel @b : [!t]
func.func private @one() -> !t
  attributes {pipeline.signature = #pipeline.signature<() -> (_ | _)>}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = func.call @one() : () -> !t
  // expected-note @+1 {{the other call}}
  %1 = func.call @one() : () -> !t
  // expected-error @+1 {{C38: calls @one again, which stands for values of one call}}
  %2 = func.call @one() : () -> !t
  pipeline.put %0 to @a : !t
  pipeline.put %1 to @b : !t
}
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.take @a : !t
  %1 = pipeline.take @b : !t
}

// -----

// The dialect wants a term for each.
!t = tensor<2xf32>
// expected-error @+1 {{'pipeline.signature' is a term for each argument and result, on a function}}
func.func private @f(!t) -> !t
  attributes {pipeline.signature = #pipeline.signature<(_, _) -> (_)>}

// -----

// A message about a variable is what stands for that variable.
!t = tensor<2xf32>
pipeline.stage @s0
pipeline.variable @w : !t parameter of @s0
pipeline.variable @v : !t parameter of @s0
pipeline.channel @sent : [!t] {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.read @v : !t
  // expected-error @+1 {{C38: puts @v of role parameter into @sent, a message about @w}}
  pipeline.put %0 to @sent : !t
}
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.take @sent : !t
}

// -----

// So is a result that goes there.
!t = tensor<2xf32>
pipeline.stage @s0
pipeline.channel @x : [!t] source(input "x")
pipeline.variable @mean : !t statistic of @s0
pipeline.variable @var : !t statistic of @s0
pipeline.channel @mean.seen : [!t] {pipeline.parameter = @mean}
pipeline.channel @var.seen : [!t] {pipeline.parameter = @var}
func.func private @s0.forward(!t) -> (!t, !t)
  attributes {pipeline.signature = #pipeline.signature<(@x) -> (@mean.seen, @var.seen)>}
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.take @x : !t
  // expected-error @+1 {{C38: has result 0 of @s0.forward go to @var.seen, which stands for @mean.seen}}
  %1:2 = func.call @s0.forward(%0) : (!t) -> (!t, !t)
  pipeline.put %1#1 to @mean.seen : !t
  pipeline.put %1#0 to @var.seen : !t
}
pipeline.task @s0.B backward of @s0(%k) {
  %0 = pipeline.take @mean.seen : !t
  %1 = pipeline.take @var.seen : !t
}
