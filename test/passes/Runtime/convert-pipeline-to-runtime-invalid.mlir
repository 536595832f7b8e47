// RUN: %expand-cases %s | penstock-opt --convert-pipeline-to-runtime --split-input-file \
// RUN:   --verify-diagnostics

// expected-error @below {{cannot read 'no/such/file.onnx'}}
module attributes {pipeline.model = #pipeline.bytes<"no/such/file.onnx", 0, 3>} {
}

// -----

module @replay {}
// expected-error @below {{there is more than one nested module}}
module @other {}

// -----

pipeline.stage @s devices [0]
pipeline.schedule @train microbatches(4)
pipeline.device 0 target(#cpu.target<>)
pipeline.arena 0 bytes(256)
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  return
}

// -----

@@
-pipeline.arena 0 bytes(256)
+// expected-error @below {{device 0 has no pipeline.arena: run pipeline-plan-memory}}
 func.func @train.0(%first: index, %updates: index)

// -----

@@
+  // expected-error @below {{has no place: run pipeline-plan-memory}}
+  %h = pipeline.slot @x[%first] : memref<4x2xf32>
   return

// -----

@@
-pipeline.stage @s devices [0]
+// expected-error @below {{there is no channel @x}}
+module {
@@
+  pipeline.await @x[%first]
   return
 }
+}

// -----

@@
+  %0 = pipeline.hyperparameter "lr" default(0.5) : f32
+  // expected-error @below {{has the value 2.500000e-01, but 5.000000e-01 elsewhere}}
+  %1 = pipeline.hyperparameter "lr" default(0.25) : f32
   return

// -----

@@
+pipeline.device 1 target(#cpu.target<>)
+pipeline.arena 1 bytes(256)
+pipeline.channel @x : [tensor<4xf32>] slots(1)
+func.func @train.1(%first: index, %updates: index)
+    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
+  %h = pipeline.slot @x[%first] at(0) : memref<4xf32>
+  pipeline.start_send @x[%first], %h : memref<4xf32>
+  return
+}
 func.func @train.0(%first: index, %updates: index)
     attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
+  %h = pipeline.slot @x[%first] at(0) : memref<4xf32>
+  // expected-error @below {{device 0 is an end of this channel, but device 1 is the same end elsewhere}}
+  pipeline.start_send @x[%first], %h : memref<4xf32>

// -----

@@
+  // expected-error @below {{names no task: @F}}
+  pipeline.mark @F[%first]
   return

// -----

@@
+// expected-error @below {{is transferred, but carries several tensors}}
+pipeline.channel @x : [tensor<4xf32>, tensor<4xf32>] slots(1)
 func.func @train.0(%first: index, %updates: index)
@@
+  pipeline.await @x[%first]
   return

// -----

@@
+// expected-error @below {{the runtime knows no tensors of type 'tensor<4xi4>'}}
+pipeline.variable @v : tensor<4xi4> statistic of @s
 func.func @train.0(%first: index, %updates: index)

// -----

@@
-pipeline.stage @s devices [0]
-pipeline.schedule @train microbatches(4)
+// expected-error @below {{there is no schedule @train}}
+module {
@@
   return
 }
+}

// -----

@@
 func.func @train.0(%first: index, %updates: index)
     attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
   return
 }
+module @replay {
+  pipeline.device 0 target(#cpu.target<>)
+  pipeline.arena 0 bytes(256)
+  pipeline.schedule @train microbatches(4)
+  func.func private @f(index)
+  func.func @train.0(%first: index, %updates: index)
+      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
+    // expected-error @below {{calls @f, which the program does not have}}
+    func.call @f(%first) : (index) -> ()
+    return
+  }
+}

// -----

@@
-pipeline.device 0 target(#cpu.target<>)
@@
-func.func @train.0(%first: index, %updates: index)
+// expected-error @below {{device 0 has no pipeline.device: run pipeline-declare-devices}}
+func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)

// -----

