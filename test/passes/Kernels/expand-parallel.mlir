// RUN: penstock-opt %s --nn-expand-composites | FileCheck %s

// Where each iteration is a thread, what is a loop over rows elsewhere is one op
// over all elements.

// CHECK-DAG: #[[$ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$REVERSED:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 6)>
// CHECK-DAG: #[[$AXIS:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$LINE:.*]] = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @gather
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic {indexing_maps = [#[[$LINE]], #[[$ALL]]], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<5xi64>)
// CHECK:           %[[J:.*]] = linalg.index 1 : index
// CHECK:           %[[AT:.*]] = arith.minsi
// CHECK:           tensor.extract %arg0[%[[AT]], %[[J]]] : tensor<11x8xf32>
// CHECK-NOT:     scf.for
func.func @gather(%x: tensor<11x8xf32>, %i: tensor<5xi64>) -> tensor<5x8xf32>
    attributes {pipeline.target = #cuda.target<"sm_90">} {
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<11x8xf32>, tensor<5xi64> -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// Each element looks for the windows that it is the maximum of: the third one of
// a window in its first window, and so on.
// CHECK-LABEL: func.func @pooling
// CHECK-SAME:    (%[[DY:.*]]: tensor<2x3x4xf32>, %[[AT:.*]]: tensor<2x3x4xi32>)
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic {{{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%{{.*}} : tensor<3xf32>) outs(%{{.*}} : tensor<2x3x7xf32>)
// CHECK:           %[[POSITION:.*]] = linalg.index 2
// CHECK:           %[[L:.*]] = linalg.index 3
// CHECK:           %[[K:.*]] = arith.subi %c2, %[[L]]
// CHECK:           tensor.extract %[[AT]]
// CHECK:           arith.cmpi eq
// CHECK:           tensor.extract %[[DY]]
// CHECK:           arith.addf
func.func @pooling(%dy: tensor<2x3x4xf32>, %i: tensor<2x3x4xi32>) -> tensor<2x3x7xf32>
    attributes {pipeline.target = #cuda.target<"sm_90">} {
  %dx = nn.max_pool_grad %dy, %i window [3] strides [2] dilations [1] pads [1]
      : tensor<2x3x4xf32>, tensor<2x3x4xi32> -> tensor<2x3x7xf32>
  return %dx : tensor<2x3x7xf32>
}

// The sum so far is a result of its own, of which the last value is not used.
// CHECK-LABEL: func.func @sums
// CHECK-SAME:    (%[[X:.*]]: tensor<5x7xf32>)
// CHECK:         %[[LENGTH:.*]] = tensor.empty() : tensor<7xf32>
// CHECK:         %[[Y:.*]]:2 = linalg.generic {indexing_maps = [#[[$REVERSED]], #[[$AXIS]], #[[$REVERSED]], #[[$LINE]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[LENGTH]] : {{.*}}) outs(%{{.*}}, %{{.*}} : tensor<5x7xf32>, tensor<5xf32>)
// CHECK:         ^bb0(%[[V:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %[[BEFORE:.*]]: f32):
// CHECK:           %[[SUM:.*]] = arith.addf %[[BEFORE]], %[[V]]
// CHECK:           linalg.yield %[[BEFORE]], %[[SUM]]
// CHECK:         return %[[Y]]#0
func.func @sums(%x: tensor<5x7xf32>) -> tensor<5x7xf32>
    attributes {pipeline.target = #cuda.target<"sm_90">} {
  %y = nn.cumulative_sum %x dim(1) exclusive reverse : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// A long line in 32 parts of 32 elements, the last of which has 8; then the sums
// of parts, and both added. Sums from the end begin at the last element.
// CHECK-LABEL: func.func @few_sums
// CHECK-SAME:    (%[[X:.*]]: tensor<1000xf32>)
// CHECK:         %[[P:.*]]:2 = linalg.generic {{.*}} ["parallel", "reduction"]} outs(%{{.*}}, %{{.*}} : tensor<32x32xf32>, tensor<32xf32>)
// CHECK:           %[[AT:.*]] = arith.minsi %{{.*}}, %c999
// CHECK:           %[[FROM:.*]] = arith.subi %c999{{.*}}, %[[AT]]
// CHECK:           tensor.extract %[[X]][%[[FROM]]]
// CHECK:           arith.select
// CHECK:           arith.addf
// CHECK:         %[[B:.*]]:2 = linalg.generic {{.*}} ["reduction"]} ins(%[[P]]#1, %{{.*}} : tensor<32xf32>, tensor<32xf32>)
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ["parallel"]} outs(%{{.*}} : tensor<1000xf32>)
// CHECK-DAG:       tensor.extract %[[B]]#0
// CHECK-DAG:       tensor.extract %[[P]]#0
// CHECK:           arith.addf
// CHECK:         return %[[Y]]
func.func @few_sums(%x: tensor<1000xf32>) -> tensor<1000xf32>
    attributes {pipeline.target = #cuda.target<"sm_90">} {
  %y = nn.cumulative_sum %x dim(0) reverse : tensor<1000xf32>
  return %y : tensor<1000xf32>
}

// The rank of each element of a few lines, and the element of each rank. A
// thread of each of many lines finds one place after the other.
// CHECK-LABEL: func.func @few_places
// CHECK-SAME:    (%[[X:.*]]: tensor<3x100xf32>)
// CHECK-NOT:     scf.for
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[X]] : {{.*}} outs(%{{.*}} : tensor<3x100xi64>)
// CHECK:           arith.extui
// CHECK:           arith.addi
// CHECK:         %[[I:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "reduction"]} ins(%[[R]] : tensor<3x100xi64>) outs(%{{.*}} : tensor<3x5xi64>)
// CHECK:           arith.maxsi
// CHECK:         return %[[I]]
// CHECK-LABEL: func.func @many_places
// CHECK-COUNT-3: scf.for
func.func @few_places(%x: tensor<3x100xf32>) -> tensor<3x5xi64>
    attributes {pipeline.target = #cuda.target<"sm_90">} {
  %i = nn.top_k %x dim(1) : tensor<3x100xf32> -> tensor<3x5xi64>
  return %i : tensor<3x5xi64>
}
func.func @many_places(%x: tensor<4000x100xf32>) -> tensor<4000x5xi64>
    attributes {pipeline.target = #cuda.target<"sm_90">} {
  %i = nn.top_k %x dim(1) : tensor<4000x100xf32> -> tensor<4000x5xi64>
  return %i : tensor<4000x5xi64>
}
