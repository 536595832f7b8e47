// RUN: penstock-opt %s --pipeline-bufferize-functions --verify-diagnostics

// The name of the bufferized form is taken.
#id = affine_map<(i) -> (i)>
// expected-error @below {{there is a function @f.kernel already, which is the name of its bufferized form}}
func.func private @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.mulf %a, %a : f32
      linalg.yield %s : f32 } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
func.func private @f.kernel(%x: memref<3xf32>) {
  return
}
