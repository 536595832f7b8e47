// RUN: penstock-opt %s --pipeline-select-library --split-input-file --verify-diagnostics | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Products that calls of cuBLASLt compute, within the target's workspace. The
// emulated library needs none.
// CHECK-LABEL: func.func @products(
// CHECK:         kernel.gemm {{.*}} sizes [5, 11, 7] strides [7, 1] [1, 7] [11, 1] accumulate config(#cuda.gemm<workspace(33554432)>)
func.func @products(%a: memref<5x7xf32>, %b: memref<11x7xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cuda.target<"sm_80,sm_90">} {
  linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : memref<5x7xf32>, memref<11x7xf32>) outs(%c : memref<5x11xf32>)
  return
}

// CHECK-LABEL: func.func @emulated_product(
// CHECK:         kernel.gemm {{.*}} config(#cuda.gemm<>)
func.func @emulated_product(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cuda.target<"emulated">} {
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// Rows of A overlap, which oneDNN takes and cuBLASLt does not.
// CHECK-LABEL: func.func @windows(
// CHECK:         linalg.contract
func.func @windows(%a: memref<5x7xf32, strided<[2, 1]>>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cuda.target<"emulated">} {
  // expected-remark @below {{becomes loops: a matrix has no unit stride, or its rows overlap}}
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32, strided<[2, 1]>>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// -----

// For several architectures there is no plan: the runtime chooses an engine
// within the target's workspace.
// CHECK-LABEL: func.func @convolutions(
// CHECK:         kernel.conv forward {{.*}} config(#cuda.conv<workspace(1048576)>)
// CHECK-NEXT:    kernel.conv input_grad {{.*}} config(#cuda.conv<workspace(1048576)>)
// CHECK-NEXT:    kernel.conv weight_grad {{.*}} config(#cuda.conv<workspace(1048576)>)
func.func @convolutions(%x: memref<2x3x7x5xf32>, %w: memref<5x3x3x3xf32>, %y: memref<2x5x5x3xf32>) attributes {pipeline.target = #cuda.target<"sm_80,sm_90" workspace(1048576)>} {
  nn.conv %x, %w outs(%y) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x3x7x5xf32>, memref<5x3x3x3xf32>, memref<2x5x5x3xf32>
  nn.conv_input_grad %y, %w outs(%x) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x5x5x3xf32>, memref<5x3x3x3xf32>, memref<2x3x7x5xf32>
  nn.conv_weight_grad %x, %y outs(%w) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x3x7x5xf32>, memref<2x5x5x3xf32>, memref<5x3x3x3xf32>
  return
}

// The emulated library takes any padding.
// CHECK-LABEL: func.func @emulated_convolution(
// CHECK:         kernel.conv forward {{.*}} pads [1, 2] {{.*}} config(#cuda.conv<>)
func.func @emulated_convolution(%x: memref<2x3x7xf32>, %w: memref<5x3x4xf32>, %y: memref<2x5x7xf32>) attributes {pipeline.target = #cuda.target<"emulated">} {
  nn.conv %x, %w outs(%y) strides [1] dilations [1] pads [1, 2] groups(1) : memref<2x3x7xf32>, memref<5x3x4xf32>, memref<2x5x7xf32>
  return
}

// -----

// A program can ask for the products of the definition.
module attributes {pipeline.direct_convolution} {
  // CHECK-LABEL: func.func @direct(
  // CHECK:         kernel.conv forward {{.*}} config(#cuda.conv<direct(true)>)
  func.func @direct(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x5xf32>) attributes {pipeline.target = #cuda.target<"emulated">} {
    nn.conv %x, %w outs(%y) strides [1] dilations [1] pads [0, 0] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x5xf32>
    return
  }
}

// -----

// What is left of convolutions here is what the library computes.
func.func @unequal(%x: memref<2x3x7xf32>, %w: memref<5x3x4xf32>, %y: memref<2x5x7xf32>) attributes {pipeline.target = #cuda.target<"sm_80,sm_90">} {
  // expected-error @below {{no library can compute this convolution: unequal padding, or groups in three dimensions, are planned for one architecture, where cuDNN 9.8 or later is installed}}
  nn.conv %x, %w outs(%y) strides [1] dilations [1] pads [1, 2] groups(1) : memref<2x3x7xf32>, memref<5x3x4xf32>, memref<2x5x7xf32>
  return
}
