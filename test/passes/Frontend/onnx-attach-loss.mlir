// RUN: split-file %s %t
// RUN: penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z' | FileCheck %t/model.mlir --check-prefix=CE
// RUN: penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z class-axis=1 ignore-label=-1' | FileCheck %t/model.mlir --check-prefix=AXIS1
// RUN: penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z label-smoothing=0.25 class-weights=1,2,0.5' | FileCheck %t/model.mlir --check-prefix=TARGETS
// RUN: %expect-error --any-lines "error: class-weights: there are 2, but output 'z' has 3 classes" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z class-weights=1,2'
// RUN: %expect-error --any-lines "error: label-smoothing=1.000000e+00: it is at least 0 and below 1" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z label-smoothing=1'
// RUN: %expect-error --any-lines "error: the model has 3 outputs: z, h, s; say by --loss-input=NAME which of them enters the loss" -- penstock-opt %t/model.mlir --onnx-attach-loss=loss=mse
// RUN: penstock-opt %t/model.mlir --onnx-attach-loss='loss=mse loss-input=h' | FileCheck %t/model.mlir --check-prefix=MSE
// RUN: penstock-opt %t/model.mlir --onnx-attach-loss='loss=output loss-input=s' | FileCheck %t/model.mlir --check-prefix=OUT
// RUN: penstock-opt %t/model.mlir --onnx-attach-loss='loss=output loss-input=s' --onnx-attach-loss='loss=mse' | FileCheck %t/model.mlir --check-prefix=OUT
// RUN: %expect-error --any-lines "error: output 'z' is 'tensor<5x2x3xf32>' and cannot be the loss, which is one float; choose --loss=softmax-cross-entropy, bce-with-logits or mse, or name a scalar output with --loss-input" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=output loss-input=z'
// RUN: %expect-error --any-lines "error: --loss=hinge: unknown; it is softmax-cross-entropy, bce-with-logits, mse or output" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=hinge loss-input=z'
// RUN: %expect-error --any-lines "error: --loss-input=q: the model has no such output; it has: z, h, s" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=mse loss-input=q'
// RUN: %expect-error --any-lines "error: --class-axis=3: output 'z' is 'tensor<5x2x3xf32>' and has axes 0 to 2" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z class-axis=3'
// RUN: %expect-error --any-lines "error: --class-axis=0: axis 0 is that of the samples" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z class-axis=0'
// RUN: %expect-error --any-lines "error: --ignore-label=x is not an integer" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=z ignore-label=x'
// RUN: %expect-error --any-lines "error: --loss=softmax-cross-entropy: output 's' is 'tensor<1xf32>', but needs an axis of samples and one of classes" -- penstock-opt %t/model.mlir --onnx-attach-loss='loss=softmax-cross-entropy loss-input=s'
// RUN: penstock-opt %t/softmax.mlir --onnx-attach-loss='loss=softmax-cross-entropy' 2>&1 | FileCheck %t/softmax.mlir
// RUN: penstock-opt %t/other-axis.mlir --onnx-attach-loss='loss=softmax-cross-entropy' 2>&1 | FileCheck %t/other-axis.mlir
// RUN: penstock-opt %t/old-softmax.mlir --onnx-attach-loss='loss=softmax-cross-entropy class-axis=1' 2>&1 | FileCheck %t/old-softmax.mlir
// RUN: penstock-opt %t/sigmoid.mlir --onnx-attach-loss='loss=bce-with-logits' 2>&1 | FileCheck %t/sigmoid.mlir
// RUN: penstock-opt %t/half.mlir --onnx-attach-loss='loss=softmax-cross-entropy' | FileCheck %t/half.mlir --check-prefix=CE
// RUN: penstock-opt %t/half.mlir --onnx-attach-loss='loss=mse' | FileCheck %t/half.mlir --check-prefix=MSE
// RUN: penstock-opt %t/half.mlir --onnx-attach-loss='loss=bce-with-logits' | FileCheck %t/half.mlir --check-prefix=BCE
// RUN: penstock-opt %t/double.mlir --onnx-attach-loss='loss=mse' | FileCheck %t/double.mlir
// RUN: not penstock-opt %t/labels.mlir --onnx-attach-loss='loss=mse' 2>&1 | FileCheck %t/labels.mlir

