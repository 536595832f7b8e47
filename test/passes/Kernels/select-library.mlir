// RUN: penstock-opt %s --pipeline-select-library --split-input-file --verify-diagnostics | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>

// The fill is what an accumulating product would begin with: gone.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[A:.*]]: memref<5x7xf32>, %[[B:.*]]: memref<7x11xf32>, %[[C:.*]]: memref<5x11xf32>
// CHECK-NOT:     linalg
// CHECK:         kernel.gemm %[[A]], %[[B]], %[[C]] sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] config(#cpu.gemm<>) : memref
// CHECK-NOT:     linalg
func.func @product(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cpu.target<>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<5x11xf32>)
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// Transposed operands are strides. Nothing was filled: it adds.
// CHECK-LABEL: func.func @transposed(
// CHECK:         kernel.gemm {{.*}} sizes [5, 11, 7] strides [1, 5] [1, 7] [11, 1] accumulate config(#cpu.gemm<>) :
func.func @transposed(%a: memref<7x5xf32>, %b: memref<11x7xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cpu.target<>} {
  linalg.contract indexing_maps = [#km, #nk, #mn] ins(%a, %b : memref<7x5xf32>, memref<11x7xf32>) outs(%c : memref<5x11xf32>)
  return
}

// A result by columns: the product of the transposes, operands exchanged.
// CHECK-LABEL: func.func @by_columns(
// CHECK-SAME:    %[[A:.*]]: memref<5x7xf32>, %[[B:.*]]: memref<7x11xf32>, %[[C:.*]]: memref<11x5xf32>
// CHECK:         kernel.gemm %[[B]], %[[A]], %[[C]] sizes [11, 5, 7] strides [1, 11] [1, 7] [5, 1] accumulate
func.func @by_columns(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<11x5xf32>) attributes {pipeline.target = #cpu.target<>} {
  linalg.contract indexing_maps = [#mk, #kn, #nm] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<11x5xf32>)
  return
}

// The buffer is read between: the fill stays, and the product adds to it.
// CHECK-LABEL: func.func @read_between(
// CHECK:         linalg.fill
// CHECK:         linalg.exp
// CHECK:         kernel.gemm {{.*}} accumulate
func.func @read_between(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>, %d: memref<5x11xf32>) attributes {pipeline.target = #cpu.target<>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<5x11xf32>)
  linalg.exp ins(%c : memref<5x11xf32>) outs(%d : memref<5x11xf32>)
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// A fill with something else is not a beginning from zero.
// CHECK-LABEL: func.func @filled_with_one(
// CHECK:         linalg.fill
// CHECK:         kernel.gemm {{.*}} accumulate
func.func @filled_with_one(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cpu.target<>} {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%c : memref<5x11xf32>)
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// -----

#bsk = affine_map<(b, s, n, k) -> (b, s, k)>
#kn = affine_map<(b, s, n, k) -> (k, n)>
#bsn = affine_map<(b, s, n, k) -> (b, s, n)>

// Two dimensions of rows that are one in memory.
// CHECK-LABEL: func.func @rows(
// CHECK:         kernel.gemm {{.*}} sizes [6, 11, 7] strides [7, 1] [11, 1] [11, 1] accumulate
func.func @rows(%a: memref<2x3x7xf32>, %b: memref<7x11xf32>, %c: memref<2x3x11xf32>) attributes {pipeline.target = #cpu.target<>} {
  linalg.contract indexing_maps = [#bsk, #kn, #bsn] ins(%a, %b : memref<2x3x7xf32>, memref<7x11xf32>) outs(%c : memref<2x3x11xf32>)
  return
}

// -----

#q = affine_map<(b, h, s, t, d) -> (b, s, h, d)>
#k = affine_map<(b, h, s, t, d) -> (b, t, h, d)>
#p = affine_map<(b, h, s, t, d) -> (b, h, s, t)>

// The heads of attention, where they lie: no transpose.
// CHECK-LABEL: func.func @heads(
// CHECK:         kernel.gemm {{.*}} sizes [2, 3, 5, 7, 16] strides [240, 16, 48, 1] [336, 16, 1, 48] [105, 35, 7, 1] accumulate
func.func @heads(%a: memref<2x5x3x16xf32>, %b: memref<2x7x3x16xf32>, %c: memref<2x3x5x7xf32>) attributes {pipeline.target = #cpu.target<>} {
  linalg.contract indexing_maps = [#q, #k, #p] ins(%a, %b : memref<2x5x3x16xf32>, memref<2x7x3x16xf32>) outs(%c : memref<2x3x5x7xf32>)
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Not for the library: the ops stay and become loops.
// CHECK-LABEL: func.func @f64(
// CHECK:         linalg.contract
func.func @f64(%a: memref<5x7xf64>, %b: memref<7x11xf64>, %c: memref<5x11xf64>) attributes {pipeline.target = #cpu.target<>} {
  // expected-remark@+1 {{becomes loops: not an f32 product of strided matrices}}
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf64>, memref<7x11xf64>) outs(%c : memref<5x11xf64>)
  return
}

// CHECK-LABEL: func.func @no_unit_stride(
// CHECK:         linalg.contract
func.func @no_unit_stride(%a: memref<5x7xf32, strided<[28, 2]>>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cpu.target<>} {
  // expected-remark@+1 {{becomes loops: a matrix has no unit stride}}
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32, strided<[28, 2]>>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// -----

// Temporaries are views of one block. What lies elsewhere in it does not
// matter; what overlaps does.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @views(
// CHECK-NOT:     linalg.fill
// CHECK:         linalg.exp
// CHECK:         kernel.gemm {{.*}} strides [7, 1] [11, 1] [11, 1] config(#cpu.gemm<>) : memref
// CHECK:         linalg.fill
// CHECK:         linalg.exp
// CHECK:         kernel.gemm {{.*}} accumulate
func.func @views(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %block: memref<1024xi8>) attributes {pipeline.target = #cpu.target<>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  %c256 = arith.constant 256 : index
  %c = memref.view %block[%c256][] : memref<1024xi8> to memref<5x11xf32>
  %before = memref.view %block[%c0][] : memref<1024xi8> to memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<5x11xf32>)
  linalg.exp ins(%before : memref<64xf32>) outs(%before : memref<64xf32>)
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  %across = memref.view %block[%c192][] : memref<1024xi8> to memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<5x11xf32>)
  linalg.exp ins(%across : memref<64xf32>) outs(%across : memref<64xf32>)
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// -----

// The number of threads is the target's. Other devices have other functions.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @threads(
// CHECK:         kernel.gemm {{.*}} config(#cpu.gemm<threads(3)>)
func.func @threads(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) attributes {pipeline.target = #cpu.target<threads(3)>} {
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}
// CHECK-LABEL: func.func @no_target(
// CHECK:         linalg.contract
func.func @no_target(%a: memref<5x7xf32>, %b: memref<7x11xf32>, %c: memref<5x11xf32>) {
  // expected-remark@+1 {{becomes loops: no target is known}}
  linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
  return
}

// -----

// Convolutions and their gradients, operands in their roles.
// CHECK-LABEL: func.func @convolutions(
// CHECK-SAME:    %[[X:.*]]: memref<2x3x7x5xf32>, %[[W:.*]]: memref<5x3x3x3xf32>, %[[Y:.*]]: memref<2x5x5x3xf32>
// CHECK:         kernel.conv forward %[[X]], %[[W]], %[[Y]] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) config(#cpu.conv<{{[a-z0-9_]+}}>) : memref<2x3x7x5xf32>, memref<5x3x3x3xf32>, memref<2x5x5x3xf32>
// CHECK-NEXT:    kernel.conv input_grad %[[X]], %[[W]], %[[Y]] {{.*}} : memref<2x3x7x5xf32>, memref<5x3x3x3xf32>, memref<2x5x5x3xf32>
// CHECK-NEXT:    kernel.conv weight_grad %[[X]], %[[W]], %[[Y]] {{.*}} : memref<2x3x7x5xf32>, memref<5x3x3x3xf32>, memref<2x5x5x3xf32>
func.func @convolutions(%x: memref<2x3x7x5xf32>, %w: memref<5x3x3x3xf32>, %y: memref<2x5x5x3xf32>) attributes {pipeline.target = #cpu.target<>} {
  nn.conv %x, %w outs(%y) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x3x7x5xf32>, memref<5x3x3x3xf32>, memref<2x5x5x3xf32>
  nn.conv_input_grad %y, %w outs(%x) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x5x5x3xf32>, memref<5x3x3x3xf32>, memref<2x3x7x5xf32>
  nn.conv_weight_grad %x, %y outs(%w) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x3x7x5xf32>, memref<2x5x5x3xf32>, memref<5x3x3x3xf32>
  return
}

// -----

// What is left of convolutions here is what some library computes.
func.func @f64(%x: memref<2x3x7x5xf64>, %w: memref<5x3x3x3xf64>, %y: memref<2x5x5x3xf64>) attributes {pipeline.target = #cpu.target<>} {
  // expected-error@+1 {{no library can compute this convolution: not a dense f32 convolution in one to three dimensions}}
  nn.conv %x, %w outs(%y) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x3x7x5xf64>, memref<5x3x3x3xf64>, memref<2x5x5x3xf64>
  return
}

// -----

func.func @convolution_without_target(%x: memref<2x3x7x5xf32>, %w: memref<5x3x3x3xf32>, %y: memref<2x5x5x3xf32>) {
  // expected-error@+1 {{is in a function without a target: run pipeline-assign-targets first}}
  nn.conv %x, %w outs(%y) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : memref<2x3x7x5xf32>, memref<5x3x3x3xf32>, memref<2x5x5x3xf32>
  return
}
