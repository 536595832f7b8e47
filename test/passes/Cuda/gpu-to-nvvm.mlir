// RUN: penstock-opt %s --pass-pipeline='builtin.module(gpu.module(convert-scf-to-cf,expand-strided-metadata,pipeline-gpu-to-nvvm,canonicalize,cse,reconcile-unrealized-casts))' | FileCheck %s

// CHECK:       gpu.module @kernels attributes {llvm.data_layout = "e-{{.*}}i64:64{{.*}}n16:32:64"}
// CHECK:         llvm.mlir.global private constant @table(dense<{{.*}}> : tensor<3xf32>) {addr_space = 1 : i32} : !llvm.array<3 x f32>
gpu.module @kernels {
memref.global "private" constant @table : memref<3xf32, 1> = dense<[1.0, 2.5, -3.0]>

// Buffers are bare addresses of global memory; the sizes are known to LLVM.
// CHECK:       llvm.func @elementwise(%[[X:.*]]: !llvm.ptr<1> {llvm.dereferenceable = 1400 : i64}, %[[S:.*]]: f32, %[[N:.*]]: i64) attributes {
// CHECK-SAME:    gpu.kernel
// CHECK-SAME:    nvvm.kernel
// CHECK-SAME:    nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK:         nvvm.read.ptx.sreg.tid.x range <i32, 0, 128>
// CHECK:         nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 3>
// CHECK:         %[[V:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK:         llvm.intr.fma(%[[V]], %[[S]], %[[V]]) : (f32, f32, f32) -> f32
// CHECK:         llvm.intr.floor
// CHECK:         llvm.intr.ceil
// CHECK:         llvm.intr.sqrt
// CHECK:         llvm.intr.fabs
// CHECK:         llvm.intr.copysign
// CHECK:         llvm.fdiv
// CHECK:         llvm.intr.maximum
// CHECK:         llvm.store
gpu.func @elementwise(%x: memref<5x70xf32, 1>, %s: f32, %n: index) kernel
    attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 3, 1, 1>} {
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %v = memref.load %x[%block, %thread] : memref<5x70xf32, 1>
  %1 = math.fma %v, %s, %v : f32
  %2 = math.floor %1 : f32
  %3 = math.ceil %2 : f32
  %4 = math.sqrt %3 : f32
  %5 = math.absf %4 : f32
  %6 = math.copysign %5, %v : f32
  %7 = arith.divf %6, %s : f32
  %8 = arith.maximumf %7, %v : f32
  memref.store %8, %x[%block, %n] : memref<5x70xf32, 1>
  gpu.return
}

// CHECK-DAG:     llvm.func @__nv_sinf(f32) -> f32
// CHECK-DAG:     llvm.func @__nv_pow(f64, f64) -> f64
// CHECK-DAG:     llvm.func @__nv_tanf(f32) -> f32
// CHECK-DAG:     llvm.func @__nv_asinf(f32) -> f32
// CHECK-DAG:     llvm.func @__nv_acosf(f32) -> f32
// CHECK-DAG:     llvm.func @__nv_atanf(f32) -> f32
// CHECK-DAG:     llvm.func @__nv_atan2f(f32, f32) -> f32
// CHECK-DAG:     llvm.func @__nv_sinhf(f32) -> f32
// CHECK-DAG:     llvm.func @__nv_cosh(f64) -> f64
// CHECK:       llvm.func @functions
// CHECK:         llvm.mlir.addressof @table : !llvm.ptr<1>
// CHECK:         llvm.call @__nv_sinf
// CHECK:         llvm.call @__nv_tanf
// CHECK:         llvm.call @__nv_asinf
// CHECK:         llvm.call @__nv_acosf
// CHECK:         llvm.call @__nv_atanf
// CHECK:         llvm.call @__nv_atan2f
// CHECK:         llvm.call @__nv_sinhf
// CHECK:         llvm.intr.roundeven
// CHECK:         llvm.call @__nv_pow
// CHECK:         llvm.call @__nv_cosh
gpu.func @functions(%x: memref<3xf32, 1>, %y: memref<f64, 1>, %i: index) kernel {
  %v = memref.load %x[%i] : memref<3xf32, 1>
  %1 = math.sin %v : f32
  %tan = math.tan %1 : f32
  %asin = math.asin %tan : f32
  %acos = math.acos %asin : f32
  %atan = math.atan %acos : f32
  %atan2 = math.atan2 %atan, %v : f32
  %sinh = math.sinh %atan2 : f32
  %even = math.roundeven %sinh : f32
  memref.store %even, %x[%i] : memref<3xf32, 1>
  %d = memref.load %y[] : memref<f64, 1>
  %2 = math.powf %d, %d : f64
  %cosh = math.cosh %2 : f64
  memref.store %cosh, %y[] : memref<f64, 1>
  %table = memref.get_global @table : memref<3xf32, 1>
  %3 = memref.load %table[%i] : memref<3xf32, 1>
  memref.store %3, %x[%i] : memref<3xf32, 1>
  gpu.return
}

// Conversions of the short types are instructions.
// CHECK:       llvm.func @casts
// CHECK:         llvm.fpext %{{.*}} : bf16 to f32
// CHECK:         llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK:         llvm.fptrunc %{{.*}} : f32 to f16
gpu.func @casts(%x: memref<bf16, 1>, %y: memref<f16, 1>) kernel {
  %v = memref.load %x[] : memref<bf16, 1>
  %1 = arith.extf %v : bf16 to f32
  %2 = arith.addf %1, %1 : f32
  %3 = arith.truncf %2 : f32 to bf16
  memref.store %3, %x[] : memref<bf16, 1>
  %4 = arith.truncf %2 : f32 to f16
  memref.store %4, %y[] : memref<f16, 1>
  gpu.return
}
}