// RUN: %expect-error --any-lines "error: the program has no forward task" -- penstock-opt /dev/null --onnx-attach-loss='loss=mse'

// RUN: not penstock-opt %t/two-tasks.mlir --onnx-attach-loss='loss=mse' 2>&1 | FileCheck %t/two-tasks.mlir
// RUN: not penstock-opt %t/two-calls.mlir --onnx-attach-loss='loss=mse' 2>&1 | FileCheck %t/two-calls.mlir

//--- two-tasks.mlir
// A program that is cut into stages.
// CHECK: error: a loss is attached to a program of one forward task
pipeline.stage @m
pipeline.task @m.F forward of @m(%k) {
}
pipeline.task @m.G forward of @m(%k) {
}

//--- two-calls.mlir
// CHECK: error: a loss is attached to a task with one call
pipeline.stage @m
pipeline.channel @x : [tensor<5xf32>] source(input "x")
func.func private @f(tensor<5xf32>) -> tensor<5xf32>
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5xf32>
  %h = func.call @f(%x) : (tensor<5xf32>) -> tensor<5xf32>
  %y = func.call @f(%h) : (tensor<5xf32>) -> tensor<5xf32>
}

//--- model.mlir
// Three outputs; the variable @v and the input @y reach only the last.
pipeline.stage @m
pipeline.channel @x : [tensor<5x2x7xf32>] source(input "x")
pipeline.channel @y : [tensor<5xf32>] source(input "y")
pipeline.variable @w : tensor<7x3xf32> parameter of @m
pipeline.variable @v : tensor<5xf32> parameter of @m
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x2x7xf32>
  %y = pipeline.take @y : tensor<5xf32>
  %w = pipeline.read @w : tensor<7x3xf32>
  %v = pipeline.read @v : tensor<5xf32>
  %r:3 = func.call @m.forward(%x, %y, %w, %v) : (tensor<5x2x7xf32>, tensor<5xf32>, tensor<7x3xf32>, tensor<5xf32>) -> (tensor<5x2x3xf32>, tensor<5x2x3xf32>, tensor<1xf32>)
}
func.func private @m.forward(%x: tensor<5x2x7xf32>, %y: tensor<5xf32>, %w: tensor<7x3xf32>, %v: tensor<5xf32>)
    -> (tensor<5x2x3xf32> {onnx.output = "z"}, tensor<5x2x3xf32> {onnx.output = "h"}, tensor<1xf32> {onnx.output = "s"}) {
  %a = onnx.node "MatMul"(%x, %w) since 13 : (tensor<5x2x7xf32>, tensor<7x3xf32>) -> tensor<5x2x3xf32>
  %b = onnx.node "Relu"(%a) since 14 : (tensor<5x2x3xf32>) -> tensor<5x2x3xf32>
  %c = onnx.node "Mul"(%y, %v) since 14 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %s = onnx.node "ReduceSum"(%c) since 13 : (tensor<5xf32>) -> tensor<1xf32>
  return %a, %b, %s : tensor<5x2x3xf32>, tensor<5x2x3xf32>, tensor<1xf32>
}

