// RUN: penstock-opt %s --convert-pipeline-to-runtime | FileCheck %s

// Equal runs of tasks are one function, which has the number of the task and the
// offsets of buffers from a table: of devices 0 and 1 and of the replay. Short
// rings list those of all positions, wherever these are. What stands once, or is
// used elsewhere, stays in the function of its device.

// CHECK-DAG: llvm.mlir.global internal constant @[[$TABLE0:.*]](dense<[0, 128, 192, 384, 512, 64]>
// CHECK-DAG: llvm.mlir.global internal constant @[[$TABLE1:.*]](dense<[1, 0, 192, 256, 768, 128]>

// CHECK-LABEL: llvm.func internal @run.s0.F(
// CHECK-SAME:    %[[DEV:[^:]*]]: !llvm.ptr, %[[ARENA:[^:]*]]: !llvm.ptr, %[[TABLE:[^:]*]]: !llvm.ptr, %[[N64:[^:]*]]: i64)
// CHECK-SAME:    no_inline, passthrough = ["noduplicate"]
// CHECK:         %[[N:.*]] = arith.index_cast %[[N64]] : i64 to index
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[TABLE]][0]
// CHECK:         %[[TASK64:.*]] = llvm.load %[[PLACE]]
// CHECK:         %[[TASK:.*]] = llvm.trunc %[[TASK64]] : i64 to i32
// CHECK:         llvm.call @penstock_mark(%[[DEV]], %[[TASK]],
// CHECK:         %[[NEXT:.*]] = arith.addi %[[N]],
// CHECK:         %[[TURN:.*]] = arith.remui %[[NEXT]],
// CHECK:         %[[TURN64:.*]] = arith.index_cast %[[TURN]] : index to i64
// CHECK:         %[[ROW:.*]] = llvm.getelementptr %[[TABLE]][%[[TURN64]]]
// CHECK:         %[[W_PLACE:.*]] = llvm.getelementptr %[[ROW]][1]
// CHECK:         %[[W:.*]] = llvm.load %[[W_PLACE]]
// CHECK:         llvm.getelementptr %[[ARENA]][%[[W]]]
// CHECK:         llvm.getelementptr %[[TABLE]][3]
// CHECK:         %[[FIRST_PLACE:.*]] = llvm.getelementptr %[[TABLE]][4]
// CHECK:         %[[FIRST:.*]] = llvm.load %[[FIRST_PLACE]]
// CHECK:         %[[STRIDE_PLACE:.*]] = llvm.getelementptr %[[TABLE]][5]
// CHECK:         %[[STRIDE:.*]] = llvm.load %[[STRIDE_PLACE]]
// CHECK:         %[[SHIFT:.*]] = llvm.mul %{{.*}}, %[[STRIDE]]
// CHECK:         %[[B:.*]] = llvm.add %[[FIRST]], %[[SHIFT]]
// CHECK:         llvm.getelementptr %[[ARENA]][%[[B]]]
// CHECK:         call @kernel(%[[DEV]], %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]])

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w0 : tensor<2x3xf32> parameter of @s0
pipeline.variable @w1 : tensor<2x3xf32> parameter of @s1
pipeline.variable @b0 : tensor<2x3xf32> parameter of @s0
pipeline.variable @b1 : tensor<2x3xf32> parameter of @s1
pipeline.task @s0.F forward of @s0
pipeline.task @s1.F forward of @s1
pipeline.task @s0.U update of @s0
pipeline.task @s1.U update of @s1
pipeline.schedule @train microbatches(4)
pipeline.device 0 target(#cpu.target<>)
pipeline.arena 0 bytes(4096)
pipeline.device 1 target(#cpu.target<>)
pipeline.arena 1 bytes(4096)
func.func private @kernel(%dev: !llvm.ptr, %w: memref<2x3xf32>, %c: memref<4x3xf32>,
                          %b: memref<2x3xf32>, %n: index) {
  return
}
func.func private @rate(%n: index) -> f32 {
  %rate = arith.constant 1.0 : f32
  return %rate : f32
}
func.func private @update(%w: memref<2x3xf32>, %rate: f32) {
  return
}

// CHECK-LABEL: llvm.func internal @train.0(
// CHECK-SAME:    %[[DEV:[^:]*]]: !llvm.ptr
// CHECK:         %[[ARENA:.*]] = llvm.call @penstock_arena(%[[DEV]])
// CHECK:         %[[TABLE:.*]] = llvm.mlir.addressof @[[$TABLE0]] : !llvm.ptr
// CHECK:         llvm.call @run.s0.F(%[[DEV]], %[[ARENA]], %[[TABLE]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK:         llvm.call @penstock_mark(
// CHECK:         call @update(
// CHECK-NOT:     call
// CHECK:         llvm.return
func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %one = arith.constant 1 : index
  pipeline.mark @s0.F[%first]
  %next = arith.addi %first, %one : index
  %w = pipeline.slot @w0[%next] ring(2) at(128) stride(64) : memref<2x3xf32>
  %c = pipeline.scratch at(384) : memref<4x3xf32>
  %b = pipeline.slot @b0[%next] ring(17) at(512) stride(64) : memref<2x3xf32>
  func.call @kernel(%dev, %w, %c, %b, %next)
    : (!llvm.ptr, memref<2x3xf32>, memref<4x3xf32>, memref<2x3xf32>, index) -> ()
  pipeline.mark @s0.U[%first]
  %rate = pipeline.hyperparameter "lr" default(0.5) : f32
  %v = pipeline.slot @w0[%first] ring(2) at(128) stride(64) : memref<2x3xf32>
  func.call @update(%v, %rate) : (memref<2x3xf32>, f32) -> ()
  return
}

// CHECK-LABEL: llvm.func internal @train.1(
// CHECK:         llvm.mlir.addressof @[[$TABLE1]] : !llvm.ptr
// CHECK:         llvm.call @run.s0.F(
// CHECK:         call @update(
func.func @train.1(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 1 : i64} {
  %one = arith.constant 1 : index
  pipeline.mark @s1.F[%first]
  %next = arith.addi %first, %one : index
  %w = pipeline.slot @w1[%next] ring(2) at(0) stride(64) places [0, 192]
    : memref<2x3xf32>
  %c = pipeline.scratch at(256) : memref<4x3xf32>
  %b = pipeline.slot @b1[%next] ring(17) at(768) stride(128) : memref<2x3xf32>
  func.call @kernel(%dev, %w, %c, %b, %next)
    : (!llvm.ptr, memref<2x3xf32>, memref<4x3xf32>, memref<2x3xf32>, index) -> ()
  // Another ring.
  pipeline.mark @s1.U[%first]
  %rate = pipeline.hyperparameter "lr" default(0.5) : f32
  %v = pipeline.slot @w1[%first] at(0) : memref<2x3xf32>
  func.call @update(%v, %rate) : (memref<2x3xf32>, f32) -> ()
  return
}

module @replay {
  pipeline.stage @s0 devices [0]
  pipeline.stage @s1 devices [0]
  pipeline.variable @w0 : tensor<2x3xf32> parameter of @s0
  pipeline.variable @w1 : tensor<2x3xf32> parameter of @s1
  pipeline.variable @b0 : tensor<2x3xf32> parameter of @s0
  pipeline.variable @b1 : tensor<2x3xf32> parameter of @s1
  pipeline.task @s0.F forward of @s0
  pipeline.task @s1.F forward of @s1
  pipeline.schedule @train microbatches(4)
  pipeline.device 0 target(#cpu.target<>)
  pipeline.arena 0 bytes(4096)
  func.func private @kernel(memref<2x3xf32>, memref<4x3xf32>,
                            memref<2x3xf32>, index)
  // CHECK-LABEL: llvm.func internal @replay.train.0(
  // CHECK-COUNT-2: llvm.call @run.s0.F(
  // CHECK-NOT:   call
  func.func @train.0(%first: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    %one = arith.constant 1 : index
    pipeline.mark @s0.F[%first]
    %next = arith.addi %first, %one : index
    %w = pipeline.slot @w0[%next] ring(2) at(512) stride(64) : memref<2x3xf32>
    %c = pipeline.scratch at(256) : memref<4x3xf32>
    %b = pipeline.slot @b0[%next] ring(17) at(1024) stride(64) : memref<2x3xf32>
    func.call @kernel(%w, %c, %b, %next)
      : (memref<2x3xf32>, memref<4x3xf32>, memref<2x3xf32>, index) -> ()
    pipeline.mark @s1.F[%first]
    %again = arith.addi %first, %one : index
    %v = pipeline.slot @w1[%again] ring(2) at(640) stride(64) : memref<2x3xf32>
    %d = pipeline.slot @b1[%again] ring(17) at(2112) stride(64) : memref<2x3xf32>
    func.call @kernel(%v, %c, %d, %again)
      : (memref<2x3xf32>, memref<4x3xf32>, memref<2x3xf32>, index) -> ()
    return
  }
}
