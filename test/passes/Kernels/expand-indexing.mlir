// RUN: penstock-opt %s --nn-expand-composites | FileCheck %s
// RUN: penstock-opt %s --nn-expand-composites --pipeline-bufferize-functions | FileCheck %s --check-prefix=BUFFERS

// A row of an embedding is one vector loop. An index from the end counts, one out
// of range reads some row and gives NaN.
// CHECK-LABEL: func @rows
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[OUT:.*]] = %{{.*}})
// CHECK:           %[[ID:.*]] = tensor.extract %arg1[%[[I]]]
// CHECK:           %[[AT:.*]] = arith.minsi
// CHECK:           tensor.extract_slice %arg0[%[[AT]], 0] [1, 8] [1, 1] : tensor<11x8xf32> to tensor<8xf32>
// CHECK:           linalg.generic
// CHECK:             arith.select %[[VALID:.*]], %{{.*}}, %{{.*}} : f32
// CHECK:           tensor.insert_slice %{{.*}} into %[[OUT]][%[[I]], 0] [1, 8] [1, 1]
// BUFFERS-LABEL: func private @rows.kernel
// BUFFERS-NOT:     memref.copy
// BUFFERS-NOT:     memref.alloc
// BUFFERS:       linalg.generic {{.*}} ins(%{{.*}} : memref<8xf32, strided<[1], offset: ?>>) outs(%{{.*}} : memref<8xf32, strided<[1], offset: ?>>)
func.func @rows(%x: tensor<11x8xf32>, %i: tensor<5xi64>) -> tensor<5x8xf32> {
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<11x8xf32>, tensor<5xi64> -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// Its derivative adds into the accumulator that is there.
// CHECK-LABEL: func @add_rows
// CHECK:         scf.for %[[I:.*]] = %{{.*}} iter_args(%[[SUM:.*]] = %arg2)
// CHECK:           tensor.extract_slice %[[SUM]]
// CHECK:           arith.addf
// CHECK:           tensor.insert_slice %{{.*}} into %[[SUM]]
// BUFFERS-LABEL: func private @add_rows.kernel
// BUFFERS-NOT:     memref.copy
// BUFFERS-NOT:     memref.alloc
// BUFFERS:       linalg.generic {{.*}} ins(%{{.*}} : memref<8xf32, strided<[1], offset: ?>>) outs(%{{.*}} : memref<8xf32, strided<[1], offset: ?>>)
func.func @add_rows(%dy: tensor<5x8xf32>, %i: tensor<5xi64>, %sum: tensor<11x8xf32> {pipeline.into = 0 : i64}) -> tensor<11x8xf32> {
  %y = nn.scatter add %dy into %sum[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<5x8xf32>, tensor<11x8xf32>, tensor<5xi64>
  return %y : tensor<11x8xf32>
}

// Without rows, a gather is one generic.
// CHECK-LABEL: func @elements
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<5x2xi64>)
// CHECK:           tensor.extract %arg0[%{{.*}}, %{{.*}}] : tensor<5x7xf32>
func.func @elements(%x: tensor<5x7xf32>, %i: tensor<5x2xi64>) -> tensor<5x2xf32> {
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (i, s)>
       index_maps [affine_map<(i, j) -> (i, j)>]
     : tensor<5x7xf32>, tensor<5x2xi64> -> tensor<5x2xf32>
  return %y : tensor<5x2xf32>
}

// Updates of single elements stay in their order.
// CHECK-LABEL: func @add_elements
// CHECK:         linalg.copy ins(%arg1 : tensor<5x7xf32>)
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[OLD:.*]] = tensor.extract
// CHECK:             arith.addf
// CHECK:             tensor.insert
func.func @add_elements(%u: tensor<5x2xf32>, %x: tensor<5x7xf32>, %i: tensor<5x2xi64>) -> tensor<5x7xf32> {
  %y = nn.scatter add %u into %x[%i] at affine_map<(i, j)[s] -> (i, s)>
       index_maps [affine_map<(i, j) -> (i, j)>]
     : tensor<5x2xf32>, tensor<5x7xf32>, tensor<5x2xi64>
  return %y : tensor<5x7xf32>
}

// No position is in an axis without elements.
// CHECK-LABEL: func @nowhere
// CHECK:         %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK:         linalg.fill ins(%[[NAN]] : f32)
func.func @nowhere(%x: tensor<0x8xf32>, %i: tensor<5xi64>) -> tensor<5x8xf32> {
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<0x8xf32>, tensor<5xi64> -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
