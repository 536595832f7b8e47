// Two hidden layers without bias, cut after the second Relu.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>
!h1 = tensor<5x11xf32>
!h2 = tensor<5x13xf32>
!z = tensor<5x3xf32>
!y = tensor<5xi64>
!l = tensor<f32>
!w1 = tensor<7x11xf32>
!w2 = tensor<11x13xf32>
!w3 = tensor<13x3xf32>
pipeline.stage @s0
pipeline.stage @s1
pipeline.channel @x : [!x] source(input "x")
pipeline.channel @labels : [!y] source(labels)
pipeline.channel @loss : [!l] sink(loss)
pipeline.channel @h2 : [!h2]
pipeline.variable @fc1 : !w1 parameter of @s0 init <"mlp.onnx", 118, 308>
pipeline.variable @fc2 : !w2 parameter of @s0 init <"mlp.onnx", 447, 572>
pipeline.variable @fc3 : !w3 parameter of @s1 init <"mlp.onnx", 1040, 156>
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : !x
  %w1 = pipeline.read @fc1 : !w1
  %w2 = pipeline.read @fc2 : !w2
  %h2 = func.call @s0.forward(%x, %w1, %w2) : (!x, !w1, !w2) -> !h2
  pipeline.put %h2 to @h2 : !h2
}
pipeline.task @s1.F forward of @s1(%k) {
  %h2 = pipeline.take @h2 : !h2
  %y = pipeline.take @labels : !y
  %w3 = pipeline.read @fc3 : !w3
  %l = func.call @s1.forward(%h2, %y, %w3) : (!h2, !y, !w3) -> !l
  pipeline.put %l to @loss : !l
}
func.func private @s0.forward(%x: !x, %w1: !w1, %w2: !w2) -> !h2 {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : !h1
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !h1) -> !h1
  %a1 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w1 : !x, !w1) outs(%z1 : !h1) -> !h1
  %h1 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%a1 : !h1) {
  ^bb0(%a: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> !h1
  %e2 = tensor.empty() : !h2
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : !h2) -> !h2
  %a2 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%h1, %w2 : !h1, !w2) outs(%z2 : !h2) -> !h2
  %h2 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%a2 : !h2) {
  ^bb0(%a: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> !h2
  return %h2 : !h2
}
func.func private @s1.forward(%h2: !h2, %y: !y, %w3: !w3) -> !l {
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty() : !z
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : !z) -> !z
  %z = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%h2, %w3 : !h2, !w3) outs(%z3 : !z) -> !z
  %l, %p = nn.cross_entropy %z, %y : (!z, !y) -> (!l, !z)
  return %l : !l
}
