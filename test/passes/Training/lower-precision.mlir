// RUN: penstock-opt %s --split-input-file --pipeline-set-training='microbatches=4 precision=bf16' --lower-stages-to-training | FileCheck %s
// RUN: penstock-opt %s --split-input-file --pipeline-set-training='microbatches=4' --lower-stages-to-training | FileCheck %s --check-prefix=F32
// F32-NOT: bf16

// Two layers on two stages: the first product and what follows it are rounded,
// the last product and the loss are not.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
module {
  pipeline.stage @s0
  pipeline.stage @s1
  pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
  pipeline.channel @labels : [tensor<5xi64>] source(labels)
  pipeline.channel @h : [tensor<5x11xf32>]
  pipeline.channel @loss : [tensor<f32>] sink(loss)
  pipeline.variable @w1 : tensor<7x11xf32> parameter of @s0 init <"m.onnx", 100, 308>
  pipeline.variable @b1 : tensor<11xf32> parameter of @s0 init <"m.onnx", 408, 44>
  pipeline.variable @w2 : tensor<11x3xf32> parameter of @s1 init <"m.onnx", 452, 132>
  pipeline.task @s0.F forward of @s0(%k) {
    %x = pipeline.take @x : tensor<5x7xf32>
    %w = pipeline.read @w1 : tensor<7x11xf32>
    %b = pipeline.read @b1 : tensor<11xf32>
    %h = func.call @s0.forward(%x, %w, %b) : (tensor<5x7xf32>, tensor<7x11xf32>, tensor<11xf32>) -> tensor<5x11xf32>
    pipeline.put %h to @h : tensor<5x11xf32>
  }
  pipeline.task @s1.F forward of @s1(%k) {
    %h = pipeline.take @h : tensor<5x11xf32>
    %y = pipeline.take @labels : tensor<5xi64>
    %w = pipeline.read @w2 : tensor<11x3xf32>
    %l = func.call @s1.forward(%h, %y, %w) : (tensor<5x11xf32>, tensor<5xi64>, tensor<11x3xf32>) -> tensor<f32>
    pipeline.put %l to @loss : tensor<f32>
  }
  func.func private @s0.forward(%x: tensor<5x7xf32>, %w: tensor<7x11xf32>, %b: tensor<11xf32>) -> tensor<5x11xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<5x11xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x11xf32>) -> tensor<5x11xf32>
    %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<5x7xf32>, tensor<7x11xf32>) outs(%f : tensor<5x11xf32>) -> tensor<5x11xf32>
    %h = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<5x11xf32>, tensor<11xf32>) outs(%e : tensor<5x11xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
    } -> tensor<5x11xf32>
    return %h : tensor<5x11xf32>
  }
  func.func private @s1.forward(%h: tensor<5x11xf32>, %y: tensor<5xi64>, %w: tensor<11x3xf32>) -> tensor<f32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<5x3xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
    %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%h, %w : tensor<5x11xf32>, tensor<11x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
    %l, %q = nn.cross_entropy %p, %y : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x3xf32>)
    return %l : tensor<f32>
  }
}

// Messages, what a product reads of them later, weights. Data and the
// probabilities of the loss stay.
// CHECK: pipeline.training microbatches(4) optimizer<sgd> precision bf16
// CHECK: pipeline.channel @x : [tensor<5x7xf32>]
// CHECK: pipeline.channel @h : [tensor<5x11xbf16>]
// CHECK: pipeline.channel @s1.residuals : [tensor<5x11xbf16>, tensor<5xi64>, tensor<5x3xf32>]
// CHECK: pipeline.channel @dh : [tensor<5x11xbf16>]
// CHECK: pipeline.channel @s0.residuals : [tensor<5x7xf32>]
// CHECK: pipeline.variable @w1 : tensor<7x11xbf16> parameter of @s0 init <"m.onnx", 100, 308>
// CHECK: pipeline.variable @w1.master : tensor<7x11xf32> master of @s0 init <"m.onnx", 100, 308> {pipeline.kind = "master", pipeline.parameter = @w1}
// CHECK: pipeline.variable @b1 : tensor<11xf32> parameter of @s0
// CHECK: pipeline.variable @w1.grad : tensor<7x11xf32> gradient

// Evaluation sends what the forward sends.
// CHECK: pipeline.task @s0.E
// CHECK: pipeline.put %{{.*}} to @h : tensor<5x11xbf16>

// CHECK: pipeline.task @s0.U
// CHECK: %[[W:.*]] = pipeline.read @w1.master : tensor<7x11xf32>
// CHECK: %[[U:.*]]:3 = func.call @sgd.7x11.bf16(%[[W]], %{{.*}}, %{{.*}}) : (tensor<7x11xf32>, tensor<7x11xf32>, f32) -> (tensor<7x11xf32>, tensor<7x11xf32>, tensor<7x11xbf16>)
// CHECK: pipeline.write %[[U]]#0 to @w1.master : tensor<7x11xf32>
// CHECK: pipeline.write %[[U]]#2 to @w1 : tensor<7x11xbf16>

// Factors and the sum are rounded; the bias is added in f32, and that is
// rounded.
// CHECK-LABEL: func.func private @s0.forward
// CHECK-SAME: (%[[X:.*]]: tensor<5x7xf32>, %[[W1:.*]]: tensor<7x11xbf16>, %{{.*}}: tensor<11xf32>) -> tensor<5x11xbf16>
// CHECK: %[[XR:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<5x7xf32>) outs(%{{.*}} : tensor<5x7xbf16>)
// CHECK: arith.truncf
// CHECK: %[[XW:.*]] = linalg.generic {{.*}} ins(%[[XR]] : tensor<5x7xbf16>)
// CHECK: arith.extf
// CHECK: %[[WW:.*]] = linalg.generic {{.*}} ins(%[[W1]] : tensor<7x11xbf16>)
// CHECK: arith.extf
// CHECK: %[[P:.*]] = linalg.contract {{.*}} ins(%[[XW]], %[[WW]] : tensor<5x7xf32>, tensor<7x11xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]] : tensor<5x11xf32>) outs(%{{.*}} : tensor<5x11xbf16>)
// CHECK: arith.addf
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<5x11xbf16>)
// CHECK: arith.truncf
// CHECK: return %[[R]] : tensor<5x11xbf16>

// A product that adds to a gradient, and what nothing but the loss follows.
// CHECK-LABEL: func.func private @s0.backward
// CHECK: linalg.contract {{.*}} -> tensor<7x11xf32>
// CHECK: return %{{.*}}, %{{.*}} : tensor<7x11xf32>, tensor<11xf32>
// CHECK-LABEL: func.func private @s1.forward
// CHECK: %[[LOGITS:.*]] = linalg.contract {{.*}} -> tensor<5x3xf32>
// CHECK-NEXT: nn.cross_entropy %[[LOGITS]]
