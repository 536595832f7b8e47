// RUN: penstock-opt %s --verify-roundtrip | FileCheck %s

// Targets, configs and orders of packed weights, with and without what is the
// default.

// CHECK: #cpu.target<>
// CHECK: #cpu.target<threads(4)>
// CHECK: #cpu.target<threads(2)march("x86-64-v3")>
// CHECK: #cpu.gemm<>
// CHECK: #cpu.gemm<threads(2)panels(384 by 400)>
// CHECK: #cpu.conv<tiles_4x4>
// CHECK: #cpu.conv<output_windows threads(2)>
// CHECK: #cpu.panels<[1024, 4096] strides[1, 1024] width 384 stride 400>
// CHECK: #cpu.blocked<[2, 64, 8, 8] by[128, 64, 3, 3] to[2, 128, 4, 4] strides[2, 2] dilations[1, 1] pads[1, 1, 1, 1] groups 1 config <library>>
// CHECK: #cpu.blocked<input_grad(true)[2, 3, 7] by[5, 3, 3] to[2, 5, 4] strides[2] dilations[1] pads[1, 1] groups 1 config <upright threads(3)>>
module attributes {
  test.a = #cpu.target<threads(1) march("native")>,
  test.b = #cpu.target<threads(4)>,
  test.c = #cpu.target<threads(2) march("x86-64-v3")>,
  test.d = #cpu.gemm<>,
  test.e = #cpu.gemm<threads(2) panels(384 by 400)>,
  test.f = #cpu.conv<tiles_4x4>,
  test.g = #cpu.conv<output_windows threads(2)>,
  test.h = #cpu.panels<[1024, 4096] strides [1, 1024] width 384 stride 400>,
  test.i = #cpu.blocked<[2, 64, 8, 8] by [128, 64, 3, 3] to [2, 128, 4, 4] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] groups 1 config <library>>,
  test.j = #cpu.blocked<input_grad(true) [2, 3, 7] by [5, 3, 3] to [2, 5, 4] strides [2] dilations [1] pads [1, 1] groups 1 config <upright threads(3)>>
} {
}
