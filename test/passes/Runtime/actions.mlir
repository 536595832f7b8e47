// RUN: penstock-opt %s --convert-pipeline-to-runtime | FileCheck %s
// RUN: penstock-opt %s --convert-pipeline-to-runtime --pipeline-pass-addresses --convert-scf-to-cf --expand-strided-metadata \
// RUN:   --finalize-memref-to-llvm --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 \
// RUN:   --convert-arith-to-llvm --convert-cf-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=TABLE

// The runtime says whether the calls of an action are made, and whether once
// more. Actions of the replay are in the same table.

pipeline.stage @s devices [0]
pipeline.task @s.U update of @s
pipeline.schedule @train microbatches(4)
pipeline.device 0 target(#cuda.target<"sm_90">)
pipeline.arena 0 bytes(256)
pipeline.variable @w : tensor<5xf32> parameter of @s

func.func private @forward(%dev: !llvm.ptr, %w: memref<5xf32>) {
  return
}
func.func private @sgd(%dev: !llvm.ptr, %w: memref<5xf32>, %rate: memref<f32>) {
  kernel.launch @kernels::@sgd grid [1, 1, 1] block [128, 1, 1] (%w, %rate) : memref<5xf32>, memref<f32>
  return
}

// CHECK-LABEL: llvm.func internal @train.0(
// CHECK-SAME:    %[[DEV:[^:]*]]: !llvm.ptr, %[[FIRST:[^:]*]]: i64,
// CHECK:         %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         %[[NONE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         %[[BEGUN:.*]] = llvm.call @penstock_begin(%[[DEV]], %[[ZERO]], %{{.*}}) : (!llvm.ptr, i32, i64) -> i32
// CHECK:         scf.while (%[[STATE:.*]] = %[[BEGUN]]) : (i32) -> () {
// CHECK:           %[[AGAIN:.*]] = arith.cmpi ne, %[[STATE]], %[[NONE]] : i32
// CHECK:           scf.condition(%[[AGAIN]])
// CHECK:         } do {
// CHECK-NEXT:      func.call @forward(%[[DEV]],
// CHECK-NEXT:      %[[ENDED:.*]] = llvm.call @penstock_end(%[[DEV]], %[[ZERO]]) : (!llvm.ptr, i32) -> i32
// CHECK-NEXT:      scf.yield %[[ENDED]] : i32
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         %[[SCALARS:.*]] = llvm.call @penstock_find_scalars(%[[DEV]], %[[ONE]]) : (!llvm.ptr, i32) -> !llvm.ptr
// CHECK:         llvm.getelementptr %[[SCALARS]][8]
// CHECK:         llvm.call @penstock_launch(
// CHECK:         llvm.call @penstock_begin(%[[DEV]], %{{.*}}, %{{.*}})
// CHECK:           func.call @sgd(
func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  %w = pipeline.slot @w[%first] at(0) : memref<5xf32>
  kernel.action "s.F" key(%first of 3) {
    func.call @forward(%dev, %w) : (!llvm.ptr, memref<5xf32>) -> ()
  }
  %rate = pipeline.hyperparameter "lr" default(0.5) : f32
  %place = kernel.scalar "s.U"[1] : memref<f32>
  kernel.launch @kernels::@store grid [1, 1, 1] block [1, 1, 1] (%place, %rate) : memref<f32>, f32
  kernel.action "s.U" key(%first of 1) scalars(2) {
    func.call @sgd(%dev, %w, %place) : (!llvm.ptr, memref<5xf32>, memref<f32>) -> ()
  }
  return
}

// CHECK-LABEL: llvm.func internal @replay.train.0(
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         llvm.call @penstock_begin(%{{.*}}, %[[TWO]], %{{.*}})
module @replay {
  func.func private @forward(!llvm.ptr, memref<5xf32>)
  pipeline.stage @s devices [0]
  pipeline.task @s.U update of @s
  pipeline.schedule @train microbatches(4)
  pipeline.device 0 target(#cuda.target<"sm_90">)
  pipeline.arena 0 bytes(256)
  pipeline.variable @w : tensor<5xf32> parameter of @s
  func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
      attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
    %w = pipeline.slot @w[%first] at(0) : memref<5xf32>
    kernel.action "replay.s.F" key(%first of 2) {
      func.call @forward(%dev, %w) : (!llvm.ptr, memref<5xf32>) -> ()
    }
    return
  }
}

// TABLE-DAG: c"s.F\00"
// TABLE-DAG: c"s.U\00"
// TABLE-DAG: c"replay.s.F\00"
// TABLE-DAG: @penstock.actions = internal constant [3 x { ptr, i32, i32 }] [{{.*}} i32 3, i32 0 }, {{.*}} i32 1, i32 2 }, {{.*}} i32 2, i32 0 }]
// TABLE-DAG: @replay.penstock.actions = internal constant [3 x
// TABLE-DAG: @penstock_program = constant {{.*}} i32 3, ptr @penstock.actions }
