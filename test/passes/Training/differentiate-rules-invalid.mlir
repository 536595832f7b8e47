// Ops with a derivative rule that does not cover how they are used: an error at
// the node.
// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training --pipeline-differentiate --verify-diagnostics

pipeline.stage @s0
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w : tensor<3xf32> parameter of @s0
// expected-remark @below {{stage @s0 keeps 0 bytes of residuals per microbatch}}
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  %w = pipeline.read @w : tensor<3xf32>
  %l = func.call @f(%x, %w) : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @f(%x: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// Sums in another precision.
@@
-  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
-  ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
-    linalg.yield %m : f32
+  %d = tensor.empty() : tensor<f64>
+  // expected-error @below {{the derivative of a contraction of mixed element types is not supported}}
+  %y = linalg.contract indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>]
+      ins(%x, %w : tensor<3xf32>, tensor<3xf32>) outs(%d : tensor<f64>) -> tensor<f64>
+  %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
+      ins(%y : tensor<f64>) outs(%e : tensor<f32>) {
+  ^bb0(%a: f64, %o: f32):
+    %t = arith.truncf %a : f64 to f32
+    linalg.yield %t : f32

// -----

// A scalar of the weights fills a tensor.
@@
-  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
-  ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
-    linalg.yield %m : f32
-  } -> tensor<f32>
+  %s = tensor.extract %w[%c0] : tensor<3xf32>
+  // expected-error @below {{'linalg.fill' with a value that needs a gradient has no rule}}
+  %r = linalg.fill ins(%s : f32) outs(%e : tensor<f32>) -> tensor<f32>

// -----

