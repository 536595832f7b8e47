// RUN: penstock-opt %s --onnx-bound-inputs --split-input-file | FileCheck %s
// RUN: penstock-opt %s --onnx-bound-inputs --onnx-bound-inputs --split-input-file | FileCheck %s

// Labels name a class or are ignored, tokens a row of the table, also where they
// come in another shape or type. What is computed says nothing of the input.

// CHECK: pipeline.channel @tokens : [tensor<5x7xi32>] source(input "tokens") {pipeline.range = #pipeline.range<-11 to 11>}
// CHECK: pipeline.channel @labels : [tensor<5xi64>] source(labels) {pipeline.range = #pipeline.range<0 to 3 or -100>}
// CHECK: pipeline.channel @shifted : [tensor<5xi64>] source(input "shifted"){{$}}
// CHECK: pipeline.channel @free : [tensor<5xi64>] source(input "free"){{$}}
pipeline.stage @m
pipeline.channel @tokens : [tensor<5x7xi32>] source(input "tokens")
pipeline.channel @labels : [tensor<5xi64>] source(labels)
pipeline.channel @shifted : [tensor<5xi64>] source(input "shifted")
pipeline.channel @free : [tensor<5xi64>] source(input "free")
pipeline.task @m.F forward of @m(%k) {
  %t = pipeline.take @tokens : tensor<5x7xi32>
  %l = pipeline.take @labels : tensor<5xi64>
  %s = pipeline.take @shifted : tensor<5xi64>
  %f = pipeline.take @free : tensor<5xi64>
  func.call @m.forward(%t, %l, %s, %f) : (tensor<5x7xi32>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>) -> ()
}
func.func private @m.forward(%t: tensor<5x7xi32>, %l: tensor<5xi64>, %s: tensor<5xi64>, %f: tensor<5xi64>) {
  %table = arith.constant dense<0.5> : tensor<11x3xf32>
  %z = arith.constant dense<0.5> : tensor<5x3xf32>
  %one = arith.constant dense<1> : tensor<1xi64>
  %shape = arith.constant dense<[35]> : tensor<1xi64>
  %wide = onnx.node "Cast"(%t) since 13 {to = 7 : i64} : (tensor<5x7xi32>) -> tensor<5x7xi64>
  %flat = onnx.node "Reshape"(%wide, %shape) since 14 : (tensor<5x7xi64>, tensor<1xi64>) -> tensor<35xi64>
  %rows = onnx.node "Gather"(%table, %flat) since 13 : (tensor<11x3xf32>, tensor<35xi64>) -> tensor<35x3xf32>
  %loss = onnx.node "SoftmaxCrossEntropyLoss"(%z, %l) since 13 {ignore_index = -100 : i64} : (tensor<5x3xf32>, tensor<5xi64>) -> tensor<f32>
  %next = onnx.node "Add"(%s, %one) since 14 : (tensor<5xi64>, tensor<1xi64>) -> tensor<5xi64>
  %other = onnx.node "Gather"(%table, %next) since 13 : (tensor<11x3xf32>, tensor<5xi64>) -> tensor<5x3xf32>
  return
}

// -----

// Of two uses, what both allow: the ignored label must be a row, too. Along an
// axis, and as labels of a likelihood.

// CHECK: pipeline.channel @both : [tensor<5xi64>] source(input "both") {pipeline.range = #pipeline.range<0 to 3 or -2>}
// CHECK: pipeline.channel @less : [tensor<5xi64>] source(input "less") {pipeline.range = #pipeline.range<0 to 2>}
// CHECK: pipeline.channel @narrowed : [tensor<5xi64>] source(input "narrowed"){{$}}
pipeline.stage @m
pipeline.channel @both : [tensor<5xi64>] source(input "both")
pipeline.channel @less : [tensor<5xi64>] source(input "less")
pipeline.channel @narrowed : [tensor<5xi64>] source(input "narrowed")
pipeline.task @m.F forward of @m(%k) {
  %b = pipeline.take @both : tensor<5xi64>
  %l = pipeline.take @less : tensor<5xi64>
  %n = pipeline.take @narrowed : tensor<5xi64>
  func.call @m.forward(%b, %l, %n) : (tensor<5xi64>, tensor<5xi64>, tensor<5xi64>) -> ()
}
func.func private @m.forward(%b: tensor<5xi64>, %l: tensor<5xi64>, %n: tensor<5xi64>) {
  %table = arith.constant dense<0.5> : tensor<7x11xf32>
  %small = arith.constant dense<0.5> : tensor<2x7xf32>
  %z = arith.constant dense<0.5> : tensor<5x3xf32>
  %a = onnx.node "NegativeLogLikelihoodLoss"(%z, %b) since 13 {ignore_index = -2 : i64} : (tensor<5x3xf32>, tensor<5xi64>) -> tensor<f32>
  %c = onnx.node "Gather"(%table, %b) since 13 {axis = 1 : i64} : (tensor<7x11xf32>, tensor<5xi64>) -> tensor<7x5xf32>
  %d = onnx.node "NegativeLogLikelihoodLoss"(%z, %l) since 13 {ignore_index = -100 : i64} : (tensor<5x3xf32>, tensor<5xi64>) -> tensor<f32>
  %e = onnx.node "Gather"(%small, %l) since 13 : (tensor<2x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %i = onnx.node "Cast"(%n) since 13 {to = 3 : i64} : (tensor<5xi64>) -> tensor<5xi8>
  %w = onnx.node "Cast"(%i) since 13 {to = 7 : i64} : (tensor<5xi8>) -> tensor<5xi64>
  %g = onnx.node "Gather"(%small, %w) since 13 : (tensor<2x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  return
}