// The first output enters. Labels are taken values: they come before variables.
// CE-NOT:   @y
// CE:       pipeline.channel @labels : [tensor<5x2xi64>] source(labels)
// CE-NEXT:  pipeline.channel @loss : [tensor<f32>] sink(loss)
// CE-NOT:   @v
// CE:       pipeline.task @m.F
// CE-NEXT:    %[[X:.*]] = pipeline.take @x
// CE-NEXT:    %[[Y:.*]] = pipeline.take @labels : tensor<5x2xi64>
// CE-NEXT:    %[[W:.*]] = pipeline.read @w
// CE-NEXT:    %[[L:.*]] = func.call @m.forward(%[[X]], %[[Y]], %[[W]]) : {{.*}} -> tensor<f32>
// CE-NEXT:    pipeline.put %[[L]] to @loss : tensor<f32>
// CE-NEXT:  }
// CE:       func.func private @m.forward(%[[X:.*]]: tensor<5x2x7xf32>, %[[Y:.*]]: tensor<5x2xi64>, %[[W:.*]]: tensor<7x3xf32>) -> tensor<f32> {
// CE-NEXT:    %[[Z:.*]] = onnx.node "MatMul"(%[[X]], %[[W]])
// CE-NEXT:    %[[S:.*]] = arith.constant dense<[10, 3]>
// CE-NEXT:    %[[ZZ:.*]] = onnx.node "Reshape"(%[[Z]], %[[S]]) since 14 : (tensor<5x2x3xf32>, tensor<2xi64>) -> tensor<10x3xf32>
// CE-NEXT:    %[[S:.*]] = arith.constant dense<10>
// CE-NEXT:    %[[YY:.*]] = onnx.node "Reshape"(%[[Y]], %[[S]]) since 14 : (tensor<5x2xi64>, tensor<1xi64>) -> tensor<10xi64>
// CE-NEXT:    %[[L:.*]] = onnx.node "SoftmaxCrossEntropyLoss"(%[[ZZ]], %[[YY]]) since 13 {reduction = "mean"} : (tensor<10x3xf32>, tensor<10xi64>) -> tensor<f32>
// CE-NEXT:    return %[[L]] : tensor<f32>

// AXIS1: onnx.node "SoftmaxCrossEntropyLoss"(%{{.*}}) since 13 {ignore_index = -1 : i64, reduction = "mean"} : (tensor<5x2x3xf32>, tensor<5x3xi64>) -> tensor<f32>

// MSE:      pipeline.channel @labels : [tensor<5x2x3xf32>] source(labels)
// MSE:      %[[H:.*]] = onnx.node "Relu"
// MSE-NEXT: %[[D:.*]] = onnx.node "Sub"(%[[H]], %{{.*}}) since 14
// MSE-NEXT: %[[S:.*]] = onnx.node "Mul"(%[[D]], %[[D]]) since 14
// MSE-NEXT: %[[L:.*]] = onnx.node "ReduceMean"(%[[S]]) since 18 {keepdims = 0 : i64} : (tensor<5x2x3xf32>) -> tensor<f32>
// MSE-NEXT: return %[[L]]

// OUT-NOT:  @labels
// OUT:      %[[S:.*]] = onnx.node "ReduceSum"
// OUT-NEXT: %[[L:.*]] = onnx.node "Squeeze"(%[[S]]) since 13 : (tensor<1xf32>) -> tensor<f32>
// OUT-NEXT: return %[[L]]

// TARGETS:   onnx.node "SoftmaxCrossEntropyLoss"
// TARGETS-SAME: {class_weights = array<f64: 1.000000e+00, 2.000000e+00, 5.000000e-01>, label_smoothing = 2.500000e-01 : f64, reduction = "mean"}

