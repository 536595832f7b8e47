// RUN: printf abc > %t.onnx
// RUN: printf data > %t.data
// RUN: sed 's|MODEL|%t.onnx|;s|EXTERNAL|%t.data|' %s > %t.mlir
// RUN: penstock-opt %t.mlir --convert-pipeline-to-runtime \
// RUN:   | FileCheck %s
// RUN: penstock-opt %t.mlir --convert-pipeline-to-runtime --pipeline-pass-addresses --convert-scf-to-cf \
// RUN:   --expand-strided-metadata --finalize-memref-to-llvm \
// RUN:   --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 \
// RUN:   --convert-arith-to-llvm --convert-cf-to-llvm \
// RUN:   --reconcile-unrealized-casts | mlir-translate --mlir-to-llvmir > %t.ll
// RUN: FileCheck %s --check-prefix=LLVM < %t.ll
// RUN: FileCheck %s --check-prefix=TABLE < %t.ll

// Kernels have the device as first argument; slots are addresses in its arena.

// CHECK: llvm.func @penstock_send(!llvm.ptr, i32, i64, !llvm.ptr)

module attributes {pipeline.model = #pipeline.bytes<"MODEL", 0, 3>, pipeline.external_data = ["EXTERNAL"]} {
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : tensor<2x3xf32> parameter of @s1 init <"MODEL", 1, 24>
pipeline.channel @x : [tensor<4x2xf32>] source(input "x") slots(2)
pipeline.channel @y : [tensor<4xi64>] source(input "y") {pipeline.range = #pipeline.range<-7 to 7 or 9>}
pipeline.channel @h : [tensor<4x2xf32>] slots(2) staging(1)
pipeline.channel @local : [tensor<f32>, tensor<f32>] slots(2)
pipeline.channel @loss : [tensor<f32>] sink(loss) staging(1)
pipeline.task @s0.F forward of @s0
pipeline.task @s1.F forward of @s1
pipeline.schedule @train microbatches(4) predicted_bubble(0.25) generator<"1f1b">
pipeline.schedule @evaluate to evaluate microbatches(1)
pipeline.device 0 target(#cpu.target<>)
pipeline.arena 0 bytes(256)
pipeline.device 1 target(#cpu.target<threads(2)>)
pipeline.arena 1 bytes(512) alignment(128)

// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME:    %[[DEV:.*]]: !llvm.ptr, %[[A:.*]]: memref<4x2xf32>, %[[B:.*]]: memref<2x3xf32>, %[[C:.*]]: memref<4x3xf32>)
// CHECK-SAME:    attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK:         %[[I:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
// CHECK:         %[[W:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK:         %[[P:.*]] = llvm.inttoptr %[[W]] : i64 to !llvm.ptr
// CHECK:         llvm.call @penstock_gemm(%[[DEV]], %{{.*}}, %[[P]], %{{.*}}, %{{.*}})
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.call @penstock_gemm(%[[DEV]], %[[ID]],
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         llvm.call @penstock_gemm(%[[DEV]], %[[ID]],
func.func private @kernel(%dev: !llvm.ptr, %a: memref<4x2xf32>,
    %b: memref<2x3xf32> {pipeline.into = 0 : i64}, %c: memref<4x3xf32> {pipeline.out}) {
  kernel.gemm %a, %b, %c sizes [4, 3, 2] strides [2, 1] [3, 1] [3, 1]
    config(#cpu.gemm<>) : memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>
  kernel.gemm %a, %b, %c sizes [4, 3, 2] strides [2, 1] [3, 1] [3, 1] accumulate
    config(#cpu.gemm<>) : memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>
  kernel.gemm %c, %b, %a sizes [4, 3, 2] strides [2, 1] [3, 1] [3, 1]
    config(#cpu.gemm<>) : memref<4x3xf32>, memref<2x3xf32>, memref<4x2xf32>
  return
}

func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %x = pipeline.slot @x[%first] ring(2) at(64) stride(64) : memref<4x2xf32>
  pipeline.start_recv @x[%first], %x : memref<4x2xf32>
  pipeline.await @x[%first]
  pipeline.start_send @h[%first], %x : memref<4x2xf32>
  return
}

// CHECK-LABEL: llvm.func internal @train.0(
// CHECK-SAME:    %[[DEV:.*]]: !llvm.ptr, %[[FIRST64:.*]]: i64, %{{.*}}: i64, %{{.*}}: i64)
// CHECK:         %[[FIRST:.*]] = arith.index_cast %[[FIRST64]] : i64 to index
// CHECK:         %[[ARENA:.*]] = llvm.call @penstock_arena(%[[DEV]])
// CHECK:         %[[TURN:.*]] = arith.remui %[[FIRST]], %c2
// CHECK:         %[[TURN64:.*]] = arith.index_cast %[[TURN]]
// CHECK:         %[[AT:.*]] = llvm.mlir.constant(64 : i64)
// CHECK:         %[[STRIDE:.*]] = llvm.mlir.constant(64 : i64)
// CHECK:         %[[SHIFT:.*]] = llvm.mul %[[TURN64]], %[[STRIDE]]
// CHECK:         %[[BYTES:.*]] = llvm.add %[[AT]], %[[SHIFT]]
// CHECK:         %[[X:.*]] = llvm.getelementptr %[[ARENA]][%[[BYTES]]]
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         %[[N:.*]] = arith.index_cast %[[FIRST]]
// CHECK:         llvm.call @penstock_recv(%[[DEV]], %[[ID]], %[[N]], %[[X]])
// CHECK:         llvm.call @penstock_await(%[[DEV]],
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.call @penstock_send(%[[DEV]], %[[ID]], %{{.*}}, %[[X]])
// CHECK:         llvm.return

// LLVM-LABEL: define internal void @train.1(ptr %0, i64 %1, i64 %2, i64 %3)
// LLVM:         %[[ARENA:.*]] = call ptr @penstock_arena(ptr %0)
// LLVM:         call void @penstock_mark(ptr %0, i32 1, i64 %1)
// LLVM:         call double @penstock_hyperparameter(ptr %0, i32 0)
// LLVM:         call i64 @penstock_integer_hyperparameter(ptr %0, i32 1)
// LLVM:         call void @kernel(ptr %0, ptr %{{.*}}, ptr %{{.*}}, ptr %{{.*}})
func.func @train.1(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  %h = pipeline.slot @h[%first] ring(2) at(0) stride(64) : memref<4x2xf32>
  %w = pipeline.slot @w[%first] ring(2) at(128) stride(128) : memref<2x3xf32>
  %c = pipeline.scratch at(384) : memref<4x3xf32>
  pipeline.start_recv @h[%first], %h : memref<4x2xf32>
  pipeline.await @h[%first]
  pipeline.mark @s1.F[%first]
  %lr = pipeline.hyperparameter "lr" default(0.5) : f32
  %seed = pipeline.hyperparameter "seed" : i64
  func.call @kernel(%dev, %h, %w, %c)
    : (!llvm.ptr, memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>) -> ()
  return
}

// A loop that asks for its bound ends where that puts its end.
// CHECK-LABEL: llvm.func internal @evaluate.0(
// CHECK-SAME:    %[[DEV:.*]]: !llvm.ptr, %{{[^:]*}}: i64, %[[UPDATES64:[^:]*]]: i64, %{{[^:]*}}: i64)
// CHECK:         %[[UPDATES:.*]] = arith.index_cast %[[UPDATES64]] : i64 to index
// CHECK:         %[[COUNT:.*]] = arith.muli %[[UPDATES]], %[[M:.*]] : index
// CHECK:         %[[END:.*]] = arith.addi %[[COUNT]], %[[TWO:.*]] : index
// CHECK:         scf.while (%[[I:.*]] = %{{.*}}, %[[TO:.*]] = %[[END]])
// CHECK:           %[[GOES_ON:.*]] = arith.cmpi slt, %[[I]], %[[TO]]
// CHECK:           scf.condition(%[[GOES_ON]]) %[[I]], %[[TO]]
// CHECK:         ^bb0(%[[J:.*]]: index, %{{.*}}: index):
// CHECK:           %[[LEAST:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK:           %[[N64:.*]] = llvm.call @penstock_bound(%[[DEV]], %[[LEAST]])
// CHECK:           %[[N:.*]] = arith.index_cast %[[N64]] : i64 to index
// CHECK:           %[[LEFT:.*]] = arith.muli %[[N]], %[[M]] : index
// CHECK:           arith.cmpi ult, %[[J]], %[[LEFT]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[J]], %{{.*}} : index
// CHECK:           %[[COUNT2:.*]] = arith.muli %[[N]], %[[M]] : index
// CHECK:           %[[END2:.*]] = arith.addi %[[COUNT2]], %[[TWO]] : index
// CHECK:           scf.yield %[[NEXT]], %[[END2]]
func.func @evaluate.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @evaluate, pipeline.device = 0 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %count = arith.muli %updates, %four : index
  %end = arith.addi %count, %two : index
  scf.for %j = %zero to %end step %one {
    %update = arith.divui %j, %four : index
    %least = arith.addi %update, %one : index
    %n = pipeline.bound %least
    %left = arith.muli %n, %four : index
    %test = arith.cmpi ult, %j, %left : index
    scf.if %test {
      pipeline.mark @s0.F[%j]
    }
  }
  return
}

// The replay has other functions and offsets, but the same kernels. It need not
// pass the device yet.
module @replay {
  pipeline.stage @s0 devices [0]
  pipeline.variable @w : tensor<2x3xf32> parameter of @s0 init <"MODEL", 1, 24>
  pipeline.schedule @train microbatches(4)
  pipeline.channel @x : [tensor<4x2xf32>] source(input "x") slots(2)
  pipeline.device 0 target(#cpu.target<>)
  pipeline.arena 0 bytes(512)
  func.func private @kernel(memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>)
  func.func @train.0(%first: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    %h = pipeline.slot @x[%first] at(128) : memref<4x2xf32>
    %w = pipeline.slot @w[%first] at(192) : memref<2x3xf32>
    %c = pipeline.scratch at(256) : memref<4x3xf32>
    pipeline.start_recv @x[%first], %h : memref<4x2xf32>
    func.call @kernel(%h, %w, %c)
      : (memref<4x2xf32>, memref<2x3xf32>, memref<4x3xf32>) -> ()
    return
  }
}
// CHECK: llvm.func internal @replay.train.0(%[[DEV:.*]]: !llvm.ptr,
// CHECK:   call @kernel(%[[DEV]],
// CHECK-NOT: pipeline.

// TABLE-DAG: @penstock.placements.w = internal constant [1 x { i32, i64, i64 }] [{ i32, i64, i64 } { i32 1, i64 128, i64 128 }]
// TABLE-DAG: @replay.penstock.placements.w = internal constant {{.*}} { i32 0, i64 192, i64 0 }
// TABLE-DAG: @penstock.files = {{.*}} i64 3, [32 x i8] c"\BAx\16\BF\8F\01\CF\EAAA@\DE]\AE\22#\B0\03a\A3\96\17z\9C\B4\10\FFa\F2\00\15\AD", [16 x i8] c"\06\B0Z\B6s:a\85x\AF_\94\89/9P" }, { ptr, i64, [32 x i8], [16 x i8] } { ptr @{{.*}}, i64 4, [32 x i8] zeroinitializer, [16 x i8] zeroinitializer }]
// TABLE-DAG: @penstock.devices = {{.*}} { i64 256, i64 64, i32 1, ptr @penstock.string.[[CPU:[0-9]+]], ptr @penstock.string.{{[0-9]+}}, ptr @penstock.string.{{[0-9]+}} }, {{.*}} { i64 512, i64 128, i32 2, ptr @penstock.string.[[CPU]], {{.*}} }]
// TABLE-DAG: @penstock.variables = {{.*}} { i32 1, i32 2, ptr @penstock.shape.2.3, i64 24 }, i32 0, i32 0, i64 1, ptr null, i32 2, i32 1, i32 1, ptr @penstock.placements.w, i32 0, i32 0, double 1.000000e+00 }]
// TABLE-DAG: @penstock.channels = {{.*}} { ptr @penstock.string.{{[0-9]+}}, i32 1, ptr @penstock.string.{{[0-9]+}}, {{.*}} { i32 1, i32 2, ptr @penstock.shape.4.2, i64 32 }, i32 -1, i32 0, i32 2, i32 1, i32 1, i32 0, i32 0, i32 -1 }, {{.*}} i32 0, ptr null, {{.*}} i32 0, i32 1, i32 2, i32 1, i32 1, i32 0, i32 0, i32 -1 }]
// TABLE-DAG: @penstock.tasks = {{.*}} i32 70, i32 0, i32 0 }, {{.*}} i32 70, i32 1, i32 1 }]
// TABLE-DAG: @penstock.gemms = {{.*}} i32 1, i32 0, [4 x i64] zeroinitializer, i64 4, i64 3, i64 2, [6 x i64] [i64 2, i64 1, i64 0, i64 0, i64 0, i64 0], [6 x i64] [i64 3, i64 1, {{.*}} i32 0, i32 1, i32 1, ptr @[[CONFIG:penstock.shape[0-9.]*]], { i64, ptr } zeroinitializer }, {{.*}} i32 1, i32 1, i32 1, ptr @[[CONFIG]], { i64, ptr } zeroinitializer }]
// TABLE-DAG: @[[CONFIG]] = {{.*}} [3 x i64] [i64 1, i64 0, i64 0]
// TABLE-DAG: @replay.penstock.gemms = {{.*}} i32 0, i32 0, i32 1, ptr @{{.*}}, { i64, ptr } zeroinitializer }, {{.*}} i32 1, i32 0, i32 1, ptr @{{.*}}, { i64, ptr } zeroinitializer }]
// TABLE-DAG: @penstock.hyperparameters = {{.*}} double 5.000000e-01 }, {{.*}} double 0.000000e+00 }]
// TABLE-DAG: @penstock.ranges = {{.*}} i64 -7, i64 7, i32 1, i64 9 }]
// TABLE-DAG: @penstock.functions.train = internal constant [2 x ptr] [ptr @train.0, ptr @train.1]
// TABLE-DAG: @penstock.replicas = internal constant [2 x i32] [i32 1, i32 1]
// TABLE-DAG: @penstock.schedules = {{.*}} { i32 0, i32 4, double 2.500000e-01, ptr @penstock.functions.train }, {{.*}} { i32 1, i32 1, double 0.000000e+00, ptr @penstock.functions.evaluate }]
// TABLE-DAG: @penstock_program = constant {{.*}} { i32 {{[0-9]+}}, i32 2, i64 4, {{.*}}, i32 2, ptr @penstock.files, i32 1, i32 2, ptr @penstock.devices, i32 1, i32 1, ptr @penstock.variables, i32 2, ptr @penstock.channels, i32 2, ptr @penstock.tasks, i32 2, ptr @penstock.gemms, i32 0, ptr null, i32 2, ptr @penstock.hyperparameters, i32 2, ptr @penstock.schedules, ptr @replay.penstock_program, ptr null, i64 0, i32 0, ptr null, i32 0, ptr null, i32 1, ptr @penstock.ranges, i32 0, ptr null, ptr null, i32 0, ptr null, i32 0, ptr null }
// TABLE-DAG: @replay.penstock_program = internal constant
}
