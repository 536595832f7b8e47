// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-verify --verify-diagnostics

// C39 to C42 and C47: facts that stand in two places agree.

// C41: a value begins and ends within its file,
module attributes {pipeline.model = #pipeline.bytes<"m.onnx", 0, 100>} {
  pipeline.training optimizer<sgd>
  pipeline.stage @s0
  // expected-error @+1 {{C41: init has bytes 96 to 104 of 'm.onnx', which has 100}}
  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 96, 8>
  pipeline.task @s0.F forward of @s0(%k) {
  }
}

// -----

// and so does one that is tied to it, which has its size, too.
@@
-  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 96, 8>
+  // expected-error @+1 {{C41: v has 12 bytes, 'tensor<2xf32>' takes 8}}
+  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 80, 8>
+    {pipeline.tied = {v = #pipeline.bytes<"m.onnx", 20, 12>}}

// -----

// C41: what starts at zero, and what does not.
@@
-  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 96, 8>
+  // expected-error @+1 {{C41: of role optimizer starts at zero, not as an init says}}
+  pipeline.variable @m : tensor<2xf32> optimizer of @s0 init <"m.onnx", 0, 8>

// -----

@@
-  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 96, 8>
+  // expected-error @+1 {{C41: of role parameter has no init, where it starts}}
+  pipeline.variable @w : tensor<2xf32> parameter of @s0

// -----

// C39: what is frozen is not updated,
!t = tensor<2xf32>
pipeline.training optimizer<sgd>
pipeline.stage @s0
// expected-note @+1 {{frozen here}}
pipeline.variable @w : !t parameter of @s0 {frozen}
func.func private @f(!t) -> !t
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.U update of @s0(%t) {
  %w = pipeline.read @w : !t
  %0 = func.call @f(%w) : (!t) -> !t
  // expected-error @+1 {{C39: of task @s0.U writes @w, which is frozen}}
  pipeline.write %0 to @w : !t
}

// -----

// and has no gradient.
!t = tensor<2xf32>
pipeline.training optimizer<sgd>
pipeline.stage @s0
// expected-note @+1 {{frozen here}}
pipeline.variable @w : !t parameter of @s0 {frozen}
// expected-error @+1 {{C39: is gradient of @w, which is frozen}}
pipeline.variable @w.grad : !t gradient of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @w.grad : !t
  pipeline.write %g to @w.grad : !t
}

// -----

// C39: whose a variable is.
!t = tensor<2xf32>
pipeline.training optimizer<sgd>
pipeline.stage @s0
// expected-error @+1 {{C39: belongs to @w, which is no variable of this module}}
pipeline.variable @m : !t optimizer of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

!t = tensor<2xf32>
pipeline.training optimizer<sgd>
pipeline.stage @s0
pipeline.stage @s1
pipeline.variable @w : !t parameter of @s1
// expected-error @+1 {{C39: belongs to @w, which is of stage @s1}}
pipeline.variable @m : !t optimizer of @s0 {pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}

// -----

pipeline.training optimizer<sgd>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.schedule @train microbatches(1)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// C40: which versions are read has to follow from something.
@@
+!t = tensor<2xf32>
 pipeline.training optimizer<sgd>
@@
+pipeline.variable @w : !t parameter of @s0
+// expected-error @+1 {{C40: keeps versions, but neither pipeline.training says the method nor stages their lags}}
+pipeline.weight_stash @w depth(2)
 pipeline.task @s0.F forward of @s0

// -----

// C40: of all stages or of none.
@@
-pipeline.stage @s0 devices [0]
+pipeline.stage @s0 devices [0] {pipeline.lags = array<i64: 1, 1>}
+// expected-error @+1 {{C40: has no lags, stage @s0 has}}
+pipeline.stage @s1 devices [0]

// -----

// C12, of what tasks state at level program.
@@
+pipeline.variable @w : tensor<2xf32> parameter of @s0
+// expected-error @+1 {{C12: states that @f writes @w of role parameter in a backward task}}
+pipeline.task @s0.B backward of @s0 calls [#pipeline.call<@f [#pipeline.operand<update @w>]>]
 pipeline.task @s0.F forward of @s0
@@
+func.func private @f()
 func.func @train.0(%first: index, %updates: index)

// -----

// C38, of the same.
@@
+pipeline.variable @w : tensor<2xf32> parameter of @s0
+pipeline.variable @v : tensor<2xf32> parameter of @s0
+pipeline.variable @g : tensor<2xf32> gradient of @s0 {pipeline.parameter = @v}
 pipeline.task @s0.F forward of @s0
+// expected-error @+1 {{C38: states that @f uses @g, which belongs to @v, with what belongs to @w}}
+pipeline.task @s0.U update of @s0 calls [#pipeline.call<@f [#pipeline.operand<update @w>, #pipeline.operand<read @g>]>]
 pipeline.schedule @train microbatches(1)
+func.func private @f()

// -----

// C39: what nobody uses.
@@
+// expected-error @+1 {{C39: has no slot in the function of any device}}
+pipeline.variable @w : tensor<2xf32> parameter of @s0
 pipeline.task @s0.F forward of @s0

// -----

// C39: only parameters have what updates need.
@@
+pipeline.variable @w : tensor<2xf32> scalar of @s0
+// expected-error @+1 {{C39: is optimizer of @w, which is scalar}}
+pipeline.variable @m : tensor<2xf32> optimizer of @s0 {pipeline.parameter = @w}
 pipeline.task @s0.F forward of @s0

// -----

// C47: a function makes the rate of training,
@@
-pipeline.training optimizer<sgd>
+// expected-error @+1 {{C47: has a rate, but no function has pipeline.rate, and makes it}}
+pipeline.training optimizer<sgd> rate<cosine, total_steps = 9>

// -----

// and no function makes another one.
@@
 pipeline.training optimizer<sgd>
+// expected-error @+1 {{C47: makes the learning rate, but pipeline.training has no rate}}
+func.func private @lr(f32, index) -> f32 attributes {pipeline.rate}

// -----

// C40: the rate that is compiled in.
!t = tensor<2xf32>
pipeline.training optimizer<sgd, lr = 5.0e-1>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.task @s0.U update of @s0
pipeline.schedule @train microbatches(1)
func.func private @f(f32)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  // expected-error @+1 {{C40: has another default than the learning rate of pipeline.training}}
  %lr = pipeline.hyperparameter "lr" default(2.5e-1) : f32
  func.call @f(%lr) : (f32) -> ()
  return
}

// -----

// C40: nothing is compensated in the updates that the method runs alone.
!t = tensor<2xf32>
pipeline.training optimizer<sgd> method<pipemare, warmup_steps = 2>
pipeline.stage @s0
pipeline.variable @w : !t parameter of @s0
pipeline.variable @w.delta : !t compensation of @s0 {pipeline.kind = "delta", pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.U update of @s0(%t) {
  %w = pipeline.read @w : !t
  %d = pipeline.read @w.delta : !t
  // expected-error @+1 {{C40: compensates from version 0 on, the method of pipeline.training from 2}}
  %0 = pipeline.compensate %w, %d tau(1.5) : !t
}

// -----

// C40: it makes up for the delay of its stage.
@@
-pipeline.training optimizer<sgd> method<pipemare, warmup_steps = 2>
-pipeline.stage @s0
+pipeline.training microbatches(2) optimizer<sgd> method<pipemare>
+pipeline.stage @s0 {pipeline.lags = array<i64: 4, 0>}
@@
-  %0 = pipeline.compensate %w, %d tau(1.5) : !t
+  // expected-error @+1 {{C40: makes up for a delay of 1.500000e+00 updates, that of its stage is 2.000000e+00}}
+  %0 = pipeline.compensate %w, %d tau(1.5) : !t

// -----

// C39: kinds tell states of a parameter apart.
!t = tensor<2xf32>
pipeline.training optimizer<adam>
pipeline.stage @s0 devices [0]
pipeline.variable @w : !t parameter of @s0
// expected-error @+1 {{C39: has the kind "speed", optimizer of @w has one of m, v}}
pipeline.variable @w.m : !t optimizer of @s0 {pipeline.kind = "speed", pipeline.parameter = @w}
pipeline.task @s0.F forward of @s0
pipeline.schedule @train microbatches(1)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %w = pipeline.slot @w[%first] : memref<2xf32>
  %m = pipeline.slot @w.m[%first] : memref<2xf32>
  return
}

// -----

// Without one, an average would not be saved in place of its weight.
@@
-pipeline.variable @w.m : !t optimizer of @s0 {pipeline.kind = "speed", pipeline.parameter = @w}
+// expected-error @+1 {{C39: has no kind, compensation of @w has one of ema}}
+pipeline.variable @w.m : !t compensation of @s0 {pipeline.parameter = @w}

// -----

// A method has its own kinds.
@@
-pipeline.training optimizer<adam>
+pipeline.training optimizer<adam> method<pipemare>
@@
-pipeline.variable @w.m : !t optimizer of @s0 {pipeline.kind = "speed", pipeline.parameter = @w}
+// expected-error @+1 {{C39: has the kind "blended", compensation of @w has one of ema, delta, compensated}}
+pipeline.variable @w.m : !t compensation of @s0 {pipeline.kind = "blended", pipeline.parameter = @w}

// -----

@@
-pipeline.variable @w.m : !t optimizer of @s0 {pipeline.kind = "speed", pipeline.parameter = @w}
+// expected-note @+1 {{the other}}
+pipeline.variable @w.m : !t optimizer of @s0 {pipeline.kind = "m", pipeline.parameter = @w}
+// expected-error @+1 {{C39: is of @w, of which there is another of the same kind}}
+pipeline.variable @w.n : !t optimizer of @s0 {pipeline.kind = "m", pipeline.parameter = @w}

// -----

// C42: the replay has the variables of its program,
pipeline.training optimizer<sgd>
pipeline.stage @s0 devices [0]
// expected-note @+1 {{in the program}}
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.task @s0.F forward of @s0
pipeline.schedule @train microbatches(1)
module @replay {
  pipeline.stage @s0 devices [0]
  // expected-error @+1 {{C42: of the replay differs from that of the program}}
  pipeline.variable @w : tensor<2xf32> parameter of @s0 {frozen}
  pipeline.task @s0.F forward of @s0
}
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %w = pipeline.slot @w[%first] : memref<2xf32>
  return
}

// -----

// its tasks,
pipeline.training optimizer<sgd>
pipeline.stage @s0 devices [0]
// expected-note @+1 {{in the program}}
pipeline.task @s0.F forward of @s0 calls [#pipeline.call<@f []>]
pipeline.schedule @train microbatches(1)
module @replay {
  pipeline.stage @s0 devices [0]
  // expected-error @+1 {{C42: of the replay makes other calls than the program}}
  pipeline.task @s0.F forward of @s0 calls [#pipeline.call<@g []>]
}
func.func private @f()
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// and its microbatches per update.
pipeline.training microbatches(2) optimizer<sgd>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.schedule @train microbatches(2)
module @replay {
  pipeline.stage @s0 devices [0]
  pipeline.task @s0.F forward of @s0
  // expected-error @+1 {{C33: has 4 microbatches per update, pipeline.training 2}}
  pipeline.schedule @train microbatches(4)
}
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// C33: evaluation counts single microbatches.
pipeline.training microbatches(2) optimizer<sgd>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.task @s0.E evaluate of @s0
pipeline.schedule @train microbatches(2)
// expected-error @+1 {{C33: evaluates by 2 microbatches; a segment of evaluation counts single ones}}
pipeline.schedule @evaluate to evaluate microbatches(2)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// C30: a program that trains can.
// expected-error @+1 {{C40: trains, but there is no schedule to train}}
pipeline.training optimizer<sgd>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.task @s0.E evaluate of @s0
pipeline.schedule @evaluate to evaluate microbatches(1)
func.func @evaluate.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @evaluate, pipeline.device = 0 : i64} {
  return
}

// -----

// C33: what evaluates has no waves.
pipeline.training microbatches(2) optimizer<sgd>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
pipeline.task @s0.E evaluate of @s0
pipeline.schedule @train microbatches(2)
// expected-error @+1 {{C33: does not train, but has waves}}
pipeline.schedule @evaluate to evaluate microbatches(1) wave(6)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// C33: waves are those of the method.
pipeline.training microbatches(2) optimizer<sgd>
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0
// expected-error @+1 {{C33: has waves of 2 updates and distance 0, the method of pipeline.training 1 and 0}}
pipeline.schedule @train microbatches(2) wave(2)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

// Adjusted weights are packed like parameters; gradients are not.
#panels = #cpu.panels<[300, 1024] strides[1024, 1] width 384 stride 400>
pipeline.stage @s0
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.variable @w.grad : tensor<2xf32> gradient of @s0 {pipeline.parameter = @w}
pipeline.variable @w.ahead : tensor<2xf32> compensation of @s0 {pipeline.parameter = @w}
pipeline.variable @w.ahead.packed : tensor<2xf32> prepacked of @s0 {kernel.packing = #panels, pipeline.parameter = @w.ahead}
// expected-error @+1 {{C39: is prepacked of @w.grad, which is gradient}}
pipeline.variable @w.grad.packed : tensor<2xf32> prepacked of @s0 {kernel.packing = #panels, pipeline.parameter = @w.grad}
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

// C41: what stands for a weight starts as that, a difference at zero.
module attributes {pipeline.model = #pipeline.bytes<"m.onnx", 0, 100>} {
  pipeline.training optimizer<sgd>
  pipeline.stage @s0
  // expected-note @+1 {{the parameter}}
  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 80, 8>
  // expected-error @+1 {{C41: stands for @w, but does not start as that}}
  pipeline.variable @w.global : tensor<2xf32> compensation of @s0 {pipeline.parameter = @w}
  pipeline.task @s0.F forward of @s0(%k) {
  }
}

// -----

@@
-  pipeline.variable @w.global : tensor<2xf32> compensation of @s0 {pipeline.parameter = @w}
+  // expected-error @+1 {{C41: of kind "delta" starts at zero, not as an init says}}
+  pipeline.variable @w.delta : tensor<2xf32> compensation of @s0 init <"m.onnx", 80, 8> {pipeline.kind = "delta", pipeline.parameter = @w}

// -----

// A master does, too, and optimizer state is none.
@@
-  pipeline.variable @w : tensor<2xf32> parameter of @s0 init <"m.onnx", 80, 8>
+  // expected-note @+1 {{the parameter}}
+  pipeline.variable @w : tensor<2xbf16> parameter of @s0 init <"m.onnx", 80, 8>
@@
-  pipeline.variable @w.global : tensor<2xf32> compensation of @s0 {pipeline.parameter = @w}
+  // expected-error @+1 {{C41: stands for @w, but does not start as that}}
+  pipeline.variable @w.m : tensor<2xf32> master of @s0 {pipeline.kind = "m", pipeline.parameter = @w}

// -----

// C42: the replay is fed as the program is.
pipeline.training optimizer<sgd> method<sync>
pipeline.stage @s0 devices [0]
// expected-note @+1 {{in the program}}
pipeline.channel @x : [tensor<2xf32>] source(input "x")
pipeline.task @s0.F forward of @s0(%k) {
  %0 = pipeline.take @x : tensor<2xf32>
}
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.recv @x pipeline.run @s0.F
  } }
}
module @replay {
  pipeline.stage @s0 devices [0]
  // expected-error @+1 {{C42: of the replay differs from that of the program}}
  pipeline.channel @x : [tensor<2xf32>] source(input "y")
  pipeline.task @s0.F forward of @s0(%k) {
    %0 = pipeline.take @x : tensor<2xf32>
  }
  pipeline.schedule @train microbatches(1) {
    pipeline.order 0 { pipeline.repeat updates {
      pipeline.recv @x pipeline.run @s0.F
    } }
  }
}
