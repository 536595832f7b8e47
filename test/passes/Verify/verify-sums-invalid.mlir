// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training=microbatches=2 --pipeline-verify=level=schedule --verify-diagnostics

// C37: what must be summed is, once.

// Each value of it is made once.
!t = tensor<2xf32>
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.s1 : !t parameter of @s1 {pipeline.parameter = @w}
// expected-note @+1 {{made by a backward}}
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
// expected-note @+1 {{made by a backward}}
pipeline.variable @w.s1.grad : !t gradient of @s1 {pipeline.parameter = @w.s1}
// expected-error @+1 {{C37: sums in position 0 2 gradients that a backward makes, instead of one}}
pipeline.group @sum members [[@w.grad], [@w.s1.grad]]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @w.grad : !t
  pipeline.write %g to @w.grad : !t
}
pipeline.task @s1.B backward of @s1(%k) {
  %g = pipeline.read @w.s1.grad : !t
  pipeline.write %g to @w.s1.grad : !t
}

// -----

// Copies of a parameter.
@@
+// expected-note @+1 {{a copy of @w}}
 pipeline.variable @w.s1 : !t parameter of @s1 {pipeline.parameter = @w}
@@
-pipeline.group @sum members [[@w.grad], [@w.s1.grad]]
@@
   pipeline.write %g to @w.s1.grad : !t
 }
+pipeline.task @s0.U update of @s0(%t) {
+  // expected-error @+1 {{C37: uses @w.grad, which no group sums over the 2 stages that hold @w}}
+  %g = pipeline.read @w.grad : !t
+  pipeline.write %g to @w : !t
+}
+pipeline.task @s1.U update of @s1(%t) {
+  %g = pipeline.read @w.s1.grad : !t
+  pipeline.write %g to @w.s1 : !t
+}

// -----

// A sum over stages is of copies of one parameter.
@@
-pipeline.variable @w.s1 : !t parameter of @s1 {pipeline.parameter = @w}
+pipeline.variable @v : !t parameter of @s1
 pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
-pipeline.variable @w.s1.grad : !t gradient of @s1 {pipeline.parameter = @w.s1}
-pipeline.group @sum members [[@w.grad], [@w.s1.grad]]
+pipeline.variable @v.grad : !t gradient of @s1 {pipeline.parameter = @v}
+// expected-error @+1 {{C37: sums @v.grad, a gradient of @v, with gradients of @w}}
+pipeline.group @sum members [[@w.grad], [@v.grad]]
@@
-  %g = pipeline.read @w.s1.grad : !t
-  pipeline.write %g to @w.s1.grad : !t
+  %g = pipeline.read @v.grad : !t
+  pipeline.write %g to @v.grad : !t

// -----

// In the order of the stages.
@@
-pipeline.group @sum members [[@w.grad], [@w.s1.grad]]
+// expected-error @+1 {{C37: has the member of stage @s1 before that of @s0, which comes first}}
+pipeline.group @sum members [[@w.s1.grad], [@w.grad]]

// -----

// Replicas of a stage.
!t = tensor<2xf32>
pipeline.stage @s0 devices [0, 1]
pipeline.variable @w : !t parameter of @s0
// expected-note @+1 {{the gradient}}
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @w.grad : !t
  pipeline.write %g to @w.grad : !t
}
pipeline.task @s0.U update of @s0(%t) {
  %w = pipeline.read @w : !t
  // expected-error @+1 {{C37: uses @w.grad, which no group sums over the 2 replicas of @s0}}
  %g = pipeline.read @w.grad : !t
  pipeline.write %w to @w : !t
}

// -----

// Gradients of replicas are not alike.
!t = tensor<2xf32>
pipeline.stage @s0 devices [0, 1]
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
// expected-error @+1 {{C37: sums gradients 'once', which are different on each replica}}
pipeline.group @sum members [[@w.grad]] {pipeline.once}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @w.grad : !t
  pipeline.write %g to @w.grad : !t
}

// -----

!t = tensor<2xf32>
pipeline.stage @s0 devices [0, 1]
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
// expected-note @+1 {{summed here}}
pipeline.group @sum members [[@w.grad]]
// expected-error @+1 {{C37: sums @w.grad again}}
pipeline.group @again members [[@w.grad]]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @w.grad : !t
  pipeline.write %g to @w.grad : !t
}

// -----

// A norm needs its bound.
!t = tensor<2xf32>
pipeline.stage @s0 devices [0]
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
pipeline.variable @squares : tensor<1xf64> scalar of @s0
func.func private @norm(!t) -> tensor<1xf64>
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @w.grad : !t
  pipeline.write %g to @w.grad : !t
}
// expected-error @+1 {{C37: makes a norm, but pipeline.training has no clipping}}
pipeline.task @s0.G norm of @s0(%t) {
  %g = pipeline.read @w.grad : !t
  %0 = func.call @norm(%g) : (!t) -> tensor<1xf64>
  pipeline.write %0 to @squares : tensor<1xf64>
}
