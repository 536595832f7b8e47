// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// What no device of a CPU, and no call of its library, can be.

// expected-error @below {{a device has at least one thread, got 0}}
func.func private @f() attributes {test.a = #cpu.target<threads(0)>}

// -----

// expected-error @below {{a processor has a name, or is "native"}}
func.func private @f() attributes {test.a = #cpu.target<march("")>}

// -----

// expected-error @below {{a product is for at least one thread, got 0}}
func.func private @f() attributes {test.a = #cpu.gemm<threads(0)>}

// -----

// expected-error @below {{panels have positive width and stride, got 384 by 0}}
func.func private @f() attributes {test.a = #cpu.gemm<panels(384 by 0)>}

// -----

// expected-error @below {{a convolution is for at least one thread, got -1}}
func.func private @f() attributes {test.a = #cpu.conv<library threads(-1)>}

// -----

// expected-error @below {{a matrix has two sizes and strides, and rows of its panels do not overlap}}
func.func private @f() attributes {test.a = #cpu.panels<[16, 8] strides [1, 16] width 384 stride 7>}

// -----

// expected-error @below {{a convolution has as many strides and dilations, and twice as many pads, as spatial dimensions}}
func.func private @f() attributes {test.a = #cpu.blocked<[2, 3, 7] by [5, 3, 3] to [2, 5, 4] strides [2] dilations [1] pads [1] groups 1 config <library>>}

// -----

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K5: is no convolution, but has the config of one: #cpu.conv<library>}}
  kernel.gemm %a, %a, %a sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] config(#cpu.conv<library>) : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K5: is no product, but has the config of one: #cpu.gemm<>}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) config(#cpu.gemm<>) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K5: has panels in its config exactly where it reads packed weights}}
  kernel.gemm %a, %a, %a sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] config(#cpu.gemm<panels(2 by 16)>) : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}