// The largest product of data and weights.
@@
-  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
-  ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
+  // expected-error @below {{the derivative of a maximum over an expression of both data and parameters is not supported: compute the expression in a node of its own}}
+  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
+      ins(%x, %w : tensor<3xf32>, tensor<3xf32>) outs(%z : tensor<f32>) {
+  ^bb0(%a: f32, %b: f32, %o: f32):
+    %p = arith.mulf %a, %b : f32
+    %m = arith.maximumf %o, %p : f32

// -----

// Weights read at a sum of indices.
@@
-  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
+  %five = tensor.empty() : tensor<1x3xf32>
+  // expected-error @below {{'linalg.generic' reads an operand as affine_map<(d0, d1) -> (d0 + d1)>, whose derivative would have to scatter: not supported}}
+  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
+      ins(%w : tensor<3xf32>) outs(%five : tensor<1x3xf32>) {
+  ^bb0(%a: f32, %o: f32):
+    linalg.yield %a : f32
+  } -> tensor<1x3xf32>
+  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
+      ins(%y : tensor<1x3xf32>) outs(%z : tensor<f32>) {

// -----

// A scalar of the weights within a body.
@@
+  %s = tensor.extract %w[%c0] : tensor<3xf32>
+  // expected-error @below {{the body of a 'linalg.generic' uses a scalar that needs a gradient}}
   %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
+      ins(%x : tensor<3xf32>) outs(%z : tensor<f32>) {
   ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
+    %p = arith.mulf %a, %s : f32
+    %m = arith.addf %o, %p : f32

// -----

// A scalar of the weights as an operand.
@@
-  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
-  ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
+  %s = tensor.extract %w[%c0] : tensor<3xf32>
+  // expected-error @below {{'linalg.generic' has a scalar operand that needs a gradient}}
+  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
+      ins(%x, %s : tensor<3xf32>, f32) outs(%z : tensor<f32>) {
+  ^bb0(%a: f32, %b: f32, %o: f32):
+    %p = arith.mulf %a, %b : f32
+    %m = arith.addf %o, %p : f32

// -----

// A maximum with a weight among what it is over.
@@
+  %s = tensor.extract_slice %w[0] [1] [1] : tensor<3xf32> to tensor<f32>
+  // expected-error @below {{a maximum or product that starts from a value which needs a gradient has no derivative rule}}
   %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
+      ins(%w : tensor<3xf32>) outs(%s : tensor<f32>) {
   ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
+    %m = arith.maximumf %o, %a : f32

// -----

// Neither a sum nor an extremum nor a product.
@@
+  // expected-error @below {{a reduction by arith.divf has no derivative rule}}
+  // expected-note @below {{sums, products, maxima and minima have one}}
   %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
@@
-    %m = arith.addf %o, %a : f32
+    %m = arith.divf %o, %a : f32

// -----

// A slice whose place is known when the program runs only.
@@
-  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
-  ^bb0(%a: f32, %o: f32):
-    %m = arith.addf %o, %a : f32
-    linalg.yield %m : f32
-  } -> tensor<f32>
+  %i = arith.index_castui %c0 : index to i64
+  %j = arith.index_castui %i : i64 to index
+  // expected-error @below {{'tensor.extract_slice' with offsets or sizes that are not constant has no derivative rule}}
+  %r = tensor.extract_slice %w[%j] [1] [1] : tensor<3xf32> to tensor<f32>

// -----

// Padding by a weight.
@@
+  %s = tensor.extract %w[%c0] : tensor<3xf32>
+  // expected-error @below {{'tensor.pad' with a value that is not constant has no derivative rule}}
+  %y = tensor.pad %w low[1] high[0] {
+  ^bb0(%i: index):
+    tensor.yield %s : f32
+  } : tensor<3xf32> to tensor<4xf32>
   %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
+      ins(%y : tensor<4xf32>) outs(%z : tensor<f32>) {

// -----

// A result written at a sum of indices.
@@
+  %v = tensor.expand_shape %w [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
+  // expected-error @below {{'linalg.generic' writes as affine_map<(d0, d1) -> (d0 + d1)>: its derivative is not supported}}
+  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i + j)>], iterator_types = ["parallel", "parallel"]}
+      ins(%v : tensor<1x3xf32>) outs(%x : tensor<3xf32>) {
+  ^bb0(%a: f32, %o: f32):
+    linalg.yield %a : f32
+  } -> tensor<3xf32>
   %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
+      ins(%y : tensor<3xf32>) outs(%z : tensor<f32>) {

// -----

// The larger of data and weights.
@@
+  %i = arith.constant dense<[0, 2]> : tensor<2xi64>
+  %u = tensor.extract_slice %x[1] [2] [1] : tensor<3xf32> to tensor<2xf32>
+  // expected-error @below {{a scatter by max or min has no derivative where some of what it compares are activations and some parameters}}
+  %y = nn.scatter max %u into %w[%i] at affine_map<(i)[s] -> (s)> index_maps [affine_map<(i) -> (i)>] : tensor<2xf32>, tensor<3xf32>, tensor<2xi64>
   %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
-      ins(%w : tensor<3xf32>) outs(%z : tensor<f32>) {
+      ins(%y : tensor<3xf32>) outs(%z : tensor<f32>) {

// -----

// A loss that adds up the probabilities which cross-entropy gives beside it.
pipeline.stage @s0
pipeline.channel @y : [tensor<3xi64>] source(input "y")
pipeline.channel @loss : [tensor<f32>] sink(loss)
pipeline.variable @w : tensor<3x5xf32> parameter of @s0
pipeline.task @s0.F forward of @s0(%k) {
  %y = pipeline.take @y : tensor<3xi64>
  %w = pipeline.read @w : tensor<3x5xf32>
  %l = func.call @f(%y, %w) : (tensor<3xi64>, tensor<3x5xf32>) -> tensor<f32>
  pipeline.put %l to @loss : tensor<f32>
}
func.func private @f(%y: tensor<3xi64>, %w: tensor<3x5xf32>) -> tensor<f32> {
  // expected-error @below {{a gradient flows into the probabilities of 'nn.cross_entropy': use a softmax of its own}}
  %l, %p = nn.cross_entropy %w, %y : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3x5xf32>)
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%p : tensor<3x5xf32>) outs(%l : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
