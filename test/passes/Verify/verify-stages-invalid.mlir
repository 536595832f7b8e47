// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-verify=level=stages \
// RUN:   --verify-diagnostics

// One case for each rule that needs more than one op, by its number.

// C1
pipeline.stage @s0
pipeline.stage @s1
// expected-error @+1 {{C1: has no stage at level stages}}
pipeline.variable @w : tensor<2xf32> parameter

// -----

// expected-error @+1 {{C44: names @s9, which is no stage of this module}}
pipeline.variable @w : tensor<2xf32> parameter of @s9

// -----

pipeline.stage @s0
pipeline.stage @s1
pipeline.channel @y : [tensor<2xf32>] source(input "y")
pipeline.task @s0.F forward of @s0(%k) {
  %a = pipeline.take @y : tensor<2xf32>
}

// -----

// C4
@@
   %a = pipeline.take @y : tensor<2xf32>
 }
+pipeline.task @s1.F forward of @s1(%k) {
+  // expected-error @+1 {{C4: is the second end of channel @y, after task @s0.F}}
+  %a = pipeline.take @y : tensor<2xf32>
+}

// -----

@@
+// expected-error @+1 {{C4: has a source, but task @s0.F puts into it}}
+pipeline.channel @x : [tensor<2xf32>] source(input "x")
 pipeline.task @s0.F forward of @s0(%k) {
   %a = pipeline.take @y : tensor<2xf32>
+  pipeline.put %a to @x : tensor<2xf32>

// -----

@@
-pipeline.channel @y : [tensor<2xf32>] source(input "y")
+// expected-error @+1 {{C4: has a sink, but task @s0.F takes from it}}
+pipeline.channel @y : [tensor<2xf32>] sink(loss)

// -----

@@
-pipeline.channel @y : [tensor<2xf32>] source(input "y")
+// expected-error @+1 {{C4: is taken by task @s0.F, but no task puts into it}}
+pipeline.channel @y : [tensor<2xf32>]

// -----

@@
+// expected-error @+1 {{C4: is put by task @s0.F, but no task takes from it}}
+pipeline.channel @x : [tensor<2xf32>]
 pipeline.task @s0.F forward of @s0(%k) {
   %a = pipeline.take @y : tensor<2xf32>
+  pipeline.put %a to @x : tensor<2xf32>

// -----

// C5
@@
+// expected-error @+1 {{C5: joins task @s0.F and task @s0.U, which count microbatches and updates}}
+pipeline.channel @x : [tensor<2xf32>]
+pipeline.task @s0.U update of @s0(%k) {
+  %a = pipeline.take @x : tensor<2xf32>
+}
 pipeline.task @s0.F forward of @s0(%k) {
   %a = pipeline.take @y : tensor<2xf32>
+  pipeline.put %a to @x : tensor<2xf32>

// -----

// C6
@@
-pipeline.channel @y : [tensor<2xf32>] source(input "y")
+pipeline.channel @y : [tensor<2xf32>, tensor<2xf32>]
@@
+  // expected-error @+1 {{C6: moves 1 values, channel @y carries 2}}
   %a = pipeline.take @y : tensor<2xf32>

// -----

@@
-  %a = pipeline.take @y : tensor<2xf32>
+  // expected-error @+1 {{C6: moves 'tensor<3xf32>' where channel @y carries 'tensor<2xf32>'}}
+  %a = pipeline.take @y : tensor<3xf32>

// -----

@@
-pipeline.channel @y : [tensor<2xf32>] source(input "y")
@@
+  // expected-error @+1 {{C44: names @y, which is no channel of this module}}
   %a = pipeline.take @y : tensor<2xf32>

// -----

// C11
@@
+pipeline.variable @w : tensor<2xf32> parameter of @s1
 pipeline.task @s0.F forward of @s0(%k) {
+  // expected-error @+1 {{C11: of @w, which is of stage @s1, in a task of stage @s0}}
+  %w = pipeline.read @w : tensor<2xf32>

// -----

// C16
@@
+pipeline.variable @w : tensor<2xf32> parameter of @s0
 pipeline.task @s0.F forward of @s0(%k) {
+  // expected-error @+1 {{C16: has type 'tensor<3xf32>', but @w is 'tensor<2xf32>'}}
+  %w = pipeline.read @w : tensor<3xf32>

// -----

// C12
pipeline.stage @s0
pipeline.variable @v : tensor<2xf32> parameter of @s0
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.task @s0.T forward of @s0(%k) {
  %a = pipeline.read @v : tensor<2xf32>
  // expected-error @+1 {{C12: in a forward task writes parameter @w}}
  pipeline.write %a to @w : tensor<2xf32>
}

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
-pipeline.task @s0.T forward of @s0(%k) {
+pipeline.variable @w : tensor<2xf32> optimizer of @s0
+pipeline.task @s0.T backward of @s0(%k) {
@@
+  // expected-error @+1 {{C12: in a backward task writes optimizer @w}}
   pipeline.write %a to @w : tensor<2xf32>

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
+pipeline.variable @w : tensor<2xf32> gradient of @s0
@@
+  // expected-error @+1 {{C12: in a forward task writes gradient @w}}
   pipeline.write %a to @w : tensor<2xf32>

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
-pipeline.task @s0.T forward of @s0(%k) {
+pipeline.variable @w : tensor<2xf32> statistic of @s0
+pipeline.task @s0.T update of @s0(%k) {
@@
+  // expected-error @+1 {{C12: in a update task writes statistic @w}}
   pipeline.write %a to @w : tensor<2xf32>

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
+pipeline.variable @w : tensor<2xf32> scalar of @s0
@@
+  // expected-error @+1 {{C12: in a forward task writes scalar @w}}
   pipeline.write %a to @w : tensor<2xf32>

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
-pipeline.task @s0.T forward of @s0(%k) {
+pipeline.variable @w : tensor<2xf32> gradient of @s0
+pipeline.task @s0.T backward of @s0(%k) {
@@
+  // expected-error @+1 {{C12: of gradient @w does not accumulate: the task does not read it}}
   pipeline.write %a to @w : tensor<2xf32>

// -----

pipeline.stage @s0
pipeline.stage @s1
func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{C43: is left at level stages}}
  pipeline.boundary 1
  return
}