//--- sigmoid.mlir
// A final Sigmoid is part of the loss; the labels are floats of its shape.
pipeline.stage @m
pipeline.channel @x : [tensor<5x3xf32>] source(input "x")
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x3xf32>
  %p = func.call @m.forward(%x) : (tensor<5x3xf32>) -> tensor<5x3xf32>
}
func.func private @m.forward(%x: tensor<5x3xf32>) -> (tensor<5x3xf32> {onnx.output = "p"}) {
  %a = onnx.node "Tanh"(%x) since 13 : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %p = onnx.node "Sigmoid"(%a) since 13 : (tensor<5x3xf32>) -> tensor<5x3xf32> loc("chances")
  return %p : tensor<5x3xf32>
}
// CHECK:      remark: {{.*}}node 'chances' (Sigmoid), the last one, is part of --loss=bce-with-logits: it is not applied twice; saved models keep it
// CHECK:      pipeline.channel @labels : [tensor<5x3xf32>] source(labels)
// CHECK:      %[[Z:.*]] = onnx.node "Tanh"
// CHECK-NOT:  Sigmoid
// CHECK-DAG:  %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG:  %[[N:.*]] = onnx.node "Neg"(%[[Z]])
// CHECK:      %[[SN:.*]] = onnx.node "Softplus"(%[[N]])
// CHECK:      %[[A:.*]] = onnx.node "Mul"(%[[Y:.*]], %[[SN]])
// CHECK:      %[[R:.*]] = onnx.node "Sub"(%[[ONE]], %[[Y]])
// CHECK:      %[[SZ:.*]] = onnx.node "Softplus"(%[[Z]])
// CHECK:      %[[B:.*]] = onnx.node "Mul"(%[[R]], %[[SZ]])
// CHECK:      onnx.node "Add"(%[[A]], %[[B]])
// CHECK:      onnx.node "ReduceMean"(%{{.*}}) since 18 {keepdims = 0 : i64} : (tensor<5x3xf32>) -> tensor<f32>

//--- softmax.mlir
// A final softmax over the classes is part of the loss; over another axis it is
// a part of the model like any other.
pipeline.stage @m
pipeline.channel @x : [tensor<5x3xf32>] source(input "x")
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x3xf32>
  %p = func.call @m.forward(%x) : (tensor<5x3xf32>) -> tensor<5x3xf32>
}
func.func private @m.forward(%x: tensor<5x3xf32>) -> (tensor<5x3xf32> {onnx.output = "p"}) {
  %a = onnx.node "Neg"(%x) since 13 : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %p = onnx.node "Softmax"(%a) since 13 : (tensor<5x3xf32>) -> tensor<5x3xf32> loc("probabilities")
  %i = onnx.node "Identity"(%p) since 19 : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return %i : tensor<5x3xf32>
}
// CHECK:      remark: {{.*}}node 'probabilities' (Softmax), the last one, is part of --loss=softmax-cross-entropy: it is not applied twice; saved models keep it
// CHECK:      %[[A:.*]] = onnx.node "Neg"
// CHECK-NEXT: onnx.node "SoftmaxCrossEntropyLoss"(%[[A]],

//--- other-axis.mlir
pipeline.stage @m
pipeline.channel @x : [tensor<5x3xf32>] source(input "x")
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x3xf32>
  %p = func.call @m.forward(%x) : (tensor<5x3xf32>) -> tensor<5x3xf32>
}
func.func private @m.forward(%x: tensor<5x3xf32>) -> (tensor<5x3xf32> {onnx.output = "p"}) {
  %p = onnx.node "Softmax"(%x) since 13 {axis = 0 : i64} : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return %p : tensor<5x3xf32>
}
// CHECK-NOT:  remark
// CHECK:      %[[P:.*]] = onnx.node "Softmax"
// CHECK-NEXT: onnx.node "SoftmaxCrossEntropyLoss"(%[[P]],

//--- old-softmax.mlir
// Before opset 13 a softmax over axis 1 of three is over two axes together.
pipeline.stage @m
pipeline.channel @x : [tensor<5x3x2xf32>] source(input "x")
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x3x2xf32>
  %p = func.call @m.forward(%x) : (tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
}
func.func private @m.forward(%x: tensor<5x3x2xf32>) -> (tensor<5x3x2xf32> {onnx.output = "p"}) {
  %p = onnx.node "Softmax"(%x) since 11 : (tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
  return %p : tensor<5x3x2xf32>
}
// CHECK-NOT:  remark
// CHECK:      %[[P:.*]] = onnx.node "Softmax"
// CHECK-NEXT: onnx.node "SoftmaxCrossEntropyLoss"(%[[P]],

//--- labels.mlir
pipeline.stage @m
pipeline.channel @labels : [tensor<5x3xf32>] source(labels)
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @labels : tensor<5x3xf32>
  %p = func.call @m.forward(%x) : (tensor<5x3xf32>) -> tensor<5x3xf32>
}
func.func private @m.forward(%x: tensor<5x3xf32>) -> (tensor<5x3xf32> {onnx.output = "p"}) {
  %a = onnx.node "Neg"(%x) since 13 : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return %a : tensor<5x3xf32>
}
// CHECK: error: --loss=mse: the model has an input named 'labels', which the labels of the loss need; rename it

