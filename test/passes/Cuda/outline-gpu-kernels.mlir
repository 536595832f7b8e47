// RUN: penstock-opt %s --split-input-file --pipeline-outline-gpu-kernels | FileCheck %s

// Two equal layers, of which one is at an offset of whole vectors, are one kernel, which sees
// its buffers from their first elements on. Numbers and buffers are passed,
// constants come along.
// CHECK:       module attributes {gpu.container_module}
// CHECK-LABEL: func.func private @s0.forward(
// CHECK-SAME:    %[[X:.*]]: memref<4x7xf32>, %[[Y:.*]]: memref<3x4x7xf32>, %[[Z:.*]]: memref<4x7xf32>, %[[RATE:.*]]: f32)
// CHECK:         %[[SLICE:.*]] = memref.subview %[[Y]][1, 0, 0]
// CHECK-NOT:     linalg.generic
// CHECK:         kernel.launch @cuda_kernels::@s0_forward_elementwise grid [1, 1, 1] block [1, 1, 1](%[[X]], %[[SLICE]], %[[RATE]]) : memref<4x7xf32>, memref<4x7xf32, strided<[7, 1], offset: 28>>, f32
// CHECK:         kernel.launch @cuda_kernels::@s0_forward_elementwise grid [1, 1, 1] block [1, 1, 1](%[[Z]], %[[X]], %[[RATE]])
// CHECK:         kernel.launch @cuda_kernels::@s0_forward_elementwise_0 {{.*}}(%[[X]], %[[RATE]])
// CHECK:         return
// CHECK:       gpu.module @cuda_kernels {
// CHECK:         gpu.func @s0_forward_elementwise(%[[A:.*]]: memref<4x7xf32, 1> {llvm.align = 16 : i64}, %[[B:.*]]: memref<4x7xf32, 1> {llvm.align = 16 : i64}, %[[S:.*]]: f32) kernel {
// CHECK:           %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK:           linalg.generic {{.*}} ins(%[[A]] : memref<4x7xf32, 1>) outs(%[[B]] : memref<4x7xf32, 1>)
// CHECK:             arith.mulf %{{.*}}, %[[S]] : f32
// CHECK:             arith.addf %{{.*}}, %[[TWO]] : f32
// CHECK:           gpu.return
// CHECK:         gpu.func @s0_forward_elementwise_0(
#id = affine_map<(i, j) -> (i, j)>
func.func private @s0.forward(%x: memref<4x7xf32>, %y: memref<3x4x7xf32>,
                              %z: memref<4x7xf32>, %rate: f32) {
  %two = arith.constant 2.0 : f32
  %slice = memref.subview %y[1, 0, 0] [1, 4, 7] [1, 1, 1]
      : memref<3x4x7xf32> to memref<4x7xf32, strided<[7, 1], offset: 28>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x7xf32>) outs(%slice : memref<4x7xf32, strided<[7, 1], offset: 28>>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %rate : f32
    %b = arith.addf %a, %two : f32
    linalg.yield %b : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%z : memref<4x7xf32>) outs(%x : memref<4x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %rate : f32
    %b = arith.addf %a, %two : f32
    linalg.yield %b : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x7xf32>) outs(%x : memref<4x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.subf %in, %rate : f32
    %b = arith.addf %a, %two : f32
    linalg.yield %b : f32
  }
  return
}

// -----

// Constants in memory come along, once; columns keep their stride.
// CHECK-LABEL: func.func private @constants
// CHECK:         kernel.launch @cuda_kernels::@constants_elementwise {{.*}} : memref<3xf32, strided<[5], offset: 2>>
// CHECK:       gpu.module @cuda_kernels {
// CHECK-NEXT:    memref.global "private" constant @table : memref<3xf32, 1> = dense<[1.000000e+00, 2.500000e+00, -3.000000e+00]>
// CHECK-NEXT:    gpu.func @constants_elementwise(%[[Y:.*]]: memref<3xf32, strided<[5]>, 1>) kernel {
// CHECK-NEXT:      %[[TABLE:.*]] = memref.get_global @table : memref<3xf32, 1>
// CHECK-NEXT:      linalg.copy ins(%[[TABLE]] : memref<3xf32, 1>) outs(%[[Y]] : memref<3xf32, strided<[5]>, 1>)
// CHECK:         gpu.func @constants_elementwise_0(
memref.global "private" constant @table : memref<3xf32> = dense<[1.0, 2.5, -3.0]>
func.func private @constants(%y: memref<3x5xf32>) {
  %table = memref.get_global @table : memref<3xf32>
  %column = memref.subview %y[0, 2] [3, 1] [1, 1]
      : memref<3x5xf32> to memref<3xf32, strided<[5], offset: 2>>
  memref.copy %table, %column : memref<3xf32> to memref<3xf32, strided<[5], offset: 2>>
  %row = memref.subview %y[0, 0] [1, 3] [1, 1] : memref<3x5xf32> to memref<3xf32, strided<[1]>>
  linalg.copy ins(%table : memref<3xf32>) outs(%row : memref<3xf32, strided<[1]>>)
  return
}

