// RUN: penstock-opt %s --split-input-file | penstock-opt --split-input-file | FileCheck %s

// Every op of the dialect, in the program that docs/ir.md explains, level by level.

// CHECK: pipeline.channel @x : [tensor<5x7xf32>] source(input "x")
// CHECK: pipeline.variable @fc1 : tensor<7x11xf32> parameter of @mlp init <"mlp.onnx", 118, 308>
// CHECK: pipeline.task @mlp.F forward of @mlp(%k) {
// CHECK: onnx.node "SoftmaxCrossEntropyLoss"(%{{.*}}, %{{.*}}) since 13 {reduction = "mean"}

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>  !h1 = tensor<5x11xf32>  !h2 = tensor<5x13xf32>  !z = tensor<5x3xf32>  !y = tensor<5xi64>  !l = tensor<f32>
!w1 = tensor<7x11xf32>  !w2 = tensor<11x13xf32>  !w3 = tensor<13x3xf32>
!Mx = memref<5x7xf32>  !Mh1 = memref<5x11xf32>  !Mh2 = memref<5x13xf32>  !Mw1 = memref<7x11xf32>  !Mw2 = memref<11x13xf32>

pipeline.stage @mlp    pipeline.channel @x : [!x] source(input "x")    pipeline.channel @labels : [!y] source(labels)    pipeline.channel @loss : [!l] sink(loss)
pipeline.variable @fc1 : !w1 parameter of @mlp init <"mlp.onnx", 118, 308>
pipeline.variable @fc2 : !w2 parameter of @mlp init <"mlp.onnx", 447, 572>
pipeline.variable @fc3 : !w3 parameter of @mlp init <"mlp.onnx", 1040, 156>
pipeline.task @mlp.F forward of @mlp(%k) {
  %x = pipeline.take @x : !x        %y = pipeline.take @labels : !y
  %w1 = pipeline.read @fc1 : !w1    %w2 = pipeline.read @fc2 : !w2    %w3 = pipeline.read @fc3 : !w3
  %l = func.call @mlp.forward(%x, %w1, %w2, %w3, %y) : (!x, !w1, !w2, !w3, !y) -> !l    pipeline.put %l to @loss : !l }
func.func private @mlp.forward(%x: !x, %w1: !w1, %w2: !w2, %w3: !w3, %y: !y) -> !l {
  %a1 = onnx.node "MatMul"(%x, %w1) since 13 : (!x, !w1) -> !h1 loc("fc1/MatMul")
  %h1 = onnx.node "Relu"(%a1) since 14 : (!h1) -> !h1 loc("fc1/Relu")
  %a2 = onnx.node "MatMul"(%h1, %w2) since 13 : (!h1, !w2) -> !h2 loc("fc2/MatMul")
  %h2 = onnx.node "Relu"(%a2) since 14 : (!h2) -> !h2 loc("fc2/Relu")
  %z = onnx.node "MatMul"(%h2, %w3) since 13 : (!h2, !w3) -> !z loc("fc3/MatMul")
  %l = onnx.node "SoftmaxCrossEntropyLoss"(%z, %y) since 13 {reduction = "mean"} : (!z, !y) -> !l
  return %l : !l }

// -----

// CHECK: pipeline.task @s0.F forward of @s0(%k) {
// CHECK: pipeline.put %{{.*}} to @h2 : tensor<5x13xf32>

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>  !h1 = tensor<5x11xf32>  !h2 = tensor<5x13xf32>  !z = tensor<5x3xf32>  !y = tensor<5xi64>  !l = tensor<f32>
!w1 = tensor<7x11xf32>  !w2 = tensor<11x13xf32>  !w3 = tensor<13x3xf32>
!Mx = memref<5x7xf32>  !Mh1 = memref<5x11xf32>  !Mh2 = memref<5x13xf32>  !Mw1 = memref<7x11xf32>  !Mw2 = memref<11x13xf32>

pipeline.stage @s0    pipeline.stage @s1    pipeline.channel @h2 : [!h2]
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : !x    %w1 = pipeline.read @fc1 : !w1    %w2 = pipeline.read @fc2 : !w2
  %h2 = func.call @s0.forward(%x, %w1, %w2) : (!x, !w1, !w2) -> !h2    pipeline.put %h2 to @h2 : !h2 }
pipeline.task @s1.F forward of @s1(%k) {
  %h2 = pipeline.take @h2 : !h2    %y = pipeline.take @labels : !y    %w3 = pipeline.read @fc3 : !w3
  %l = func.call @s1.forward(%h2, %w3, %y) : (!h2, !w3, !y) -> !l    pipeline.put %l to @loss : !l }
