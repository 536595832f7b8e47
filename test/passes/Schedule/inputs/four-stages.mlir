// Level `training`: four stages; a value of the first goes to the last as well,
// past the two between.
!h = tensor<5x7xf32>
!y = tensor<5xi64>
!l = tensor<f32>
!w = tensor<7x7xf32>
pipeline.stage @s0
pipeline.stage @s1
pipeline.stage @s2
pipeline.stage @s3
pipeline.channel @x : [!h] source(input "x")
pipeline.channel @labels : [!y] source(labels)
pipeline.channel @loss : [!l] sink(loss)
pipeline.channel @h1 : [!h]
pipeline.channel @dh1 : [!h]
pipeline.channel @h2 : [!h]
pipeline.channel @dh2 : [!h]
pipeline.channel @h3 : [!h]
pipeline.channel @dh3 : [!h]
pipeline.channel @skip : [!h]
pipeline.channel @dskip : [!h]
pipeline.channel @s0.residuals : [!h, !h]
pipeline.variable @w0 : !w parameter of @s0 init <"mlp.onnx", 118, 196>
pipeline.variable @w0.grad : !w gradient of @s0
pipeline.channel @s1.residuals : [!h, !h]
pipeline.variable @w1 : !w parameter of @s1 init <"mlp.onnx", 318, 196>
pipeline.variable @w1.grad : !w gradient of @s1
pipeline.channel @s2.residuals : [!h, !h]
pipeline.variable @w2 : !w parameter of @s2 init <"mlp.onnx", 518, 196>
pipeline.variable @w2.grad : !w gradient of @s2
pipeline.channel @s3.residuals : [!h, !h]
pipeline.variable @w3 : !w parameter of @s3 init <"mlp.onnx", 718, 196>
pipeline.variable @w3.grad : !w gradient of @s3
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : !h
  %w = pipeline.read @w0 : !w
  %h = func.call @s0.forward(%x, %w) : (!h, !w) -> !h
  pipeline.put %h to @h1 : !h
  pipeline.put %h to @skip : !h
  pipeline.put %x, %h to @s0.residuals : !h, !h
}
pipeline.task @s0.B backward of @s0(%k) {
  %d = pipeline.take @dh1 : !h
  %ds = pipeline.take @dskip : !h
  %x, %r = pipeline.take @s0.residuals : !h, !h
  %g = pipeline.read @w0.grad : !w
  %n = func.call @s0.backward(%d, %ds, %x, %r, %g) : (!h, !h, !h, !h, !w) -> (!w)
  pipeline.write %n to @w0.grad : !w
}
pipeline.task @s0.U update of @s0(%t) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w = pipeline.read @w0 : !w
  %g = pipeline.read @w0.grad : !w
  %n, %z = func.call @sgd.7x7(%w, %g, %lr) : (!w, !w, f32) -> (!w, !w)
  pipeline.write %n to @w0 : !w
  pipeline.write %z to @w0.grad : !w
}
pipeline.task @s1.F forward of @s1(%k) {
  %x = pipeline.take @h1 : !h
  %w = pipeline.read @w1 : !w
  %h = func.call @s1.forward(%x, %w) : (!h, !w) -> !h
  pipeline.put %h to @h2 : !h
  pipeline.put %x, %h to @s1.residuals : !h, !h
}
pipeline.task @s1.B backward of @s1(%k) {
  %d = pipeline.take @dh2 : !h
  %x, %r = pipeline.take @s1.residuals : !h, !h
  %w = pipeline.read @w1 : !w
  %g = pipeline.read @w1.grad : !w
  %dx, %n = func.call @s1.backward(%d, %x, %r, %w, %g) : (!h, !h, !h, !w, !w) -> (!h, !w)
  pipeline.put %dx to @dh1 : !h
  pipeline.write %n to @w1.grad : !w
}
pipeline.task @s1.U update of @s1(%t) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w = pipeline.read @w1 : !w
  %g = pipeline.read @w1.grad : !w
  %n, %z = func.call @sgd.7x7(%w, %g, %lr) : (!w, !w, f32) -> (!w, !w)
  pipeline.write %n to @w1 : !w
  pipeline.write %z to @w1.grad : !w
}
pipeline.task @s2.F forward of @s2(%k) {
  %x = pipeline.take @h2 : !h
  %w = pipeline.read @w2 : !w
  %h = func.call @s2.forward(%x, %w) : (!h, !w) -> !h
  pipeline.put %h to @h3 : !h
  pipeline.put %x, %h to @s2.residuals : !h, !h
}
pipeline.task @s2.B backward of @s2(%k) {
  %d = pipeline.take @dh3 : !h
  %x, %r = pipeline.take @s2.residuals : !h, !h
  %w = pipeline.read @w2 : !w
  %g = pipeline.read @w2.grad : !w
  %dx, %n = func.call @s2.backward(%d, %x, %r, %w, %g) : (!h, !h, !h, !w, !w) -> (!h, !w)
  pipeline.put %dx to @dh2 : !h
  pipeline.write %n to @w2.grad : !w
}
pipeline.task @s2.U update of @s2(%t) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w = pipeline.read @w2 : !w
  %g = pipeline.read @w2.grad : !w
  %n, %z = func.call @sgd.7x7(%w, %g, %lr) : (!w, !w, f32) -> (!w, !w)
  pipeline.write %n to @w2 : !w
  pipeline.write %z to @w2.grad : !w
}
pipeline.task @s3.F forward of @s3(%k) {
  %x = pipeline.take @h3 : !h
  %y = pipeline.take @labels : !y
  %s = pipeline.take @skip : !h
  %w = pipeline.read @w3 : !w
  %l, %r = func.call @s3.forward(%x, %w, %y, %s) : (!h, !w, !y, !h) -> (!l, !h)
  pipeline.put %l to @loss : !l
  pipeline.put %x, %r to @s3.residuals : !h, !h
}
pipeline.task @s3.B backward of @s3(%k) {
  %x, %r = pipeline.take @s3.residuals : !h, !h
  %w = pipeline.read @w3 : !w
  %g = pipeline.read @w3.grad : !w
  %dx, %dsk, %n = func.call @s3.backward(%x, %r, %w, %g) : (!h, !h, !w, !w) -> (!h, !h, !w)
  pipeline.put %dx to @dh3 : !h
  pipeline.put %dsk to @dskip : !h
  pipeline.write %n to @w3.grad : !w
}
pipeline.task @s3.U update of @s3(%t) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w = pipeline.read @w3 : !w
  %g = pipeline.read @w3.grad : !w
  %n, %z = func.call @sgd.7x7(%w, %g, %lr) : (!w, !w, f32) -> (!w, !w)
  pipeline.write %n to @w3 : !w
  pipeline.write %z to @w3.grad : !w
}
func.func private @s0.backward(!h, !h, !h, !h, !w) -> (!w)
func.func private @s0.forward(!h, !w) -> !h
func.func private @s1.backward(!h, !h, !h, !w, !w) -> (!h, !w)
func.func private @s1.forward(!h, !w) -> !h
func.func private @s2.backward(!h, !h, !h, !w, !w) -> (!h, !w)
func.func private @s2.forward(!h, !w) -> !h
func.func private @s3.backward(!h, !h, !w, !w) -> (!h, !h, !w)
func.func private @s3.forward(!h, !w, !y, !h) -> (!l, !h)
func.func private @sgd.7x7(!w, !w, f32) -> (!w, !w)
