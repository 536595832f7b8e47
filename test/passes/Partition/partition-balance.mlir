// RUN: penstock-opt %s --pipeline-partition=stages=2 | FileCheck %s
// RUN: penstock-opt %s --pipeline-partition='stages=2 targets=[#cpu.target<>,#cuda.target<"sm_90">]' | FileCheck %s
// RUN: penstock-opt %s --pipeline-partition='stages=2 targets=[#cuda.target<"sm_90">,#cpu.target<>]' | FileCheck %s --check-prefix=LAST

// Three products, the first as heavy as the other two: the dynamic program cuts
// after it. Where a GPU comes first, the CPU behind it has the least.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
pipeline.stage @model
pipeline.channel @x : [tensor<64x600xf32>] source(input "x")
pipeline.channel @loss : [tensor<64x300xf32>] sink(loss)
pipeline.variable @w1 : tensor<600x600xf32> parameter of @model init <"m.onnx", 8, 1440000>
pipeline.variable @w2 : tensor<600x300xf32> parameter of @model init <"m.onnx", 1440008, 720000>
pipeline.variable @w3 : tensor<300x300xf32> parameter of @model init <"m.onnx", 2160008, 360000>
pipeline.task @model.F forward of @model(%k) {
  %x = pipeline.take @x : tensor<64x600xf32>
  %w1 = pipeline.read @w1 : tensor<600x600xf32>
  %w2 = pipeline.read @w2 : tensor<600x300xf32>
  %w3 = pipeline.read @w3 : tensor<300x300xf32>
  %y = func.call @model.forward(%x, %w1, %w2, %w3) : (tensor<64x600xf32>, tensor<600x600xf32>, tensor<600x300xf32>, tensor<300x300xf32>) -> tensor<64x300xf32>
  pipeline.put %y to @loss : tensor<64x300xf32>
}
// CHECK-LABEL: func private @model.forward
// CHECK:         linalg.contract
// CHECK:         pipeline.boundary 1
// CHECK:         linalg.contract
// CHECK:         linalg.contract
// LAST-LABEL: func private @model.forward
// LAST:         linalg.contract
// LAST:         linalg.contract
// LAST:         pipeline.boundary 1
// LAST:         linalg.contract
func.func private @model.forward(%x: tensor<64x600xf32>, %w1: tensor<600x600xf32>, %w2: tensor<600x300xf32>, %w3: tensor<300x300xf32>) -> tensor<64x300xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<64x600xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x600xf32>) -> tensor<64x600xf32>
  %e2 = tensor.empty() : tensor<64x300xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x300xf32>) -> tensor<64x300xf32>
  %1 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w1 : tensor<64x600xf32>, tensor<600x600xf32>) outs(%z1 : tensor<64x600xf32>) -> tensor<64x600xf32> loc("a")
  %2 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%1, %w2 : tensor<64x600xf32>, tensor<600x300xf32>) outs(%z2 : tensor<64x300xf32>) -> tensor<64x300xf32> loc("b")
  %3 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%2, %w3 : tensor<64x300xf32>, tensor<300x300xf32>) outs(%z2 : tensor<64x300xf32>) -> tensor<64x300xf32> loc("c")
  return %3 : tensor<64x300xf32>
}