func.func private @s0.forward(!x, !w1, !w2) -> !h2    func.func private @s1.forward(!h2, !w3, !y) -> !l

// -----

// CHECK: pipeline.variable @fc1.grad : tensor<7x11xf32> gradient of @s0
// CHECK: pipeline.task @s0.B backward of @s0(%k) {
// CHECK: pipeline.task @s0.U update of @s0(%t) {
// CHECK: pipeline.hyperparameter "lr" : f32

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>  !h1 = tensor<5x11xf32>  !h2 = tensor<5x13xf32>  !z = tensor<5x3xf32>  !y = tensor<5xi64>  !l = tensor<f32>
!w1 = tensor<7x11xf32>  !w2 = tensor<11x13xf32>  !w3 = tensor<13x3xf32>
!Mx = memref<5x7xf32>  !Mh1 = memref<5x11xf32>  !Mh2 = memref<5x13xf32>  !Mw1 = memref<7x11xf32>  !Mw2 = memref<11x13xf32>

pipeline.channel @dh2 : [!h2]    pipeline.channel @s0.residuals : [!x, !h1, !h2]
pipeline.variable @fc1.grad : !w1 gradient of @s0    pipeline.variable @fc2.grad : !w2 gradient of @s0
pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : !x    %w1 = pipeline.read @fc1 : !w1    %w2 = pipeline.read @fc2 : !w2
  %h2, %h1 = func.call @s0.forward(%x, %w1, %w2) : (!x, !w1, !w2) -> (!h2, !h1)
  pipeline.put %h2 to @h2 : !h2    pipeline.put %x, %h1, %h2 to @s0.residuals : !x, !h1, !h2 }
pipeline.task @s0.B backward of @s0(%k) {
  %dh2 = pipeline.take @dh2 : !h2    %x, %h1, %h2 = pipeline.take @s0.residuals : !x, !h1, !h2
  %w2 = pipeline.read @fc2 : !w2    %g1 = pipeline.read @fc1.grad : !w1    %g2 = pipeline.read @fc2.grad : !w2   // fc1 is not read: no gradient flows into x
  %n1, %n2 = func.call @s0.backward(%dh2, %x, %h1, %h2, %w2, %g1, %g2) : (!h2, !x, !h1, !h2, !w2, !w1, !w2) -> (!w1, !w2)
  pipeline.write %n1 to @fc1.grad : !w1    pipeline.write %n2 to @fc2.grad : !w2 }
pipeline.task @s0.U update of @s0(%t) {
  %base = pipeline.hyperparameter "lr" : f32    %lr = func.call @lr(%base, %t) : (f32, index) -> f32   // the learning-rate schedule, compiled
  %w1 = pipeline.read @fc1 : !w1    %g1 = pipeline.read @fc1.grad : !w1
  %n1, %c1 = func.call @sgd.7x11(%w1, %g1, %lr) : (!w1, !w1, f32) -> (!w1, !w1)
  pipeline.write %n1 to @fc1 : !w1    pipeline.write %c1 to @fc1.grad : !w1 }   // zero again; fc2 likewise
func.func private @lr(f32, index) -> f32    func.func private @s0.forward(!x, !w1, !w2) -> (!h2, !h1)
func.func private @s0.backward(%dh2: !h2, %x: !x, %h1: !h1, %h2: !h2, %w2: !w2, %dw1: !w1, %dw2: !w2) -> (!w1, !w2) {
  %zero = arith.constant 0.0 : f32    %e2 = tensor.empty() : !h2
  %g2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h2, %dh2 : !h2, !h2) outs(%e2 : !h2) {
    ^bb0(%h: f32, %d: f32, %o: f32): %p = arith.cmpf ogt, %h, %zero : f32  %r = arith.select %p, %d, %zero : f32  linalg.yield %r : f32 } -> !h2
  %n2 = linalg.contract indexing_maps = [#mk, #mn, #kn] ins(%h1, %g2 : !h1, !h2) outs(%dw2 : !w2) -> !w2      // accumulates
  %e1 = tensor.empty() : !h1    %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !h1) -> !h1
  %dh1 = linalg.contract indexing_maps = [#mn, #kn, #mk] ins(%g2, %w2 : !h2, !w2) outs(%z1 : !h1) -> !h1
  %g1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h1, %dh1 : !h1, !h1) outs(%e1 : !h1) {
    ^bb0(%h: f32, %d: f32, %o: f32): %p = arith.cmpf ogt, %h, %zero : f32  %r = arith.select %p, %d, %zero : f32  linalg.yield %r : f32 } -> !h1
  %n1 = linalg.contract indexing_maps = [#mk, #mn, #kn] ins(%x, %g1 : !x, !h1) outs(%dw1 : !w1) -> !w1
  return %n1, %n2 : !w1, !w2 }
