// Level `training`: two hidden layers without bias, cut after the second.
!x = tensor<5x7xf32>
!h1 = tensor<5x11xf32>
!h2 = tensor<5x13xf32>
!z = tensor<5x3xf32>
!y = tensor<5xi64>
!l = tensor<f32>
!n = tensor<i64>
!w1 = tensor<7x11xf32>
!w2 = tensor<11x13xf32>
!w3 = tensor<13x3xf32>

pipeline.stage @s0
pipeline.stage @s1
pipeline.channel @x : [!x] source(input "x")
pipeline.channel @labels : [!y] source(labels)
pipeline.channel @loss : [!l] sink(loss)
pipeline.channel @correct : [!n] sink(correct)
pipeline.channel @count : [!n] sink(count)
pipeline.channel @h2 : [!h2]
pipeline.channel @dh2 : [!h2]
pipeline.channel @s0.residuals : [!x, !h1, !h2]
pipeline.channel @s1.residuals : [!h2, !z, !y]
pipeline.variable @fc1 : !w1 parameter of @s0 init <"mlp.onnx", 118, 308>
pipeline.variable @fc2 : !w2 parameter of @s0 init <"mlp.onnx", 447, 572>
pipeline.variable @fc3 : !w3 parameter of @s1 init <"mlp.onnx", 1040, 156>
pipeline.variable @fc1.grad : !w1 gradient of @s0
pipeline.variable @fc2.grad : !w2 gradient of @s0
pipeline.variable @fc3.grad : !w3 gradient of @s1

pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : !x
  %w1 = pipeline.read @fc1 : !w1
  %w2 = pipeline.read @fc2 : !w2
  %h2, %h1 = func.call @s0.forward(%x, %w1, %w2) : (!x, !w1, !w2) -> (!h2, !h1)
  pipeline.put %h2 to @h2 : !h2
  pipeline.put %x, %h1, %h2 to @s0.residuals : !x, !h1, !h2
}
pipeline.task @s0.B backward of @s0(%k) {
  %dh2 = pipeline.take @dh2 : !h2
  %x, %h1, %h2 = pipeline.take @s0.residuals : !x, !h1, !h2
  %w2 = pipeline.read @fc2 : !w2
  %g1 = pipeline.read @fc1.grad : !w1
  %g2 = pipeline.read @fc2.grad : !w2
  %n1, %n2 = func.call @s0.backward(%dh2, %x, %h1, %h2, %w2, %g1, %g2)
    : (!h2, !x, !h1, !h2, !w2, !w1, !w2) -> (!w1, !w2)
  pipeline.write %n1 to @fc1.grad : !w1
  pipeline.write %n2 to @fc2.grad : !w2
}
pipeline.task @s0.U update of @s0(%t) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w1 = pipeline.read @fc1 : !w1
  %g1 = pipeline.read @fc1.grad : !w1
  %n1, %c1 = func.call @sgd.7x11(%w1, %g1, %lr) : (!w1, !w1, f32) -> (!w1, !w1)
  pipeline.write %n1 to @fc1 : !w1
  pipeline.write %c1 to @fc1.grad : !w1
  %w2 = pipeline.read @fc2 : !w2
  %g2 = pipeline.read @fc2.grad : !w2
  %n2, %c2 = func.call @sgd.11x13(%w2, %g2, %lr) : (!w2, !w2, f32) -> (!w2, !w2)
  pipeline.write %n2 to @fc2 : !w2
  pipeline.write %c2 to @fc2.grad : !w2
}
pipeline.task @s0.E evaluate of @s0(%k) {
  %x = pipeline.take @x : !x
  %w1 = pipeline.read @fc1 : !w1
  %w2 = pipeline.read @fc2 : !w2
  %h2 = func.call @s0.evaluate(%x, %w1, %w2) : (!x, !w1, !w2) -> !h2
  pipeline.put %h2 to @h2 : !h2
}
pipeline.task @s1.F forward of @s1(%k) {
  %h2 = pipeline.take @h2 : !h2
  %y = pipeline.take @labels : !y
  %w3 = pipeline.read @fc3 : !w3
  %l, %p = func.call @s1.forward(%h2, %y, %w3) : (!h2, !y, !w3) -> (!l, !z)
  pipeline.put %l to @loss : !l
  pipeline.put %h2, %p, %y to @s1.residuals : !h2, !z, !y
}
pipeline.task @s1.B backward of @s1(%k) {
  %h2, %p, %y = pipeline.take @s1.residuals : !h2, !z, !y
  %w3 = pipeline.read @fc3 : !w3
  %g3 = pipeline.read @fc3.grad : !w3
  %dh2, %n3 = func.call @s1.backward(%h2, %p, %y, %w3, %g3)
    : (!h2, !z, !y, !w3, !w3) -> (!h2, !w3)
  pipeline.put %dh2 to @dh2 : !h2
  pipeline.write %n3 to @fc3.grad : !w3
}
pipeline.task @s1.U update of @s1(%t) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w3 = pipeline.read @fc3 : !w3
  %g3 = pipeline.read @fc3.grad : !w3
  %n3, %c3 = func.call @sgd.13x3(%w3, %g3, %lr) : (!w3, !w3, f32) -> (!w3, !w3)
  pipeline.write %n3 to @fc3 : !w3
  pipeline.write %c3 to @fc3.grad : !w3
}
pipeline.task @s1.E evaluate of @s1(%k) {
  %h2 = pipeline.take @h2 : !h2
  %y = pipeline.take @labels : !y
  %w3 = pipeline.read @fc3 : !w3
  %l, %c, %n = func.call @s1.evaluate(%h2, %y, %w3)
    : (!h2, !y, !w3) -> (!l, !n, !n)
  pipeline.put %l to @loss : !l
  pipeline.put %c to @correct : !n
  pipeline.put %n to @count : !n
}
func.func private @s0.forward(!x, !w1, !w2) -> (!h2, !h1)
func.func private @s0.backward(!h2, !x, !h1, !h2, !w2, !w1, !w2) -> (!w1, !w2)
func.func private @s0.evaluate(!x, !w1, !w2) -> !h2
func.func private @s1.forward(!h2, !y, !w3) -> (!l, !z)
func.func private @s1.backward(!h2, !z, !y, !w3, !w3) -> (!h2, !w3)
func.func private @s1.evaluate(!h2, !y, !w3) -> (!l, !n, !n)
func.func private @sgd.7x11(!w1, !w1, f32) -> (!w1, !w1)
func.func private @sgd.11x13(!w2, !w2, f32) -> (!w2, !w2)
func.func private @sgd.13x3(!w3, !w3, f32) -> (!w3, !w3)
