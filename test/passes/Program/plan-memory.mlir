// RUN: penstock-opt %s --pipeline-plan-memory --split-input-file | FileCheck %s
// RUN: penstock-opt %s --pipeline-plan-memory=alignment=4 \
// RUN:   --split-input-file | FileCheck %s --check-prefix=DENSE

// Parameters side by side and version by version, then gradients in the same
// arrangement, then temporaries, then channels: of these nothing shows when they
// are used. Both schedules share variables.

pipeline.stage @s devices [0]
pipeline.channel @c : [tensor<3xf32>, tensor<i64>] slots(2)
pipeline.variable @a : tensor<5xf32> parameter of @s
pipeline.variable @a.grad : tensor<5xf32> gradient of @s
pipeline.variable @b : tensor<17xf32> parameter of @s
pipeline.variable @b.grad : tensor<17xf32> gradient of @s
pipeline.variable @single : tensor<f32> parameter of @s
pipeline.variable @unused : tensor<f32> parameter of @s
pipeline.schedule @train microbatches(1)
pipeline.schedule @evaluate to evaluate microbatches(1)

// CHECK: pipeline.arena 0 bytes(1280)
// DENSE: pipeline.arena 0 bytes(424) alignment(4)
// CHECK-LABEL: func.func @train.0
// DENSE-LABEL: func.func @train.0
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  // CHECK: @a[%arg0] ring(2) at(64) stride(192)
  // CHECK: @b[%arg0] ring(2) at(128) stride(192)
  // CHECK: @single[%arg0] at(0) : memref<f32>
  // CHECK: @a.grad[%arg0] at(448) :
  // CHECK: @b.grad[%arg0] at(512) :
  // CHECK: @c[%arg0] ring(2) at(768) stride(64)
  // CHECK: @c[%arg0] field(1) ring(3) at(896) stride(64)
  // CHECK: scratch at(640) : memref<70xi8>
  // DENSE: @a[%arg0] ring(2) at(4) stride(88)
  // DENSE: @b[%arg0] ring(2) at(24) stride(88)
  // DENSE: @single[%arg0] at(0) : memref<f32>
  // DENSE: @a.grad[%arg0] at(180)
  // DENSE: @b.grad[%arg0] at(200)
  // DENSE: @c[%arg0] ring(2) at(340) stride(12)
  // DENSE: @c[%arg0] field(1) ring(3) at(364) stride(8)
  // DENSE: scratch at(268)
  %0 = pipeline.slot @a[%first] ring(2) : memref<5xf32>
  %1 = pipeline.slot @b[%first] ring(2) : memref<17xf32>
  %2 = pipeline.slot @single[%first] : memref<f32>
  %3 = pipeline.slot @a.grad[%first] : memref<5xf32>
  %4 = pipeline.slot @b.grad[%first] : memref<17xf32>
  %5 = pipeline.slot @c[%first] ring(2) : memref<3xf32>
  %6 = pipeline.slot @c[%first] field(1) ring(3) : memref<i64>
  %7 = pipeline.scratch : memref<70xi8>
  return
}
// CHECK-LABEL: func.func @evaluate.0
func.func @evaluate.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @evaluate, pipeline.device = 0 : i64} {
  // CHECK: @c[%arg0] ring(3) at(1088) stride(64)
  // CHECK: scratch at(640) : memref<3xi8>
  %0 = pipeline.slot @c[%first] ring(3) : memref<3xf32>
  %1 = pipeline.scratch : memref<3xi8>
  return
}

// -----

// Every device, and the replay, has an arena of its own.

// CHECK: pipeline.arena 0 bytes(64)
// CHECK: pipeline.arena 3 bytes(128)
pipeline.variable @a : tensor<i8> parameter
pipeline.variable @b : tensor<65xi1> parameter
func.func @train.3(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 3 : i64} {
  %0 = pipeline.slot @b[%first] : memref<65xi1>
  return
}
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %0 = pipeline.slot @a[%first] : memref<i8>
  return
}
// CHECK: module @replay
module @replay {
  pipeline.variable @a : tensor<i8> parameter
  pipeline.variable @b : tensor<65xi1> parameter
  // CHECK: pipeline.arena 0 bytes(192)
  func.func @train.0(%first: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    // CHECK: @b[%arg0] at(64)
    %0 = pipeline.slot @b[%first] : memref<65xi1>
    %1 = pipeline.slot @a[%first] : memref<i8>
    return
  }
}