func.func private @sgd.7x11(%w: !w1, %g: !w1, %lr: f32) -> (!w1, !w1) {   // w is an input: old and new slot may differ or coincide
  %zero = arith.constant 0.0 : f32    %e = tensor.empty() : !w1
  %n:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : !w1) outs(%e, %g : !w1, !w1) {
    ^bb0(%a: f32, %o: f32, %b: f32): %s = arith.mulf %lr, %b : f32  %r = arith.subf %a, %s : f32  linalg.yield %r, %zero : f32, f32 } -> (!w1, !w1)
  return %n#0, %n#1 : !w1, !w1 }

// -----

// CHECK: pipeline.channel @dh2 : [tensor<5x13xf32>] slots(1) staging(1)
// CHECK: pipeline.schedule @train microbatches(4) {
// CHECK: pipeline.order 0 {
// CHECK: pipeline.repeat updates {
// CHECK: pipeline.repeat times 4 {
// CHECK: pipeline.recv @x ahead(2)
// CHECK: pipeline.run @s0.F ahead(1)

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>  !h1 = tensor<5x11xf32>  !h2 = tensor<5x13xf32>  !z = tensor<5x3xf32>  !y = tensor<5xi64>  !l = tensor<f32>
!w1 = tensor<7x11xf32>  !w2 = tensor<11x13xf32>  !w3 = tensor<13x3xf32>
!Mx = memref<5x7xf32>  !Mh1 = memref<5x11xf32>  !Mh2 = memref<5x13xf32>  !Mw1 = memref<7x11xf32>  !Mw2 = memref<11x13xf32>

pipeline.stage @s0 devices [0]    pipeline.stage @s1 devices [1]
pipeline.channel @x : [!x] source(input "x") slots(3)    pipeline.channel @labels : [!y] source(labels) slots(2)    pipeline.channel @loss : [!l] sink(loss) staging(1)
pipeline.channel @h2 : [!h2] slots(2)    pipeline.channel @dh2 : [!h2] slots(1) staging(1)            // on the sender, h2 lives in the residuals
pipeline.channel @s0.residuals : [!x, !h1, !h2] slots(2)    pipeline.channel @s1.residuals : [!h2, !z, !y] slots(1)
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {           // F0 F1 .  .  B0 F2 B1 F3 B2 .  B3 U
    pipeline.repeat times 4 { pipeline.recv @x ahead(2)  pipeline.run @s0.F ahead(1)  pipeline.send @h2 ahead(1)  pipeline.recv @dh2  pipeline.run @s0.B }
    pipeline.run @s0.U } }
  pipeline.order 1 { pipeline.repeat updates {           // .  F0 B0 F1 B1 .  F2 B2 F3 B3 U
    pipeline.repeat times 4 { pipeline.recv @labels ahead(1)  pipeline.recv @h2 ahead(1)  pipeline.run @s1.F  pipeline.send @loss  pipeline.run @s1.B  pipeline.send @dh2 }
    pipeline.run @s1.U } } }

// -----

// CHECK: %{{.*}} = pipeline.bound %{{.*}}
// CHECK: pipeline.slot @fc1[%{{.*}}] at(0) : memref<7x11xf32>
// CHECK: pipeline.start_recv @x[%{{.*}}], %{{.*}} : memref<5x7xf32>
// CHECK: pipeline.slot @s0.residuals[%{{.*}}] field(1) at(2368) stride(256) : memref<5x11xf32>
// CHECK: pipeline.await @x[%{{.*}}]
// CHECK: pipeline.mark @s0.F[%{{.*}}]
// CHECK: pipeline.start_send @h2[%{{.*}}], %{{.*}} : memref<5x13xf32>

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<5x7xf32>  !h1 = tensor<5x11xf32>  !h2 = tensor<5x13xf32>  !z = tensor<5x3xf32>  !y = tensor<5xi64>  !l = tensor<f32>
!w1 = tensor<7x11xf32>  !w2 = tensor<11x13xf32>  !w3 = tensor<13x3xf32>
!Mx = memref<5x7xf32>  !Mh1 = memref<5x11xf32>  !Mh2 = memref<5x13xf32>  !Mw1 = memref<7x11xf32>  !Mw2 = memref<11x13xf32>