//--- half.mlir
// Losses are computed in single precision at least; the Softmax still goes.
pipeline.stage @m
pipeline.channel @x : [tensor<5x3xf16>] source(input "x")
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x3xf16>
  %r = func.call @f(%x) : (tensor<5x3xf16>) -> tensor<5x3xf16>
}
func.func private @f(%x: tensor<5x3xf16>) -> (tensor<5x3xf16> {onnx.output = "y"}) {
  %0 = onnx.node "Softmax"(%x) since 13 : (tensor<5x3xf16>) -> tensor<5x3xf16>
  return %0 : tensor<5x3xf16>
}
// CE:       pipeline.channel @labels : [tensor<5xi64>]
// CE:       pipeline.channel @loss : [tensor<f32>] sink(loss)
// CE:       func.func private @f(%[[X:[^:]*]]: tensor<5x3xf16>
// CE-NEXT:    %[[Z:.*]] = onnx.node "Cast"(%[[X]]) since 13 {to = 1 : i64} : (tensor<5x3xf16>) -> tensor<5x3xf32>
// CE-NEXT:    onnx.node "SoftmaxCrossEntropyLoss"(%[[Z]], %{{.*}}) {{.*}} -> tensor<f32>
// MSE:      pipeline.channel @labels : [tensor<5x3xf32>]
// MSE:        %[[Y:.*]] = onnx.node "Softmax"
// MSE-NEXT:   %[[Z:.*]] = onnx.node "Cast"(%[[Y]]) since 13 {to = 1 : i64}
// MSE-NEXT:   onnx.node "Sub"(%[[Z]], %{{.*}}) {{.*}} -> tensor<5x3xf32>
// BCE:      pipeline.channel @labels : [tensor<5x3xf32>]
// BCE:        onnx.node "Cast"(%{{.*}}) since 13 {to = 1 : i64} : (tensor<5x3xf16>) -> tensor<5x3xf32>

//--- double.mlir
// More precision is kept up to the loss, which is logged in single precision.
pipeline.stage @m
pipeline.channel @x : [tensor<5x3xf64>] source(input "x")
pipeline.task @m.F forward of @m(%k) {
  %x = pipeline.take @x : tensor<5x3xf64>
  %r = func.call @f(%x) : (tensor<5x3xf64>) -> tensor<5x3xf64>
}
func.func private @f(%x: tensor<5x3xf64>) -> (tensor<5x3xf64> {onnx.output = "y"}) {
  %0 = onnx.node "Tanh"(%x) since 13 : (tensor<5x3xf64>) -> tensor<5x3xf64>
  return %0 : tensor<5x3xf64>
}
// CHECK:      pipeline.channel @labels : [tensor<5x3xf64>]
// CHECK:      pipeline.channel @loss : [tensor<f32>] sink(loss)
// CHECK:        %[[MEAN:.*]] = onnx.node "ReduceMean"(%{{.*}}) since 18 {keepdims = 0 : i64} : (tensor<5x3xf64>) -> tensor<f64>
// CHECK-NEXT:   %[[LOSS:.*]] = onnx.node "Cast"(%[[MEAN]]) since 13 {to = 1 : i64} : (tensor<f64>) -> tensor<f32>
// CHECK-NEXT:   return %[[LOSS]]