@@
-pipeline.device 0 target(#cpu.target<>)
+// expected-error @below {{--march=pentium9: LLVM knows no such CPU for}}
+pipeline.device 0 target(#cpu.target<march("pentium9")>)
@@
-func.func @train.0(%first: index, %updates: index)
+func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)

// -----

// A name of an action is one in program and replay.
@@
-pipeline.device 0 target(#cpu.target<>)
+pipeline.device 0 target(#cuda.target<"sm_90">)
@@
-func.func @train.0(%first: index, %updates: index)
+func.func @train.0(%d: !llvm.ptr, %first: index, %updates: index)
     attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
+  kernel.action "s.F" key(%first of 1) {}
   return
 }
+module @replay {
+  pipeline.device 0 target(#cuda.target<"sm_90">)
+  pipeline.arena 0 bytes(256)
+  func.func @train.0(%d: !llvm.ptr, %first: index, %updates: index)
+      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
+    // expected-error @below {{there is another action "s.F"}}
+    kernel.action "s.F" key(%first of 1) {}
+    return
+  }
+}

// -----

@@
-pipeline.device 0 target(#cpu.target<>)
+pipeline.device 0 target(#cuda.target<"sm_90">)
@@
-func.func @train.0(%first: index, %updates: index)
+func.func @train.0(%d: !llvm.ptr, %first: index, %updates: index)
     attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
+  // expected-error @below {{no action "s.U" has a scalar 1}}
+  %place = kernel.scalar "s.U"[1] : memref<f32>
+  kernel.action "s.U" key(%first of 1) scalars(1) {}

// -----

func.func private @kernel(%d: !llvm.ptr, %a: memref<4x2xf32>, %b: memref<2x3xf32>, %c: memref<4x3xf32>) {
  // expected-error @below {{has no config: run pipeline-select-library first}}
  kernel.gemm %a, %b, %c sizes [4, 3, 2] strides [2, 1] [3, 1] [3, 1]
    : memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>
  return
}

// -----

func.func private @kernel(%a: memref<4x2xf32>, %b: memref<2x3xf32>, %c: memref<4x3xf32>) {
  // expected-error @below {{needs the device as first argument of its function}}
  kernel.gemm %a, %b, %c sizes [4, 3, 2] strides [2, 1] [3, 1] [3, 1]
    config(#cpu.gemm<>) : memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>
  return
}

// -----

func.func private @kernel(%d: !llvm.ptr, %a: memref<4x2xf64>, %b: memref<2x3xf64>, %c: memref<4x3xf64>) {
  // expected-error @below {{the runtime has no place for it: it takes f32 matrices with up to 4 batch dimensions, and convolutions with up to 3 spatial ones}}
  kernel.gemm %a, %b, %c sizes [4, 3, 2] strides [2, 1] [3, 1] [3, 1]
    config(#cpu.gemm<>) : memref<4x2xf64>, memref<2x3xf64>, memref<4x3xf64>
  return
}

// -----

#order = #cpu.blocked<[2, 3, 7, 7, 7, 7] by [5, 3, 1, 1, 1, 1] to [2, 5, 7, 7, 7, 7] strides [1, 1, 1, 1] dilations [1, 1, 1, 1] pads [0, 0, 0, 0, 0, 0, 0, 0] groups 1 config <library>>
// expected-error @below {{packs weights in an order that the runtime cannot make: #cpu.blocked<}}
pipeline.variable @w.prepacked : tensor<15xf32> prepacked {kernel.packing = #order, pipeline.parameter = @w}
pipeline.variable @w : tensor<5x3x1x1x1x1xf32> parameter

// -----

func.func private @a(%d: !llvm.ptr, %a: memref<4x2xf32>) {
  kernel.launch @kernels::@f grid [1, 1, 1] block [128, 1, 1] (%a) : memref<4x2xf32>
  // expected-error @below {{@kernels::@f is launched elsewhere with another grid, other blocks or other parameters}}
  kernel.launch @kernels::@f grid [2, 1, 1] block [128, 1, 1] (%a) : memref<4x2xf32>
  return
}

// -----

// A plan of memory by somebody who does not know cuDNN.
pipeline.stage @s devices [0]
pipeline.device 0 target(#cuda.target<"sm_90">)
pipeline.arena 0 bytes(8192) alignment(8)
pipeline.variable @x : tensor<2x3x7xf32> parameter of @s
func.func private @kernel(%d: !llvm.ptr, %x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{has operands at multiples of 16 bytes, but the arena of device 0 is aligned to 8: run pipeline-plan-memory with alignment=16 or more}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}
func.func @train.0(%d: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %x = pipeline.slot @x[%first] at(0) : memref<2x3x7xf32>
  %w = pipeline.slot @x[%first] at(256) : memref<5x3x3xf32>
  %y = pipeline.slot @x[%first] at(520) : memref<2x5x4xf32>
  func.call @kernel(%d, %x, %w, %y) : (!llvm.ptr, memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>) -> ()
  return
}