func.func private @s0.forward(!Mx, !Mw1, !Mw2, !Mh2, !Mh1)
func.func @train.0(%first: index, %updates: index) {
  %c0 = arith.constant 0 : index    %c1 = arith.constant 1 : index    %c4 = arith.constant 4 : index    %c6 = arith.constant 6 : index
  %last = arith.addi %first, %updates : index
  scf.for %t = %first to %last step %c1 {
    %done = arith.subi %t, %first : index    %least = arith.addi %done, %c1 : index    %n = pipeline.bound %least
    %w1 = pipeline.slot @fc1[%t] at(0) : !Mw1    %w2 = pipeline.slot @fc2[%t] at(320) : !Mw2    %k0 = arith.muli %t, %c4 : index
    scf.for %j = %c0 to %c6 step %c1 {                 // 4 iterations + the largest `ahead`
      %has.x = arith.cmpi ult, %j, %c4 : index         // recv @x ahead(2)
      scf.if %has.x {
        %k = arith.addi %k0, %j : index    %x = pipeline.slot @x[%k] at(1792) stride(192) : !Mx    pipeline.start_recv @x[%k], %x : !Mx
      }
      %jf = arith.subi %j, %c1 : index    %has.f = arith.cmpi ult, %jf, %c4 : index       // run @s0.F ahead(1); send @h2 ahead(1)
      scf.if %has.f {
        %k = arith.addi %k0, %jf : index    %x = pipeline.slot @x[%k] at(1792) stride(192) : !Mx
        %h1 = pipeline.slot @s0.residuals[%k] field(1) at(2368) stride(256) : !Mh1
        %h2 = pipeline.slot @s0.residuals[%k] field(2) at(2880) stride(320) : !Mh2
        pipeline.await @x[%k]    pipeline.mark @s0.F[%k]
        func.call @s0.forward(%x, %w1, %w2, %h2, %h1) : (!Mx, !Mw1, !Mw2, !Mh2, !Mh1) -> ()
        pipeline.start_send @h2[%k], %h2 : !Mh2
      }                                                // recv @dh2, await, run @s0.B: the same with %j - 2
    }                                                  // then mark @s0.U and the update calls
  }
  return }

// -----

// What methods, replicas and library calls add.

// CHECK: pipeline.weight_stash @w depth(3)
// CHECK: pipeline.double_buffer @v
// CHECK: pipeline.group @g members {{\[\[}}@a], [@b]]
// CHECK: pipeline.variable @frozen : tensor<2xf32> parameter of @s {frozen}
// CHECK: pipeline.task @s.F forward of @s{{$}}
// CHECK: pipeline.schedule @train microbatches(4) predicted_bubble(2.500000e-01){{$}}
// CHECK: pipeline.read @w lag(2) : tensor<2xf32>
// CHECK: pipeline.compensate %{{.*}}, %{{.*}} tau(1.500000e+00) : tensor<2xf32>
// CHECK: pipeline.predict %{{.*}}, %{{.*}}, %{{.*}} steps(2.000000e+00) : tensor<2xf32>, f32
// CHECK: pipeline.compensate %{{.*}}, %{{.*}} tau(1.500000e+00) : tensor<2xf32> -> tensor<2xbf16>
// CHECK: pipeline.predict %{{.*}}, %{{.*}}, %{{.*}} steps(2.000000e+00) : tensor<2xf32> -> tensor<2xbf16>, f32
// CHECK: pipeline.staleness lag(2)
// CHECK: pipeline.blend %{{.*}}, %{{.*}}, %{{.*}} : tensor<2xf32>, f32
// CHECK: pipeline.all_reduce @g ahead(-1) every(4)
// CHECK: pipeline.device 0 target(#cpu.target<threads(2)>)
// CHECK: pipeline.arena 0 bytes(4096){{$}}
// CHECK: func.func @kernel({{.*}}) attributes {pipeline.target = #cpu.target<>}
// CHECK: pipeline.slot @w[%{{.*}}] ring(3) at(64) stride(64) places [64, 256, 128] : memref<2xf32>
// CHECK: pipeline.scratch at(64) : memref<7xi8>
// CHECK: pipeline.start_all_reduce @g[%{{.*}}], %{{.*}} : memref<7xi8>

