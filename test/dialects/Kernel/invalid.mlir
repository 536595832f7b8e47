// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// What one library call can say by itself.

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K1: needs sizes [batch..., m, n, k]}}
  kernel.gemm %a, %a, %a sizes [2, 2] strides [2] [2] [2] : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K1: needs positive sizes}}
  kernel.gemm %a, %a, %a sizes [2, 0, 2] strides [2, 1] [2, 1] [2, 1] : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K2: needs 2 strides per operand, got 1}}
  kernel.gemm %a, %a, %a sizes [2, 2, 2] strides [2, 1] [2] [2, 1] : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%a: memref<2x2xbf16>, %b: memref<2x2xf32>) {
  // Sums may be f32, factors are alike.
  kernel.gemm %a, %a, %b sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] : memref<2x2xbf16>, memref<2x2xbf16>, memref<2x2xf32>
  // expected-error @below {{'kernel.gemm' op K3: multiplies 'bf16' by 'f32' to 'f32'}}
  kernel.gemm %a, %b, %b sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] : memref<2x2xbf16>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%a: memref<2x2xbf16>, %b: memref<2x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K3: multiplies 'f32' by 'f32' to 'bf16'}}
  kernel.gemm %b, %b, %a sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xbf16>
  return
}

// -----

func.func @f(%a: memref<2x2xf32>, %p: memref<64xf32>) {
  // expected-error @below {{'kernel.gemm' op K4: reads packed weights, and has batch dimensions}}
  kernel.gemm %a, %a, %a packed(%p : memref<64xf32>) sizes [3, 2, 2, 2] strides [4, 2, 1] [4, 2, 1] [4, 2, 1] : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%a: memref<2x3xf32>, %b: memref<3x5xf32>, %c: memref<2x5xf32>, %bias: memref<5xf32>) {
  // expected-error @below {{'kernel.gemm' op K17: says whether an epilogue is pending exactly where there is a bias or relu}}
  kernel.gemm %a, %b, %c bias(%bias : memref<5xf32>) sizes [2, 5, 3] strides [3, 1] [5, 1] [5, 1] : memref<2x3xf32>, memref<3x5xf32>, memref<2x5xf32>
  return
}

// -----

func.func @f(%a: memref<2x3xf32>, %b: memref<3x5xf32>, %c: memref<2x5xf32>) {
  // expected-error @below {{'kernel.gemm' op K17: has an epilogue, and is no product of f32 matrices that overwrites rows}}
  %0 = kernel.gemm %a, %b, %c relu sizes [2, 5, 3] strides [3, 1] [5, 1] [5, 1] accumulate : memref<2x3xf32>, memref<3x5xf32>, memref<2x5xf32> -> i1
  return
}

// -----

func.func @f(%a: memref<2x3xbf16>, %b: memref<3x5xbf16>, %c: memref<2x5xf32>) {
  // expected-error @below {{'kernel.gemm' op K17: has an epilogue, and is no product of f32 matrices that overwrites rows}}
  %0 = kernel.gemm %a, %b, %c relu sizes [2, 5, 3] strides [3, 1] [5, 1] [5, 1] : memref<2x3xbf16>, memref<3x5xbf16>, memref<2x5xf32> -> i1
  return
}

// -----

func.func @f(%a: memref<2x3xf32>, %b: memref<3x5xf32>, %c: memref<5x2xf32>) {
  // expected-error @below {{'kernel.gemm' op K17: has an epilogue, and is no product of f32 matrices that overwrites rows}}
  %0 = kernel.gemm %a, %b, %c relu sizes [2, 5, 3] strides [3, 1] [5, 1] [1, 2] : memref<2x3xf32>, memref<3x5xf32>, memref<5x2xf32> -> i1
  return
}

// -----

func.func @f(%a: memref<2x3xf32>, %b: memref<3x5xf32>, %c: memref<2x5xf32>, %bias: memref<2xf32>) {
  // expected-error @below {{'kernel.gemm' op K17: adds a bias of 'memref<2xf32>' to rows of 5 elements}}
  %0 = kernel.gemm %a, %b, %c bias(%bias : memref<2xf32>) sizes [2, 5, 3] strides [3, 1] [5, 1] [5, 1] : memref<2x3xf32>, memref<3x5xf32>, memref<2x5xf32> -> i1
  return
}

// -----

func.func @f(%a: memref<2x3xf32>, %b: memref<3x5xf32>, %c: memref<2x5xf32>) {
  // expected-error @below {{'kernel.gemm' op K5: has an epilogue, which a CPU leaves to the loops that follow}}
  %0 = kernel.gemm %a, %b, %c relu sizes [2, 5, 3] strides [3, 1] [5, 1] [5, 1] config(#cpu.gemm<>) : memref<2x3xf32>, memref<3x5xf32>, memref<2x5xf32> -> i1
  return
}

// -----

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{invalid kind of attribute specified}}
  kernel.gemm %a, %a, %a sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] config(1 : i64) : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%a: memref<2x2xf32>) {
  // expected-error @below {{scratch is some bytes from a byte on, got 0 at 64}}
  kernel.gemm %a, %a, %a sizes [2, 2, 2] strides [2, 1] [2, 1] [2, 1] scratch <0 at 64> : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K6: needs as many strides and dilations, and twice as many pads, as its buffers have spatial dimensions}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf64>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K7: needs dense buffers of one element type, got 'memref<5x3x3xf64>'}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf64>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32, strided<[42, 14, 2]>>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K7: needs dense buffers of one element type, got 'memref<2x3x7xf32, strided<[42, 14, 2]>>'}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(1) : memref<2x3x7xf32, strided<[42, 14, 2]>>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K8: of 'memref<2x3x7xf32>' by 'memref<5x3x3xf32>' in groups(2) does not give 'memref<2x5x4xf32>'}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [1, 1] groups(2) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K8: strides and dilations are positive}}
  kernel.conv forward %x, %w, %y strides [0] dilations [1] pads [1, 1] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>) {
  // expected-error @below {{'kernel.conv' op K8: has 3 windows along spatial dimension 0, but its output 4}}
  kernel.conv forward %x, %w, %y strides [2] dilations [1] pads [0, 0] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%x: memref<2x3x7xf32>, %w: memref<5x3x3xf32>, %y: memref<2x5x4xf32>, %p: memref<208xf32>) {
  // expected-error @below {{'kernel.conv' op K9: computes the weights, and reads no packed ones}}
  kernel.conv weight_grad %x, %w, %y packed(%p : memref<208xf32>) strides [2] dilations [1] pads [1, 1] groups(1) : memref<2x3x7xf32>, memref<5x3x3xf32>, memref<2x5x4xf32>
  return
}

