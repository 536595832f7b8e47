// RUN: penstock-opt %s --pipeline-approximate-math | FileCheck %s

// CHECK-DAG: func.func private @sinf(f32) -> f32
// CHECK-DAG: func.func private @exp(f64) -> f64

// exp on f32 is a polynomial; 2^x goes through it.
// CHECK-LABEL: func.func @polynomials(
// CHECK-NOT:     math.exp
// CHECK:         math.fma
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @polynomials(%x: vector<16xf32>, %s: f32) -> (vector<16xf32>, f32) {
  %a = math.exp %x : vector<16xf32>
  %b = math.exp2 %s : f32
  return %a, %b : vector<16xf32>, f32
}

// erf is one rational function between its ends.
// CHECK-LABEL: func.func @rational(
// CHECK-SAME:    %[[X:.*]]: f32
// CHECK-DAG:     %[[END:.*]] = arith.constant 3.920000e+00 : f32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         arith.cmpf olt, %[[END]], %[[X]]
// CHECK-COUNT-5: math.fma
// CHECK-COUNT-5: math.fma
// CHECK:         %[[Q:.*]] = arith.divf
// CHECK:         arith.cmpf olt, %[[ONE]], %[[Q]]
// CHECK-NOT:     call
// CHECK:         return
func.func @rational(%x: f32) -> f32 {
  %a = math.erf %x : f32
  return %a : f32
}

// The C library for what has no accurate one, and for f64.
// CHECK-LABEL: func.func @library(
// CHECK-COUNT-4: call @sinf
// CHECK:         call @exp(
func.func @library(%x: vector<4xf32>, %d: f64) -> (vector<4xf32>, f64) {
  %a = math.sin %x : vector<4xf32>
  %b = math.exp %d : f64
  return %a, %b : vector<4xf32>, f64
}

// Instructions stay; 1 / sqrt is exact in each step.
// CHECK-LABEL: func.func @instructions(
// CHECK:         math.sqrt
// CHECK:         math.sqrt
// CHECK:         arith.divf
// CHECK:         math.floor
func.func @instructions(%x: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %a = math.sqrt %x : vector<16xf32>
  %b = math.rsqrt %x : vector<16xf32>
  %c = math.floor %x : vector<16xf32>
  return %a, %b, %c : vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// Kernels of a GPU get the same polynomials. There is no C library.
// CHECK-LABEL: gpu.module @kernels {
// CHECK-NOT:     call
// CHECK:         math.fma
// CHECK-NOT:     math.exp
// CHECK:         math.sin %{{.*}} : f32
// CHECK:         math.exp %{{.*}} : f64
// CHECK-NOT:     call
// CHECK:         gpu.return
// Of f16 in f32, with one rounding.
// CHECK-LABEL:   gpu.func @narrow
// CHECK:         arith.extf %{{.*}} : f16 to f32
// CHECK:         math.fma %{{.*}} : f32
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK-NOT:     math.tanh
// CHECK:         gpu.return
gpu.module @kernels {
  gpu.func @functions(%x: memref<f32, 1>, %y: memref<f64, 1>) kernel {
    %a = memref.load %x[] : memref<f32, 1>
    %b = math.exp %a : f32
    %c = math.sin %b : f32
    memref.store %c, %x[] : memref<f32, 1>
    %d = memref.load %y[] : memref<f64, 1>
    %e = math.exp %d : f64
    memref.store %e, %y[] : memref<f64, 1>
    gpu.return
  }
  gpu.func @narrow(%x: memref<f16, 1>) kernel {
    %a = memref.load %x[] : memref<f16, 1>
    %b = math.tanh %a : f16
    memref.store %b, %x[] : memref<f16, 1>
    gpu.return
  }
}
