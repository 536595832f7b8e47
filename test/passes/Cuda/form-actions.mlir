// RUN: penstock-opt %s --split-input-file --pipeline-form-actions --verify-diagnostics | FileCheck %s

// Calls between two transfers or marks are an action, named after its task. Its
// key tells the positions in rings apart, those of one number together: %k in
// rings of 2 and 4 has 4, %t in a ring of 3 has 3.
// CHECK-LABEL: func.func @train.0(
// CHECK-SAME:    %[[K:.*]]: index, %[[T:.*]]: index)
// CHECK:         pipeline.mark @s.F[%[[K]]]
// CHECK:         %[[X:.*]] = pipeline.slot @x[%[[K]]] ring(4)
// CHECK:         %[[W:.*]] = pipeline.slot @w[%[[T]]] ring(3)
// CHECK:         %[[H:.*]] = pipeline.slot @h[%{{.*}}] ring(2)
// CHECK:         %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:         arith.remsi %[[K]], %[[FOUR]]
// CHECK:         %[[DK:.*]] = arith.remsi %{{.*}}, %[[FOUR]]
// CHECK:         %[[THREE:.*]] = arith.constant 3 : index
// CHECK:         arith.remsi %[[T]], %[[THREE]]
// CHECK:         %[[DT:.*]] = arith.remsi %{{.*}}, %[[THREE]]
// CHECK:         %[[HIGH:.*]] = arith.muli %[[DK]], %[[THREE]]
// CHECK:         %[[KEY:.*]] = arith.addi %[[HIGH]], %[[DT]]
// CHECK:         kernel.action "s.F" key(%[[KEY]] of 12) {
// CHECK-NEXT:      func.call @forward(%[[X]], %[[W]])
// CHECK-NEXT:      func.call @forward(%[[H]], %[[W]])
// CHECK-NEXT:    }
// CHECK-NEXT:    pipeline.await @x[%[[K]]]
// CHECK:         kernel.action "forward" key(%{{.*}} of 3) {
// CHECK-NEXT:      func.call @forward(
// CHECK:         pipeline.mark @s.F
// CHECK:         kernel.action "s.F.1" key(%{{.*}} of 1) {
func.func private @forward(%x: memref<5xf32>, %w: memref<5xf32>) {
  return
}
func.func @train.0(%k: index, %t: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %c1 = arith.constant 1 : index
  pipeline.mark @s.F[%k]
  %x = pipeline.slot @x[%k] ring(4) at(0) stride(64) : memref<5xf32>
  %w = pipeline.slot @w[%t] ring(3) at(256) stride(64) : memref<5xf32>
  func.call @forward(%x, %w) : (memref<5xf32>, memref<5xf32>) -> ()
  %before = arith.subi %k, %c1 : index
  %h = pipeline.slot @h[%before] ring(2) at(512) stride(64) : memref<5xf32>
  func.call @forward(%h, %w) : (memref<5xf32>, memref<5xf32>) -> ()
  pipeline.await @x[%k]
  %y = pipeline.slot @y[%k] at(640) : memref<5xf32>
  func.call @forward(%y, %w) : (memref<5xf32>, memref<5xf32>) -> ()
  pipeline.mark @s.F[%k]
  %scratch = pipeline.scratch at(704) : memref<5xf32>
  func.call @forward(%scratch, %y) : (memref<5xf32>, memref<5xf32>) -> ()
  return
}

// -----

