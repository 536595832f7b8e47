// Many slices of one tensor, as a recurrence makes them. The line SLICES stands for
// 16 of %x, and for what puts them into a tensor as they are computed.

// RUN: awk '!/^  SLICES/ { print; next } { for (i = 0; i < 16; ++i) { \
// RUN:     print "%%x" i " = tensor.extract_slice %%x[" 2 * i ", 0] [2, 3] [1, 1] : tensor<32x3xf32> to !s"; \
// RUN:     print "%%n" i " = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\"]}"; \
// RUN:     print "ins(%%x" i " : !s) outs(%%e : !s) { ^bb0(%%a: f32, %%o: f32):"; \
// RUN:     print "%%r = arith.negf %%a : f32 linalg.yield %%r : f32 } -> !s" } \
// RUN:   for (i = 0; i < 16; ++i) \
// RUN:     print "%%w" i " = tensor.insert_slice %%n" i " into " (i ? "%%w" i - 1 : $2) \
// RUN:       "[" 2 * i ", 0] [2, 3] [1, 1] : !s into " $4 }' %s > %t.mlir
// RUN: penstock-opt %t.mlir --pipeline-bufferize-functions | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
!s = tensor<2x3xf32>

// Each is computed in its place of the result, one that is a result as well is
// copied there.
// CHECK-LABEL: func.func private @assemble.kernel(
// CHECK-SAME:    %[[X:[^:]*]]: memref<32x3xf32>, %[[WHOLE:[^:]*]]: memref<32x3xf32>, %[[ONE:[^:]*]]: memref<2x3xf32>) {
// CHECK-NOT:     memref.alloc
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : memref<2x3xf32, strided<[3, 1]>>)
// CHECK-COUNT-14: linalg.generic {{.*}} outs(%{{.*}} : memref<2x3xf32, strided<[3, 1], offset: {{[0-9]+}}>>)
// CHECK:         linalg.generic {{.*}} outs(%[[ONE]] : memref<2x3xf32>)
// CHECK:         linalg.copy ins(%[[ONE]] : memref<2x3xf32>) outs(%{{.*}} : memref<2x3xf32, strided<[3, 1], offset: 90>>)
// CHECK-NOT:     linalg.
// CHECK:         return
func.func private @assemble(%x: tensor<32x3xf32>) -> (tensor<32x3xf32>, !s) {
  %e = tensor.empty() : !s
  %whole = tensor.empty() : tensor<32x3xf32>
  SLICES %whole : tensor<32x3xf32>
  return %w15, %n15 : tensor<32x3xf32>, !s
}

// What the slices leave of a filled tensor is filled before them.
// CHECK-LABEL: func.func private @assemble_filled.kernel(
// CHECK:         linalg.fill {{.*}} outs(%{{.*}} : memref<37x3xf32>)
// CHECK-COUNT-16: linalg.generic {{.*}} outs(%{{.*}} : memref<2x3xf32, strided
// CHECK-NOT:     linalg.copy
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : memref<37x3xf32>)
func.func private @assemble_filled(%x: tensor<32x3xf32>) -> tensor<37x3xf32> {
  %e = tensor.empty() : !s
  %zero = arith.constant 0.0 : f32
  %room = tensor.empty() : tensor<37x3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<37x3xf32>) -> tensor<37x3xf32>
  SLICES %zeros : tensor<37x3xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w15 : tensor<37x3xf32>) outs(%room : tensor<37x3xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.mulf %a, %a : f32  linalg.yield %r : f32 } -> tensor<37x3xf32>
  return %y : tensor<37x3xf32>
}
