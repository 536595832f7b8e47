// RUN: penstock-opt %s --convert-pipeline-to-runtime | FileCheck %s
// RUN: penstock-opt %s --convert-pipeline-to-runtime --pipeline-pass-addresses --expand-strided-metadata \
// RUN:   --finalize-memref-to-llvm --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 \
// RUN:   --convert-scf-to-cf --convert-cf-to-llvm --convert-arith-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=TABLE

// Parameters are words: the address of the first element of a buffer, numbers
// as their bits. A kernel is numbered once, wherever it is launched.

pipeline.stage @s devices [0]
pipeline.task @s.F forward of @s
pipeline.schedule @train microbatches(4)
pipeline.device 0 target(#cpu.target<>)
pipeline.arena 0 bytes(256)

// CHECK-LABEL: func.func private @stage(
// CHECK-SAME:    %[[DEV:.*]]: !llvm.ptr, %[[X:.*]]: memref<3x5xf32, strided<[7, 1], offset: 2>>, %[[R:.*]]: f32, %[[N:.*]]: index, %[[B:.*]]: i1)
// CHECK:         %[[NONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.alloca %[[NONE]] x i64
// CHECK:         %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
// CHECK:         %[[WORDS:.*]] = llvm.alloca %[[FOUR]] x i64
// CHECK:         %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:         %[[OFFSET:.*]] = llvm.mlir.constant(2 : i64)
// CHECK:         %[[SIZE:.*]] = llvm.mlir.constant(4 : i64)
// CHECK:         llvm.mul %[[OFFSET]], %[[SIZE]]
// CHECK:         %[[ADDRESS:.*]] = llvm.ptrtoint
// CHECK:         %[[P0:.*]] = llvm.getelementptr %[[WORDS]][0]
// CHECK:         llvm.store %[[ADDRESS]], %[[P0]] : i64
// CHECK:         %[[RBITS:.*]] = arith.bitcast %[[R]] : f32 to i32
// CHECK:         %[[RWORD:.*]] = arith.extui %[[RBITS]] : i32 to i64
// CHECK:         %[[P1:.*]] = llvm.getelementptr %[[WORDS]][1]
// CHECK:         llvm.store %[[RWORD]], %[[P1]] : i64
// CHECK:         arith.index_cast %[[N]] : index to i64
// CHECK:         arith.extui %[[B]] : i1 to i64
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         llvm.call @penstock_launch(%[[DEV]], %[[ID]], %[[WORDS]])
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.call @penstock_launch(%[[DEV]], %[[ID]],
func.func private @stage(%dev: !llvm.ptr, %x: memref<3x5xf32, strided<[7, 1], offset: 2>>, %rate: f32, %n: index, %b: i1) {
  kernel.launch @kernels::@s_F grid [7, 1, 1] block [128, 1, 1] (%x, %rate, %n, %b)
    : memref<3x5xf32, strided<[7, 1], offset: 2>>, f32, index, i1
  kernel.launch @kernels::@s_F_rows grid [3, 2, 1] block [32, 8, 1] (%rate) : f32
  return
}

// CHECK-LABEL: func.func private @again(
// CHECK:         arith.extui
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.call @penstock_launch(%{{.*}}, %[[ID]],
func.func private @again(%dev: !llvm.ptr, %rate: f32) {
  kernel.launch @kernels::@s_F_rows grid [3, 2, 1] block [32, 8, 1] (%rate) : f32
  return
}

memref.global "private" constant @weights : memref<3x5xf32> = dense<2.0>

// CHECK-LABEL: func.func private @product(
// CHECK-SAME:    %[[DEV:.*]]: !llvm.ptr, %[[X:.*]]: memref<7x3xf32>, %[[Y:.*]]: memref<7x5xf32>)
// CHECK:         %[[ID:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         %[[AT:.*]] = llvm.call @penstock_find_constant(%[[DEV]], %[[ID]])
// CHECK:         llvm.call @penstock_gemm(%[[DEV]],
func.func private @product(%dev: !llvm.ptr, %x: memref<7x3xf32>, %y: memref<7x5xf32>) {
  %c = kernel.constant @weights : memref<3x5xf32>
  kernel.gemm %x, %c, %y sizes [7, 5, 3] strides [3, 1] [5, 1] [5, 1]
    config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x5xf32>, memref<7x5xf32>
  return
}

// What the library leaves pending follows.
// CHECK-LABEL: func.func private @epilogues(
// CHECK-SAME:    %[[DEV:.*]]: !llvm.ptr, %[[X:.*]]: memref<7x3xf32>, %[[W:.*]]: memref<3x5xf32>, %[[B:.*]]: memref<5xf32>, %[[Y:.*]]: memref<7x5xf32>, %{{.*}}: f32)
// CHECK:         llvm.alloca
// CHECK:         %[[FIRST:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-NEXT:    memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:         memref.extract_aligned_pointer_as_index %[[B]]
// CHECK:         %[[BIAS:.*]] = llvm.inttoptr
// CHECK:         %[[LEFT:.*]] = llvm.call @penstock_gemm_epilogue(%[[DEV]], %[[FIRST]], {{.*}}, %[[BIAS]]) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
// CHECK:         %[[ZERO:.*]] = llvm.mlir.zero : i32
// CHECK:         %[[PENDING:.*]] = llvm.icmp "ne" %[[LEFT]], %[[ZERO]]
// CHECK:         scf.if %[[PENDING]]
// CHECK:         %[[SECOND:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         %[[NONE:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK:         llvm.call @penstock_gemm_epilogue(%[[DEV]], %[[SECOND]], %{{.*}}, %{{.*}}, %{{.*}}, %[[NONE]])
func.func private @epilogues(%dev: !llvm.ptr, %x: memref<7x3xf32>, %w: memref<3x5xf32>, %b: memref<5xf32>, %y: memref<7x5xf32>, %rate: f32) {
  %pending = kernel.gemm %x, %w, %y bias(%b : memref<5xf32>) relu sizes [7, 5, 3] strides [3, 1] [5, 1] [5, 1]
    config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x5xf32>, memref<7x5xf32> -> i1
  scf.if %pending {
    kernel.launch @kernels::@s_F_rows grid [3, 2, 1] block [32, 8, 1] (%rate) : f32
  }
  %1 = kernel.gemm %x, %w, %y relu sizes [7, 5, 3] strides [3, 1] [5, 1] [5, 1]
    config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x5xf32>, memref<7x5xf32> -> i1
  return
}

func.func @train.0(%dev: !llvm.ptr, %first: index, %updates: index)
    attributes {pipeline.schedule = @train, pipeline.device = 0 : i64} {
  pipeline.mark @s.F[%first]
  return
}

// TABLE: c"s_F\00"
// TABLE: c"s_F_rows\00"
// TABLE: @penstock.kernels = internal constant [2 x {{.*}}] [{{.*}} [3 x i32] [i32 7, i32 1, i32 1], [3 x i32] [i32 128, i32 1, i32 1], i32 0, i32 4 }, {{.*}} [3 x i32] [i32 3, i32 2, i32 1], [3 x i32] [i32 32, i32 8, i32 1], i32 0, i32 1 }]
// TABLE: @penstock_device_code = external constant i8
// TABLE: @penstock.constant.weights = internal constant [15 x float]
// TABLE: @penstock.constants = internal constant [1 x { i64, ptr }] [{ i64, ptr } { i64 60, ptr @penstock.constant.weights }]
// TABLE: @penstock_program = constant {{.*}} i32 2, ptr @penstock.kernels, ptr @penstock_device_code, i32 1, ptr @penstock.constants, i32 0, ptr null }
