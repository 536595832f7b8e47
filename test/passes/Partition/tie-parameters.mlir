// RUN: penstock-opt %s --pipeline-tie-parameters --split-input-file --verify-diagnostics | FileCheck %s

// Stages come in the order of the module, whatever the order of the variables
// and whichever stage the original is of. The statistic @m and the copy of it
// do not train, and @v has no copy.

// CHECK:      pipeline.variable @w : tensor<3x7xf32> parameter of @s1
// CHECK:      pipeline.variable @w.s2 : tensor<3x7xf32> parameter of @s2
// CHECK-NEXT: pipeline.group @w.tied members {{\[\[}}@w.s0], [@w], [@w.s2]]
// CHECK-NOT:  pipeline.group

pipeline.stage @s0
pipeline.stage @s1
pipeline.stage @s2
pipeline.variable @w.s0 : tensor<3x7xf32> parameter of @s0 init <"m.onnx", 8, 84> {pipeline.parameter = @w}
pipeline.variable @v : tensor<5xf32> parameter of @s1 init <"m.onnx", 92, 20>
pipeline.variable @w : tensor<3x7xf32> parameter of @s1 init <"m.onnx", 8, 84>
pipeline.variable @m : tensor<5xf32> statistic of @s1 init <"m.onnx", 112, 20>
pipeline.variable @m.s2 : tensor<5xf32> statistic of @s2 init <"m.onnx", 112, 20> {pipeline.parameter = @m}
pipeline.variable @w.s2 : tensor<3x7xf32> parameter of @s2 init <"m.onnx", 8, 84> {pipeline.parameter = @w}

// -----

pipeline.stage @s0
// expected-error@+1 {{'pipeline.variable' op is a copy of @gone, which is no variable}}
pipeline.variable @w : tensor<3x7xf32> parameter of @s0 init <"m.onnx", 8, 84> {pipeline.parameter = @gone}