// Numbers are stored before the action, each once, and what kernels need of
// them is computed by the caller. A kernel that is also launched with a number
// of the program comes in both forms.
// CHECK-LABEL: func.func private @sgd(
// CHECK-SAME:    %[[W:.*]]: memref<5xf32>, %[[RATE:.*]]: memref<f32>, %[[N:.*]]: memref<index>, %[[HALF:.*]]: memref<f32>, %{{.*}}: memref<64xi8> {pipeline.scratch})
// CHECK-NOT:     arith.mulf
// CHECK:         kernel.launch @cuda_kernels::@step_0 {{.*}}(%[[W]], %[[RATE]]) : memref<5xf32>, memref<f32>
// CHECK:         kernel.launch @cuda_kernels::@step_0 {{.*}}(%[[W]], %[[HALF]]) : memref<5xf32>, memref<f32>
// CHECK:         kernel.launch @cuda_kernels::@step grid{{.*}}(%[[W]], %{{.*}}) : memref<5xf32>, f32
// CHECK:         kernel.launch @cuda_kernels::@mask grid{{.*}}(%[[W]], %[[N]]) : memref<5xf32>, memref<index>
// CHECK-LABEL: func.func @train.0(
// CHECK:         %[[LR:.*]] = pipeline.hyperparameter "lr"
// CHECK:         %[[FACTOR:.*]] = call @rate(%[[LR]])
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[FACTOR]],
// CHECK:         %[[P0:.*]] = kernel.scalar "sgd"[0] : memref<f32>
// CHECK:         %[[P1:.*]] = kernel.scalar "sgd"[1] : memref<index>
// CHECK:         %[[P2:.*]] = kernel.scalar "sgd"[2] : memref<f32>
// CHECK:         kernel.launch @cuda_kernels::@store_numbers grid [1, 1, 1] block [1, 1, 1](%[[P0]], %[[P1]], %[[P2]], %[[FACTOR]], %{{.*}}, %[[PRODUCT]]) : memref<f32>, memref<index>, memref<f32>, f32, index, f32
// CHECK:         kernel.action "sgd" key(%{{.*}} of 1) scalars(3) {
// CHECK-NEXT:      func.call @sgd(%{{.*}}, %[[P0]], %[[P1]], %[[P2]], %{{.*}})
// CHECK-NEXT:      func.call @sgd(%{{.*}}, %[[P0]], %[[P1]], %[[P2]], %{{.*}})
// CHECK:       module @replay
// CHECK:         func.func private @sgd(memref<5xf32>, memref<f32>, memref<index>, memref<f32>, memref<64xi8> {pipeline.scratch})
// CHECK:         kernel.action "replay.sgd" key(%{{.*}} of 1) scalars(3) {
// CHECK:       gpu.module @cuda_kernels
// CHECK:         gpu.func @step(%{{.*}}: memref<5xf32, 1>, %{{.*}}: f32) kernel
// CHECK:         gpu.func @mask(%{{.*}}: memref<5xf32, 1>, %[[A:.*]]: memref<index, 1>) kernel
// CHECK-NEXT:      memref.load %[[A]][] : memref<index, 1>
// CHECK:         gpu.func @step_0(%[[TO:.*]]: memref<5xf32, 1>, %[[BY:.*]]: memref<f32, 1>) kernel
// CHECK-NEXT:      %[[VALUE:.*]] = memref.load %[[BY]][] : memref<f32, 1>
// CHECK:           memref.store %[[VALUE]], %[[TO]]
// CHECK:         gpu.func @store_numbers(%[[A0:.*]]: memref<f32, 1>, %[[A1:.*]]: memref<index, 1>, %[[A2:.*]]: memref<f32, 1>, %[[N0:.*]]: f32, %[[N1:.*]]: index, %[[N2:.*]]: f32) kernel
// CHECK-NEXT:      memref.store %[[N0]], %[[A0]][]
// CHECK-NEXT:      memref.store %[[N1]], %[[A1]][]
// CHECK-NEXT:      memref.store %[[N2]], %[[A2]][]
// CHECK-NEXT:      gpu.return
module attributes {gpu.container_module} {
  func.func private @rate(%base: f32) -> f32 {
    return %base : f32
  }
  func.func private @sgd(%w: memref<5xf32>, %rate: f32, %n: index, %scratch: memref<64xi8> {pipeline.scratch}) {
    %half = arith.constant 0.5 : f32
    %slow = arith.mulf %rate, %half : f32
    kernel.launch @cuda_kernels::@step grid [1, 1, 1] block [1, 1, 1] (%w, %rate) : memref<5xf32>, f32
    kernel.launch @cuda_kernels::@step grid [1, 1, 1] block [1, 1, 1] (%w, %slow) : memref<5xf32>, f32
    kernel.launch @cuda_kernels::@step grid [1, 1, 1] block [1, 1, 1] (%w, %half) : memref<5xf32>, f32
    kernel.launch @cuda_kernels::@mask grid [1, 1, 1] block [1, 1, 1] (%w, %n) : memref<5xf32>, index
    return
  }
  func.func @train.0(%t: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    %w = pipeline.slot @w[%t] at(0) : memref<5xf32>
    %lr = pipeline.hyperparameter "lr" default(0.5) : f32
    %rate = func.call @rate(%lr) : (f32) -> f32
    %scratch = pipeline.scratch at(128) : memref<64xi8>
    func.call @sgd(%w, %rate, %t, %scratch) : (memref<5xf32>, f32, index, memref<64xi8>) -> ()
    %v = pipeline.slot @v[%t] at(64) : memref<5xf32>
    func.call @sgd(%v, %rate, %t, %scratch) : (memref<5xf32>, f32, index, memref<64xi8>) -> ()
    return
  }
  module @replay {
    func.func private @sgd(memref<5xf32>, f32, index, memref<64xi8> {pipeline.scratch})
    func.func @train.0(%t: index, %updates: index)
        attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
      %w = pipeline.slot @w[%t] at(0) : memref<5xf32>
      %rate = pipeline.hyperparameter "lr" default(0.5) : f32
      %scratch = pipeline.scratch at(128) : memref<64xi8>
      func.call @sgd(%w, %rate, %t, %scratch) : (memref<5xf32>, f32, index, memref<64xi8>) -> ()
      return
    }
  }
  gpu.module @cuda_kernels {
    gpu.func @step(%w: memref<5xf32, 1>, %rate: f32) kernel {
      %c0 = arith.constant 0 : index
      memref.store %rate, %w[%c0] : memref<5xf32, 1>
      gpu.return
    }
    gpu.func @mask(%w: memref<5xf32, 1>, %n: index) kernel {
      gpu.return
    }
  }
}