pipeline.weight_stash @w depth(3)
pipeline.double_buffer @v
pipeline.group @g members [[@a], [@b]]
pipeline.variable @frozen : tensor<2xf32> parameter of @s {frozen}
pipeline.task @s.F forward of @s
pipeline.schedule @train microbatches(4) predicted_bubble(0.25)
pipeline.task @s.B backward of @s(%k) {
  %lr = pipeline.hyperparameter "lr" default(0.01) : f32
  %w = pipeline.read @w lag(2) : tensor<2xf32>
  %v = pipeline.read @v lag(2) : tensor<2xf32>
  %u = pipeline.compensate %w, %v tau(1.5) : tensor<2xf32>
  %p = pipeline.predict %w, %v, %lr steps(2.0) : tensor<2xf32>, f32
  %ur = pipeline.compensate %w, %v tau(1.5) : tensor<2xf32> -> tensor<2xbf16>
  %pr = pipeline.predict %w, %v, %lr steps(2.0) : tensor<2xf32> -> tensor<2xbf16>, f32
}
pipeline.task @s.U update of @s(%t) {
  %s = pipeline.hyperparameter "significance" : f32
  %d = pipeline.staleness lag(2)
  %w = pipeline.read @w : tensor<2xf32>
  %old = pipeline.read @w lag(2) : tensor<2xf32>
  %b = pipeline.blend %w, %old, %s : tensor<2xf32>, f32
}
pipeline.schedule @open microbatches(4) {
  pipeline.order 0 { pipeline.repeat microbatches { pipeline.all_reduce @g ahead(-1) every(4) } }
}
pipeline.device 0 target(#cpu.target<threads(2)>)
pipeline.arena 0 bytes(4096)
func.func @kernel(%n: index) attributes {pipeline.target = #cpu.target<>} {
  %w = pipeline.slot @w[%n] ring(3) at(64) stride(64) places [64, 256, 128] : memref<2xf32>
  %s = pipeline.scratch at(64) : memref<7xi8>
  pipeline.start_all_reduce @g[%n], %s : memref<7xi8>
  return
}

// -----

// What orders were generated by.

// CHECK: pipeline.schedule @a microbatches(1) generator<"1f1b">
// CHECK: pipeline.schedule @b microbatches(1) predicted_bubble(5.000000e-01) generator<interleaved, chunks = 3>
// CHECK: pipeline.schedule @c microbatches(4) generator<file> {

pipeline.schedule @a microbatches(1) generator<"1f1b">
pipeline.schedule @b microbatches(1) predicted_bubble(0.5) generator<interleaved, chunks = 3>
pipeline.schedule @c microbatches(4) generator<file> { pipeline.order 0 { } }

// -----

// Workers that exchange waves.

// CHECK: pipeline.stage @s devices [0]
// CHECK: pipeline.stage @vw1.s worker(1) devices [1]
// CHECK: pipeline.channel @wave : [tensor<2xf32>] slots(2) staging(2) queue own
// CHECK: pipeline.channel @vw1.x : [tensor<2xf32>] source(input "x") {pipeline.turn = array<i64: 1, 2>}
// CHECK: pipeline.task @s.P push of @s(%t) {
// CHECK: pipeline.task @s.S fold of @s(%t) {
// CHECK: pipeline.later_waves distance(1)
// CHECK: pipeline.schedule @train microbatches(1) wave(2) distance(1) {
// CHECK: pipeline.recv @wave every(2)
// CHECK: pipeline.run @s.P every(2)
// CHECK: pipeline.send @wave ahead(-2) every(2)
// CHECK: pipeline.run @s.S ahead(-2) every(2)

pipeline.stage @s devices [0]
pipeline.stage @vw1.s worker(1) devices [1]
pipeline.channel @wave : [tensor<2xf32>] slots(2) staging(2) queue own
pipeline.channel @vw1.x : [tensor<2xf32>] source(input "x") {pipeline.turn = array<i64: 1, 2>}
pipeline.task @s.P push of @s(%t) {
}
pipeline.task @s.S fold of @s(%t) {
  %n = pipeline.later_waves distance(1)
}
pipeline.schedule @train microbatches(1) wave(2) distance(1) {
  pipeline.order 0 {
    pipeline.repeat microbatches {
      pipeline.recv @wave every(2)
      pipeline.run @s.P every(2)
      pipeline.send @wave ahead(-2) every(2)
      pipeline.run @s.S ahead(-2) every(2)
    }
  }
}
