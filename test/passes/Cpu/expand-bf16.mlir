// RUN: penstock-opt %s --pipeline-expand-bf16 | FileCheck %s

// Rounding is integer arithmetic, so that no CPU needs an instruction and no
// library a function for it.
// CHECK-LABEL: func.func @round(
// CHECK-NOT:     arith.truncf
// CHECK:         arith.bitcast %{{.*}} : vector<16xf32> to vector<16xi32>
// CHECK:         arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK:         %[[B:.*]] = arith.bitcast %{{.*}} : vector<16xi16> to vector<16xbf16>
// CHECK:         return %[[B]]
func.func @round(%x: vector<16xf32>) -> vector<16xbf16> {
  %b = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  return %b : vector<16xbf16>
}

// CHECK-LABEL: func.func @widen(
// CHECK-NOT:     arith.extf
// CHECK:         arith.bitcast %{{.*}} : i32 to f32
func.func @widen(%b: bf16) -> f32 {
  %x = arith.extf %b : bf16 to f32
  return %x : f32
}

// f64 is rounded to f32 first.
// CHECK-LABEL: func.func @double(
// CHECK-SAME:    %[[X:.*]]: f64
// CHECK:         arith.truncf %[[X]] : f64 to f32
// CHECK-NOT:     arith.truncf {{.*}} to bf16
// CHECK:         arith.extf %{{.*}} : f32 to f64
func.func @double(%x: f64) -> f64 {
  %b = arith.truncf %x : f64 to bf16
  %y = arith.extf %b : bf16 to f64
  return %y : f64
}

// Other conversions stay.
// CHECK-LABEL: func.func @half(
// CHECK:         arith.truncf %{{.*}} : f32 to f16
func.func @half(%x: f32) -> f16 {
  %h = arith.truncf %x : f32 to f16
  return %h : f16
}