// -----

// Library calls stay, and so do loops around them and around linalg ops on
// slices; a loop that loads moves as a whole, with its views, and so does a
// forall. Loops without iterations disappear.
// CHECK-LABEL: func.func private @loops
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[SLICE:.*]] = memref.subview %{{.*}}[%[[I]], 0]
// CHECK:           kernel.gemm
// CHECK:           kernel.launch @cuda_kernels::@loops_elementwise {{.*}}(%{{.*}}, %[[SLICE]]) : f32, memref<7xf32, strided<[1], offset: ?>>
// CHECK-NOT:     memref.load
// CHECK:         kernel.launch @cuda_kernels::@loops_rows
// CHECK:         kernel.launch @cuda_kernels::@loops_rows_0
// CHECK-NEXT:    return
// CHECK:       gpu.func @loops_elementwise(
// CHECK:       gpu.func @loops_rows(%[[AT:.*]]: memref<5xindex, 1> {llvm.align = 16 : i64}, %[[X:.*]]: memref<5x7xf32, 1> {llvm.align = 16 : i64}) kernel
// CHECK:         scf.for
// CHECK:           %[[K:.*]] = memref.load %[[AT]]
// CHECK:           memref.subview %[[X]][%[[K]], 0] [1, 7] [1, 1] : memref<5x7xf32, 1> to memref<7xf32, strided<[1], offset: ?>, 1>
// CHECK:       gpu.func @loops_rows_0(
// CHECK:         scf.forall
func.func private @loops(%x: memref<9x7xf32>, %at: memref<5xindex>, %w: memref<7x7xf32>, %empty: memref<0xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %cst = arith.constant 1.0 : f32
  %zero = arith.subf %cst, %cst : f32
  linalg.fill ins(%zero : f32) outs(%empty : memref<0xf32>)
  %part = memref.subview %x[4, 0] [5, 7] [1, 1] : memref<9x7xf32> to memref<5x7xf32, strided<[7, 1], offset: 28>>
  scf.for %i = %c0 to %c5 step %c1 {
    %slice = memref.subview %x[%i, 0] [1, 7] [1, 1] : memref<9x7xf32> to memref<7xf32, strided<[1], offset: ?>>
    kernel.gemm %w, %w, %w sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1]
        : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
    linalg.fill ins(%zero : f32) outs(%slice : memref<7xf32, strided<[1], offset: ?>>)
  }
  scf.for %i = %c0 to %c5 step %c1 {
    %k = memref.load %at[%i] : memref<5xindex>
    %slice = memref.subview %part[%k, 0] [1, 7] [1, 1]
        : memref<5x7xf32, strided<[7, 1], offset: 28>> to memref<7xf32, strided<[1], offset: ?>>
    linalg.fill ins(%cst : f32) outs(%slice : memref<7xf32, strided<[1], offset: ?>>)
  }
  scf.forall (%i) in (5) {
    %k = memref.load %at[%i] : memref<5xindex>
    memref.store %cst, %x[%i, %k] : memref<9x7xf32>
  }
  return
}

// -----

// The module says what its kernels are for.
// CHECK:       gpu.module @cuda_kernels attributes {cuda.target = #cuda.target<"sm_80,sm_90">}
func.func private @forward(%x: memref<5xf32>) attributes {pipeline.target = #cuda.target<"sm_80,sm_90">} {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%x : memref<5xf32>)
  return
}
