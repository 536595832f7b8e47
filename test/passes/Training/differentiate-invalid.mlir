// What cannot be differentiated is an error at its node, never a zero gradient.
// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training \
// RUN:   --pipeline-differentiate --verify-diagnostics

pipeline.stage @s0
pipeline.stage @s1
pipeline.channel @h : [tensor<f32>]
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w : tensor<f32> parameter of @s0
// expected-remark @below {{stage @s0 keeps 0 bytes of residuals per microbatch}}
pipeline.task @s0.F forward of @s0(%k) {
  %w = pipeline.read @w : tensor<f32>
  %h = func.call @f(%w) : (tensor<f32>) -> tensor<f32>
  pipeline.put %h to @h : tensor<f32>
}
// expected-remark @below {{stage @s1 keeps 0 bytes of residuals per microbatch}}
pipeline.task @s1.F forward of @s1(%k) {
  %h = pipeline.take @h : tensor<f32>
  %l = func.call @g(%h) : (tensor<f32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @f(%w: tensor<f32>) -> tensor<f32> {
  return %w : tensor<f32>
}
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

@@
+// expected-error @below {{parameter @w is read on stages @s0 and @s1: each needs a copy of its own, which pipeline-outline-stages makes}}
 pipeline.variable @w : tensor<f32> parameter of @s0
@@
-  %l = func.call @g(%h) : (tensor<f32>) -> tensor<f32>
+  %w = pipeline.read @w : tensor<f32>
+  %l = func.call @g(%w) : (tensor<f32>) -> tensor<f32>

// -----

@@
+// expected-error @below {{the loss is also an input of a later stage}}
+pipeline.channel @first : [tensor<f32>] sink(loss)
 pipeline.variable @w : tensor<f32> parameter of @s0
@@
   pipeline.put %h to @h : tensor<f32>
+  pipeline.put %h to @first : tensor<f32>
 }
+// expected-remark @below {{stage @s1 keeps 0 bytes of residuals per microbatch}}
 pipeline.task @s1.F forward of @s1(%k) {

// -----

pipeline.stage @s0
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w : tensor<f32> parameter of @s0
pipeline.task @s0.F forward of @s0(%k) {
  %w = pipeline.read @w : tensor<f32>
  %l = func.call @f(%w) : (tensor<f32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @f(%w: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  // expected-error @below {{'math.cbrt' in a 'linalg.generic' has no derivative rule, and a gradient has to flow through it}}
  // expected-note @below {{freeze every parameter before it (--freeze), or replace the node by operations with derivatives}}
  %y = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%w : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.cbrt %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// expected-error @below {{the stage has no forward task}}
pipeline.stage @s0

// -----

pipeline.stage @s0
// expected-error @below {{a forward task calls one function, this one 0}}
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

pipeline.stage @s0
pipeline.channel @x : [tensor<f32>] source(input "x")
pipeline.channel @loss : [tensor<f32>] sink(loss)
// expected-remark @below {{stage @s0 keeps 0 bytes of residuals per microbatch}}
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<f32>
  %l = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// A scalar that the task computes is none of the function's business.
@@
-  %l = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
+  %c = arith.constant 1.0 : f32
+  // expected-error @below {{the operands of a stage's forward function are taken from channels or read from variables}}
+  %l = func.call @f(%x, %c) : (tensor<f32>, f32) -> tensor<f32>
@@
-func.func private @f(%x: tensor<f32>) -> tensor<f32> {
+func.func private @f(%x: tensor<f32>, %c: f32) -> tensor<f32> {

// -----

@@
-  pipeline.put %l to @loss : tensor<f32>
+  // expected-error @below {{a forward task puts results of its function only}}
+  pipeline.put %x to @loss : tensor<f32>

// -----

@@
+// expected-error @below {{stage @s0 has two forward tasks}}
+pipeline.task @s0.G forward of @s0(%k) {
+}
 func.func private @f(%x: tensor<f32>) -> tensor<f32> {

// -----

@@
+  // expected-error @below {{@f is not a function with a body of one block}}
   %l = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
@@
-func.func private @f(%x: tensor<f32>) -> tensor<f32> {
-  return %x : tensor<f32>
-}
+func.func private @f(%x: tensor<f32>) -> tensor<f32>
