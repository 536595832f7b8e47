// RUN: penstock-opt %s --pipeline-form-epilogues --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#column3 = affine_map<(i, j, k) -> (k)>

// In place, with the bias on either side of the sum and zero on either side of
// the bound. A view between them does not matter.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<10x3xf32>, %[[W:[a-z0-9]+]]: memref<3x7xf32>, %[[B:[a-z0-9]+]]: memref<7xf32>, %[[Y:[a-z0-9]+]]: memref<10x7xf32>, %[[Z:[a-z0-9]+]]: memref<10x7xf32>)
// CHECK:         %[[PENDING:.*]] = kernel.gemm %[[X]], %[[W]], %[[Y]] bias(%[[B]] : memref<7xf32>) relu sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<workspace(64)>) scratch <320 at 0> : memref<10x3xf32>, memref<3x7xf32>, memref<10x7xf32> -> i1
// CHECK-NEXT:    scf.if %[[PENDING]] {
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[Y]], %[[B]] : memref<10x7xf32>, memref<7xf32>) outs(%[[Y]] : memref<10x7xf32>)
// CHECK:             arith.addf
// CHECK:             arith.maximumf
// CHECK:         %[[VIEW:.*]] = memref.expand_shape %[[Z]]
// CHECK-NEXT:    %[[PENDING:.*]] = kernel.gemm %[[X]], %[[W]], %[[Z]] bias(%[[B]] : memref<7xf32>) sizes
// CHECK-NEXT:    scf.if %[[PENDING]] {
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[B]], %[[VIEW]] : memref<7xf32>, memref<2x5x7xf32>) outs(%[[VIEW]] : memref<2x5x7xf32>)
// CHECK:         %[[PENDING:.*]] = kernel.gemm %[[X]], %[[W]], %[[Y]] relu sizes
// CHECK-NEXT:    scf.if %[[PENDING]] {
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[Y]] : memref<10x7xf32>) outs(%[[Y]] : memref<10x7xf32>)
func.func @in_place(%x: memref<10x3xf32>, %w: memref<3x7xf32>, %b: memref<7xf32>, %y: memref<10x7xf32>, %z: memref<10x7xf32>) {
  %zero = arith.constant 0.0 : f32
  kernel.gemm %x, %w, %y sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<workspace(64)>) scratch <320 at 0> : memref<10x3xf32>, memref<3x7xf32>, memref<10x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<10x7xf32>, memref<7xf32>) outs(%y : memref<10x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %t = arith.addf %s, %c : f32  %r = arith.maximumf %t, %zero : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %z sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<10x3xf32>, memref<3x7xf32>, memref<10x7xf32>
  %v = memref.expand_shape %z [[0, 1], [2]] output_shape [2, 5, 7] : memref<10x7xf32> into memref<2x5x7xf32>
  linalg.generic {indexing_maps = [#column3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b, %v : memref<7xf32>, memref<2x5x7xf32>) outs(%v : memref<2x5x7xf32>) {
    ^bb0(%c: f32, %s: f32, %o: f32): %t = arith.addf %c, %s : f32  linalg.yield %t : f32 }
  kernel.gemm %x, %w, %y sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<10x3xf32>, memref<3x7xf32>, memref<10x7xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : memref<10x7xf32>) outs(%y : memref<10x7xf32>) {
    ^bb0(%s: f32, %o: f32): %r = arith.maximumf %zero, %s : f32  linalg.yield %r : f32 }
  return
}

// -----

#id3 = affine_map<(i, j, k) -> (i, j, k)>
#column3 = affine_map<(i, j, k) -> (k)>