// -----

// Messages that are never needed at the same time lie in the same bytes, and
// where temporaries lie that are not needed then. A ring stays one: its slots
// are apart by a stride.

// CHECK: pipeline.arena 0 bytes(384)
pipeline.stage @s devices [0]
pipeline.task @F forward of @s
pipeline.schedule @train microbatches(2)
pipeline.channel @a : [tensor<17xf32>] slots(2)
pipeline.channel @b : [tensor<19xf32>] slots(1)
func.func private @read(memref<17xf32>, memref<17xf32>)
func.func private @write(memref<17xf32> {pipeline.out}, memref<17xf32> {pipeline.out}, memref<128xi8> {pipeline.scratch})
func.func private @write.b(memref<19xf32> {pipeline.out})
func.func private @work(memref<384xi8> {pipeline.scratch})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %end = arith.addi %first, %updates : index
  scf.for %t = %first to %end step %c1 {
    %k = arith.muli %t, %c2 : index
    %l = arith.addi %k, %c1 : index
    // Two messages of 128 bytes, behind 128 bytes of temporaries.
    // CHECK: @a[%{{.*}}] ring(2) at(128) stride(128)
    // CHECK: @a[%{{.*}}] ring(2) at(128) stride(128)
    %a0 = pipeline.slot @a[%k] ring(2) : memref<17xf32>
    %a1 = pipeline.slot @a[%l] ring(2) : memref<17xf32>
    // CHECK: scratch at(0) : memref<128xi8>
    %s0 = pipeline.scratch : memref<128xi8>
    func.call @write(%a0, %a1, %s0) : (memref<17xf32>, memref<17xf32>, memref<128xi8>) -> ()
    func.call @read(%a0, %a1) : (memref<17xf32>, memref<17xf32>) -> ()
    // CHECK: @b[%{{.*}}] at(0)
    %b = pipeline.slot @b[%k] : memref<19xf32>
    func.call @write.b(%b) : (memref<19xf32>) -> ()
    // CHECK: scratch at(0) : memref<384xi8>
    %s2 = pipeline.scratch : memref<384xi8>
    func.call @work(%s2) : (memref<384xi8>) -> ()
  }
  return
}

// -----

// The temporaries of a kernel have a place of their own if that helps: with both
// at the beginning, @c would lie behind the larger, and @b, which is still on its
// way when @c comes, behind @c.

// CHECK: pipeline.arena 0 bytes(448)
pipeline.stage @s devices [0]
pipeline.stage @r devices [1]
pipeline.task @F forward of @s
pipeline.task @B backward of @s
pipeline.schedule @train microbatches(1)
pipeline.channel @b : [tensor<32xf32>] slots(1) staging(1)
pipeline.channel @c : [tensor<32xf32>] slots(1) staging(1)
func.func private @forward(memref<32xf32> {pipeline.out}, memref<256xi8> {pipeline.scratch})
func.func private @backward(memref<32xf32>, memref<320xi8> {pipeline.scratch})
func.func @train.0(%first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  %end = arith.addi %first, %updates : index
  scf.for %t = %first to %end step %c1 {
    // CHECK: %[[S:.*]] = pipeline.scratch at(0) : memref<256xi8>
    // CHECK: call @forward(%{{.*}}, %[[S]])
    %b = pipeline.slot @b[%t] : memref<32xf32>
    %s0 = pipeline.scratch : memref<256xi8>
    func.call @forward(%b, %s0) : (memref<32xf32>, memref<256xi8>) -> ()
    pipeline.start_send @b[%t], %b : memref<32xf32>
    %c = pipeline.slot @c[%t] : memref<32xf32>
    pipeline.start_recv @c[%t], %c : memref<32xf32>
    pipeline.await @b[%t]
    pipeline.await @c[%t]
    // CHECK: %[[T:.*]] = pipeline.scratch at(128) : memref<320xi8>
    // CHECK: call @backward(%{{.*}}, %[[T]])
    %s1 = pipeline.scratch : memref<320xi8>
    func.call @backward(%c, %s1) : (memref<32xf32>, memref<320xi8>) -> ()
  }
  return
}
