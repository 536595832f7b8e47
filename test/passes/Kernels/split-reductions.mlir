// RUN: penstock-opt %s --pipeline-split-reductions --split-input-file | FileCheck %s
// RUN: sed 's/target<"sm_90">/target<"sm_90" plain(true)>/' %s > %t.mlir
// RUN: penstock-opt %t.mlir --pipeline-split-reductions --split-input-file | FileCheck %s --check-prefix=PLAIN

// PLAIN-NOT: expand_shape

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// 512 rows are 32 of 16 each; a thread of each column adds up the 32.
// CHECK-LABEL: func.func @columns(
// CHECK-DAG:     %[[Y:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<512x128xf32> into tensor<32x16x128xf32>
// CHECK-DAG:     %[[Z:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<32x128xf32>)
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ["parallel", "reduction", "parallel"]} ins(%[[Y]] : tensor<32x16x128xf32>) outs(%[[Z]] : tensor<32x128xf32>)
// CHECK:           arith.addf
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ["reduction", "parallel"]} ins(%[[P]] : tensor<32x128xf32>) outs(%arg1 : tensor<128xf32>)
// CHECK:           arith.addf
// CHECK:         return %[[R]]
func.func @columns(%x: tensor<512x128xf32>, %s: tensor<128xf32>) -> tensor<128xf32> attributes {pipeline.target = #cuda.target<"sm_90">} {
  %r = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<512x128xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> tensor<128xf32>
  return %r : tensor<128xf32>
}

// -----

#id = affine_map<(n, i, j) -> (n, i, j)>
#column = affine_map<(n, i, j) -> (j)>

// A sum of 2048 x 32 takes three steps: the second one would be long, too. The
// elementwise result comes along; numbers of iterations are what they were.
// CHECK-LABEL: func.func @steps(
// CHECK:         %[[Y:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<1024x2x32x128xf32>
// CHECK:         %[[R:.*]]:2 = linalg.generic {{.*}} ["parallel", "reduction", "reduction", "parallel"]} ins(%[[Y]] : {{.*}} outs(%{{.*}}, %{{.*}} : tensor<1024x2x32x128xf32>, tensor<1024x128xf32>)
// CHECK-DAG:       %[[WITHIN:.*]] = linalg.index 1
// CHECK-DAG:       %[[PART:.*]] = linalg.index 0
// CHECK:           %[[BEGIN:.*]] = arith.muli %[[PART]], %c2
// CHECK:           %[[N:.*]] = arith.addi %[[WITHIN]], %[[BEGIN]]
// CHECK:           arith.index_cast %[[N]]
// CHECK-DAG:     tensor.collapse_shape %[[R]]#0
// CHECK-DAG:     %[[Q:.*]] = tensor.expand_shape %[[R]]#1 {{.*}} into tensor<64x16x128xf32>
// CHECK:         linalg.generic {{.*}} ["parallel", "reduction", "parallel"]} ins(%[[Q]] :
// CHECK:         linalg.generic {{.*}} ["reduction", "parallel"]} ins(%{{.*}} : tensor<64x128xf32>) outs(%arg1 :
func.func @steps(%x: tensor<2048x32x128xf32>, %s: tensor<128xf32>) -> (tensor<2048x32x128xf32>, tensor<128xf32>) attributes {pipeline.target = #cuda.target<"sm_90">} {
  %e = tensor.empty() : tensor<2048x32x128xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #column], iterator_types = ["reduction", "reduction", "parallel"]}
    ins(%x : tensor<2048x32x128xf32>) outs(%e, %s : tensor<2048x32x128xf32>, tensor<128xf32>) {
    ^bb0(%a: f32, %p: f32, %o: f32):
      %n = linalg.index 0 : index
      %i = arith.index_cast %n : index to i32
      %f = arith.sitofp %i : i32 to f32
      %b = arith.mulf %a, %f : f32
      %r = arith.addf %b, %o : f32
      linalg.yield %b, %r : f32, f32 } -> (tensor<2048x32x128xf32>, tensor<128xf32>)
  return %r#0, %r#1 : tensor<2048x32x128xf32>, tensor<128xf32>
}

// -----

#id = affine_map<(n, c, w) -> (n, c, w)>
#channel = affine_map<(n, c, w) -> (c)>

// Along memory, samples are the parts as they are.
// CHECK-LABEL: func.func @channels(
// CHECK-NOT:     tensor.expand_shape
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<16x5x2099xf32>) outs(%{{.*}} : tensor<16x5xf32>)
// CHECK:         linalg.generic {{.*}} ["reduction", "parallel"]} ins(%[[P]] : tensor<16x5xf32>) outs(%arg1 : tensor<5xf32>)
func.func @channels(%x: tensor<16x5x2099xf32>, %s: tensor<5xf32>) -> tensor<5xf32> attributes {pipeline.target = #cuda.target<"sm_90">} {
  %r = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
    ins(%x : tensor<16x5x2099xf32>) outs(%s : tensor<5xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.maximumf %a, %o : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// Short sums, primes, sums whose parts cannot be joined, and other targets.
// CHECK-LABEL: func.func @whole(
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK-LABEL: func.func @processor(
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
func.func @whole(%x: tensor<120x128xf32>, %p: tensor<131x128xf32>, %y: tensor<5x16384xf32>, %z: tensor<512x128xf32>, %s: tensor<128xf32>, %t: tensor<5xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<5xf32>, tensor<128xf32>) attributes {pipeline.target = #cuda.target<"sm_90">} {
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<120x128xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> tensor<128xf32>
  %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%p : tensor<131x128xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> tensor<128xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<5x16384xf32>) outs(%t : tensor<5xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> tensor<5xf32>
  %3 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%z : tensor<512x128xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %o: f32): %q = arith.mulf %o, %o : f32  %r = arith.addf %a, %q : f32  linalg.yield %r : f32 } -> tensor<128xf32>
  return %0, %1, %2, %3 : tensor<128xf32>, tensor<128xf32>, tensor<5xf32>, tensor<128xf32>
}
func.func @processor(%z: tensor<512x128xf32>, %s: tensor<128xf32>) -> tensor<128xf32> attributes {pipeline.target = #cpu.target<>} {
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%z : tensor<512x128xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> tensor<128xf32>
  return %0 : tensor<128xf32>
}