// A product in temporary memory that one op reads is computed where this writes;
// the memory holds another product later.
// CHECK-LABEL: func.func @moved(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<10x3xf32>, %[[W:[a-z0-9]+]]: memref<3x7xf32>, %[[B:[a-z0-9]+]]: memref<7xf32>, %[[Y:[a-z0-9]+]]: memref<2x5x7xf32>
// CHECK:         %[[PENDING:.*]] = kernel.gemm %[[X]], %[[W]], %[[Y]] bias(%[[B]] : memref<7xf32>) sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<10x3xf32>, memref<3x7xf32>, memref<2x5x7xf32> -> i1
// CHECK-NEXT:    scf.if %[[PENDING]] {
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[Y]], %[[B]] : memref<2x5x7xf32>, memref<7xf32>) outs(%[[Y]] : memref<2x5x7xf32>)
func.func @moved(%x: memref<10x3xf32>, %w: memref<3x7xf32>, %b: memref<7xf32>, %y: memref<2x5x7xf32>, %z: memref<2x5x7xf32>, %scratch: memref<1024xi8>) {
  %c512 = arith.constant 512 : index
  %t = memref.view %scratch[%c512][] : memref<1024xi8> to memref<10x7xf32>
  kernel.gemm %x, %w, %t sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<10x3xf32>, memref<3x7xf32>, memref<10x7xf32>
  %v = memref.expand_shape %t [[0, 1], [2]] output_shape [2, 5, 7] : memref<10x7xf32> into memref<2x5x7xf32>
  linalg.generic {indexing_maps = [#id3, #column3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v, %b : memref<2x5x7xf32>, memref<7xf32>) outs(%y : memref<2x5x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %t sizes [10, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<10x3xf32>, memref<3x7xf32>, memref<10x7xf32>
  linalg.copy ins(%v : memref<2x5x7xf32>) outs(%z : memref<2x5x7xf32>)
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// It stays where its result is for others, too, where the op writes to memory
// that the call may use, and where it would overwrite a factor.
// CHECK-LABEL: func.func @not_moved(
// CHECK-NOT:     bias
// CHECK-NOT:     scf.if
func.func @not_moved(%x: memref<7x7xf32>, %w: memref<7x7xf32>, %b: memref<7xf32>, %y: memref<7x7xf32>, %z: memref<7x7xf32>, %scratch: memref<2048xi8>) {
  %zero = arith.constant 0.0 : f32
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %t = memref.view %scratch[%c512][] : memref<2048xi8> to memref<7x7xf32>
  kernel.gemm %x, %w, %t sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  linalg.copy ins(%t : memref<7x7xf32>) outs(%z : memref<7x7xf32>)

  %u = memref.view %scratch[%c512][] : memref<2048xi8> to memref<7x7xf32>
  %r0 = memref.view %scratch[%c1024][] : memref<2048xi8> to memref<7x7xf32>
  kernel.gemm %x, %w, %u sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%u, %b : memref<7x7xf32>, memref<7xf32>) outs(%r0 : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }

  %v = memref.view %scratch[%c512][] : memref<2048xi8> to memref<7x7xf32>
  kernel.gemm %x, %w, %v sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%v, %b : memref<7x7xf32>, memref<7xf32>) outs(%x : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }

  // Only a part of it is overwritten before it is read.
  %half = memref.view %scratch[%c512][] : memref<2048xi8> to memref<3x7xf32>
  %p = memref.view %scratch[%c512][] : memref<2048xi8> to memref<7x7xf32>
  kernel.gemm %x, %w, %p sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  linalg.fill ins(%zero : f32) outs(%half : memref<3x7xf32>)
  linalg.copy ins(%p : memref<7x7xf32>) outs(%z : memref<7x7xf32>)

  // An argument may be read by others, later.
  kernel.gemm %x, %w, %z sizes [7, 7, 7] strides [7, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x7xf32>, memref<7x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%z, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
#swap = affine_map<(i, j) -> (j, i)>

// Other arithmetic, other bounds, a bias per row, the op of another product, one
// that is added to, one of bf16, one that lies by columns, a single row, a batch,
// and the transpose of the product.
// CHECK-LABEL: func.func @none(
// CHECK-NOT:     bias
// CHECK-NOT:     scf.if
func.func @none(%x: memref<7x3xf32>, %w: memref<3x7xf32>, %b: memref<7xf32>, %y: memref<7x7xf32>, %other: memref<7x7xf32>, %h: memref<7x3xbf16>, %g: memref<3x7xbf16>, %one: memref<1x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %negative = arith.constant -0.0 : f32
  %six = arith.constant 6.0 : f32
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.subf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %t = arith.addf %s, %c : f32  %u = arith.maximumf %t, %zero : f32  %r = arith.minimumf %u, %six : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : memref<7x7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %o: f32): %r = arith.maximumf %s, %negative : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : memref<7x7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %o: f32): %r = arith.maxnumf %s, %zero : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%other, %b : memref<7x7xf32>, memref<7xf32>) outs(%other : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] accumulate config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %h, %g, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xbf16>, memref<3x7xbf16>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [1, 7] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %one sizes [1, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<1x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%one, %b : memref<1x7xf32>, memref<7xf32>) outs(%one : memref<1x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 1, 7, 3] strides [3, 3, 1] [0, 7, 1] [7, 7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  kernel.gemm %x, %w, %y sizes [7, 7, 3] strides [3, 1] [7, 1] [7, 1] config(#cuda.gemm<>) : memref<7x3xf32>, memref<3x7xf32>, memref<7x7xf32>
  linalg.generic {indexing_maps = [#swap, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : memref<7x7xf32>, memref<7xf32>) outs(%y : memref<7x7xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32): %r = arith.addf %s, %c : f32  linalg.yield %r : f32 }
  return
}