// -----

func.func @f(%w: memref<8x16xf32>, %p: memref<256xf32>) {
  // expected-error @below {{'kernel.pack' op K10: cannot bring 'memref<8x16xf32>' into 'memref<256xf32>' as #cpu.panels<[16, 9] strides[1, 16] width 384 stride 16>}}
  kernel.pack %w to %p order(#cpu.panels<[16, 9] strides [1, 16] width 384 stride 16>) : memref<8x16xf32>, memref<256xf32>
  return
}

// -----

func.func @f(%w: memref<8x16xf32>, %p: memref<250xf32>) {
  // expected-error @below {{'kernel.pack' op K10: cannot bring 'memref<8x16xf32>' into 'memref<250xf32>' as #cpu.panels<[16, 8] strides[1, 16] width 384 stride 16>}}
  kernel.pack %w to %p order(#cpu.panels<[16, 8] strides [1, 16] width 384 stride 16>) : memref<8x16xf32>, memref<250xf32>
  return
}

// -----

func.func @f(%w: memref<48x32x5x3xf32>, %p: memref<13824xf32>) {
  // expected-error @below {{'kernel.pack' op K10: cannot bring 'memref<48x32x5x3xf32>' into 'memref<13824xf32>' as #cpu.blocked<[2, 32, 6, 6] by[48, 32, 3, 3] to[2, 48, 4, 4] strides[1, 1] dilations[1, 1] pads[0, 0, 0, 0] groups 1 config <library>>}}
  kernel.pack %w to %p order(#cpu.blocked<[2, 32, 6, 6] by [48, 32, 3, 3] to [2, 48, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups 1 config <library>>) : memref<48x32x5x3xf32>, memref<13824xf32>
  return
}

// -----

// expected-error @below {{'kernel.packing' is the order of packed weights, on a variable that holds them}}
pipeline.variable @w : tensor<8x16xf32> parameter {kernel.packing = #cpu.panels<[16, 8] strides [1, 16] width 384 stride 16>}

// -----

// expected-error @below {{'kernel.other' is no attribute of an op}}
func.func private @f() attributes {kernel.other}

// -----

func.func @f() {
  // expected-error @below {{'kernel.launch' op K11: needs three positive sizes of the grid and of a block}}
  kernel.launch @k::@f grid [0, 1, 1] block [128, 1, 1]
  return
}

// -----

func.func @f() {
  // expected-error @below {{'kernel.launch' op K12: has more than 1024 threads a block}}
  kernel.launch @k::@f grid [7, 1, 1] block [64, 17, 1]
  return
}

// -----

func.func @f() {
  // expected-error @below {{'kernel.launch' op K12: has a grid of more than 2147483647 x 65535 x 65535 blocks}}
  kernel.launch @k::@f grid [7, 65536, 1] block [64, 1, 1]
  return
}

// -----

func.func @f(%x: memref<?xf32>) {
  // expected-error @below {{'kernel.launch' op K13: passes a buffer whose shape or strides are not known: 'memref<?xf32>'}}
  kernel.launch @k::@f grid [7, 1, 1] block [64, 1, 1] (%x) : memref<?xf32>
  return
}

// -----

func.func @f(%x: i128) {
  // expected-error @below {{'kernel.launch' op K13: passes a number of more than 64 bits: 'i128'}}
  kernel.launch @k::@f grid [7, 1, 1] block [64, 1, 1] (%x) : i128
  return
}

// -----

func.func @f() {
  // expected-error @below {{'kernel.constant' op K14: is dense, not 'memref<3xf32, strided<[2]>>'}}
  %0 = kernel.constant @c : memref<3xf32, strided<[2]>>
  return
}

// -----

func.func @action(%key: index) {
  // expected-error @below {{'kernel.action' op K15: has calls without results and nothing else, not arith.constant}}
  kernel.action "s0.F" key(%key of 3) {
    %c = arith.constant 1.0 : f32
  }
  return
}

// -----

func.func private @rate() -> f32
func.func @action(%key: index) {
  // expected-error @below {{'kernel.action' op K15: has calls without results and nothing else, not func.call}}
  kernel.action "s0.U" key(%key of 3) {
    %r = func.call @rate() : () -> f32
  }
  return
}

// -----

func.func @scalar() {
  // expected-error @below {{'kernel.scalar' op K16: holds a number of more than 64 bits: 'memref<i128>'}}
  %s = kernel.scalar "s0.U"[0] : memref<i128>
  return
}