// -----

// More ways than graphs are worth: call by call, and no action.
// CHECK-LABEL: func.func @train.many(
// CHECK-NOT:     kernel.action
func.func private @forward(%x: memref<5xf32>, %w: memref<5xf32>) {
  return
}
func.func @train.many(%k: index, %t: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %x = pipeline.slot @x[%k] ring(8) at(0) stride(64) : memref<5xf32>
  %w = pipeline.slot @w[%t] ring(9) at(512) stride(64) : memref<5xf32>
  // expected-remark @below {{runs call by call and not as a graph: its rings stand in more than 64 ways}}
  func.call @forward(%x, %w) : (memref<5xf32>, memref<5xf32>) -> ()
  return
}

// -----

// A number that becomes an address, or meets a loop, stays one. What stands
// beside it in the action has the place of its number all the same.
// CHECK-LABEL: func.func private @part(
// CHECK-SAME:    %{{.*}}: memref<7x5xf32>, %{{.*}}: index)
// CHECK-LABEL: func.func private @loop(
// CHECK-SAME:    %{{.*}}: memref<7x5xf32>, %{{.*}}: index)
// CHECK-LABEL: func.func private @plain(
// CHECK-SAME:    %{{.*}}: memref<7x5xf32>, %{{.*}}: memref<index>)
// CHECK-LABEL: func.func @train.0(
// CHECK:         kernel.action "part" key(%{{.*}} of 0) scalars(1) {
// CHECK-NEXT:      func.call @part({{.*}}) : (memref<7x5xf32>, index) -> ()
// CHECK-NEXT:      func.call @plain({{.*}}) : (memref<7x5xf32>, memref<index>) -> ()
// CHECK-NOT:     kernel.action
// CHECK:         call @loop
module attributes {gpu.container_module} {
  func.func private @part(%x: memref<7x5xf32>, %n: index) {
    %row = memref.subview %x[%n, 0] [1, 5] [1, 1] : memref<7x5xf32> to memref<5xf32, strided<[1], offset: ?>>
    kernel.launch @cuda_kernels::@row grid [1, 1, 1] block [1, 1, 1] (%row) : memref<5xf32, strided<[1], offset: ?>>
    return
  }
  func.func private @loop(%x: memref<7x5xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    scf.for %i = %c0 to %c7 step %c1 {
      %sum = arith.addi %i, %n : index
      kernel.launch @cuda_kernels::@number grid [1, 1, 1] block [1, 1, 1] (%x, %sum) : memref<7x5xf32>, index
    }
    return
  }
  func.func private @plain(%x: memref<7x5xf32>, %n: index) {
    kernel.launch @cuda_kernels::@number grid [1, 1, 1] block [1, 1, 1] (%x, %n) : memref<7x5xf32>, index
    return
  }
  func.func @train.0(%t: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    %x = pipeline.slot @x[%t] at(0) : memref<7x5xf32>
    // expected-remark @below {{runs call by call and not as a graph: the host needs a number of the run for more than a kernel's parameter}}
    func.call @part(%x, %t) : (memref<7x5xf32>, index) -> ()
    func.call @plain(%x, %t) : (memref<7x5xf32>, index) -> ()
    pipeline.await @x[%t]
    // expected-remark @below {{runs call by call and not as a graph: a kernel's parameter depends on a number of the run and on a loop}}
    func.call @loop(%x, %t) : (memref<7x5xf32>, index) -> ()
    return
  }
  gpu.module @cuda_kernels {
    gpu.func @row(%x: memref<5xf32, strided<[1]>, 1>) kernel {
      gpu.return
    }
    gpu.func @number(%x: memref<7x5xf32, 1>, %n: index) kernel {
      gpu.return
    }
  }
}
