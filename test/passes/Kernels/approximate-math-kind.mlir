// RUN: penstock-opt %s --pipeline-approximate-math=kind=cuda | FileCheck %s --check-prefixes=CHECK,OTHER
// RUN: penstock-opt %s --pipeline-approximate-math=kind=cpu | FileCheck %s --check-prefixes=CHECK,CPU

// A function is left to the pipeline of its own target, in which the C library
// may not be there. Functions without a target are the host's.
// CHECK-LABEL: func.func @host
// CHECK:         call @sinf
// CHECK-LABEL: func.func @stage
// OTHER:         math.exp
// OTHER:         math.sin
// CPU-NOT:       math.exp
// CPU:           call @sinf
func.func @host(%x: f32) -> f32 {
  %y = math.sin %x : f32
  return %y : f32
}
func.func @stage(%x: f32) -> f32 attributes {pipeline.target = #cpu.target<>} {
  %y = math.exp %x : f32
  %z = math.sin %y : f32
  return %z : f32
}
