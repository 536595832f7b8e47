// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// What no GPU, and no call of its libraries, can be.

// expected-error @below {{unknown GPU architecture 'sm_35'; there are sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_120, emulated}}
func.func private @f() attributes {test.a = #cuda.target<"sm_90,sm_35">}

// -----

// expected-error @below {{unknown GPU architecture ''}}
func.func private @f() attributes {test.a = #cuda.target<"">}

// -----

// expected-error @below {{GPU architecture sm_90 is named twice}}
func.func private @f() attributes {test.a = #cuda.target<"sm_90,sm_80,sm_90">}

// -----

// expected-error @below {{the emulated GPU stands alone, not among sm_90,emulated}}
func.func private @f() attributes {test.a = #cuda.target<"sm_90,emulated">}

// -----

// expected-error @below {{a workspace is not negative, got -1}}
func.func private @f() attributes {test.a = #cuda.target<"sm_90" workspace(-1)>}

// -----

// expected-error @below {{a workspace is not negative, got -2}}
func.func private @f() attributes {test.a = #cuda.gemm<workspace(-2)>}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{K5: is no product, but has the config of one: #cuda.gemm<workspace(7)>}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.gemm<workspace(7)>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>, %p: memref<176xf32>) {
  // expected-error @below {{K5: reads packed weights, which cuBLASLt does not}}
  kernel.gemm %a, %b, %c packed(%p : memref<176xf32>) sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] config(#cuda.gemm<>) : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
  return
}

// -----

// expected-error @below {{a workspace is not negative, got -2}}
func.func private @f() attributes {test.a = #cuda.conv<workspace(-2)>}

// -----

// expected-error @below {{an engine has a version of cuDNN and knobs with a value each, got engine 70, version 0, 0 numbers of knobs}}
func.func private @f() attributes {test.a = #cuda.conv<engine(70)>}

// -----

// expected-error @below {{an engine has a version of cuDNN and knobs with a value each, got engine 70, version 91900, 3 numbers of knobs}}
func.func private @f() attributes {test.a = #cuda.conv<engine(70) knobs(2, 12, 18) cudnn(91900)>}

// -----

// expected-error @below {{an engine has a version of cuDNN and knobs with a value each, got engine -1, version 0, 2 numbers of knobs}}
func.func private @f() attributes {test.a = #cuda.conv<knobs(2, 12)>}

// -----

func.func @f(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) {
  // expected-error @below {{K5: is no convolution, but has the config of one: #cuda.conv<workspace(7)>}}
  kernel.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] config(#cuda.conv<workspace(7)>) : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>, %p: memref<176xf32>) {
  // expected-error @below {{K5: reads packed weights, which cuDNN does not}}
  kernel.conv forward %x, %w, %y packed(%p : memref<176xf32>) strides [2] dilations [1] pads [1, 1] groups(1) config(#cuda.conv<>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

// expected-error @below {{'builtin.module' op 'cuda.target' is a CUDA target, on a gpu.module}}
module attributes {cuda.target = #cuda.target<"sm_90">} {}

// -----

// expected-error @below {{'builtin.module' op 'cuda.kind' is no attribute of an op}}
module attributes {cuda.kind = 1 : i64} {}

// -----

// expected-error @below {{'func.func' op 'cuda.plain' is without a value, on a kernel}}
func.func private @f() attributes {cuda.plain}
