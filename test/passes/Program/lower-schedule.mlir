// RUN: penstock-opt %s --pipeline-lower-schedule --split-input-file \
// RUN:   --mlir-use-nameloc-as-prefix | FileCheck %s

// Synchronous 1F1B on two devices: x is its own residual, h2 is sent from the
// residuals, loss and dh2 have staging slots.

// CHECK: pipeline.task @s0.F forward of @s0 calls [#pipeline.call<@s0.forward [#pipeline.operand<read @x>,

// CHECK-LABEL: func.func @train.0(
// CHECK-SAME:    %[[FIRST:.*]]: index, %[[UPDATES:.*]]: index)
// CHECK:         %[[LAST:.*]] = arith.addi %[[FIRST]], %[[UPDATES]]
// CHECK:         scf.for %[[T:.*]] = %[[FIRST]] to %[[LAST]] step %c1 {
// CHECK:           %[[K0:.*]] = arith.muli %[[T]], %c4
// CHECK:           %[[DONE:.*]] = arith.subi %[[T]], %[[FIRST]]
// CHECK:           %[[LEAST:.*]] = arith.addi %[[DONE]], %c1
// CHECK:           %[[N:.*]] = pipeline.bound %[[LEAST]]
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ult, %[[DONE]], %[[N]]
// CHECK:           scf.if %[[INSIDE]] {
// CHECK:           scf.for %[[J:.*]] = %c0 to %c6 step %c1 {
// CHECK:             %[[HASX:.*]] = arith.cmpi ult, %[[J]], %c4
// CHECK:             scf.if %[[HASX]] {
// CHECK:               %[[K:.*]] = arith.addi %[[K0]], %[[J]]
// CHECK:               %[[X:.*]] = pipeline.slot @x[%[[K]]] ring(3)
// CHECK:               pipeline.start_recv @x[%[[K]]], %[[X]]
// CHECK:             %[[JF:.*]] = arith.subi %[[J]], %c1
// CHECK:             %[[HASF:.*]] = arith.cmpi ult, %[[JF]], %c4
// CHECK:             scf.if %[[HASF]] {
// CHECK-NEXT:          %[[K:.*]] = arith.addi %[[K0]], %[[JF]]
// CHECK-NEXT:          pipeline.await @x[%[[K]]]
// CHECK-NEXT:          %[[OLD:.*]] = arith.subi %[[K]], %c2
// CHECK-NEXT:          pipeline.await @h2[%[[OLD]]]
// CHECK-NEXT:          pipeline.mark @s0.F[%[[K]]]
// CHECK-NEXT:          %[[X:.*]] = pipeline.slot @x[%[[K]]] ring(3)
// CHECK-NEXT:          %[[W1:.*]] = pipeline.slot @fc1[%[[T]]] : memref<7x11xf32>
// CHECK-NEXT:          %[[W2:.*]] = pipeline.slot @fc2[%[[T]]] :
// CHECK-NEXT:          %[[H2:.*]] = pipeline.slot @s0.residuals[%[[K]]] field(2) ring(2)
// CHECK-NEXT:          %[[H1:.*]] = pipeline.slot @s0.residuals[%[[K]]] field(1) ring(2)
// CHECK-NEXT:          func.call @s0.forward(%[[X]], %[[W1]], %[[W2]], %[[H2]], %[[H1]])
// CHECK-NEXT:          pipeline.start_send @h2[%[[K]]], %[[H2]]
// CHECK:             %[[JB:.*]] = arith.subi %[[J]], %c2
// CHECK:             %[[HASB:.*]] = arith.cmpi ult, %[[JB]], %c4
// CHECK:             scf.if %[[HASB]] {
// CHECK-NEXT:          %[[K:.*]] = arith.addi %[[K0]], %[[JB]]
// CHECK-NEXT:          %[[DH2:.*]] = pipeline.slot @dh2[%[[K]]] :
// CHECK-NEXT:          pipeline.start_recv @dh2[%[[K]]], %[[DH2]]
// CHECK-NEXT:          pipeline.await @dh2[%[[K]]]
// CHECK-NEXT:          pipeline.mark @s0.B[%[[K]]]
// CHECK:               %[[X:.*]] = pipeline.slot @x[%[[K]]] ring(3)
// CHECK:               %[[S:.*]] = pipeline.scratch : memref<448xi8>
// CHECK:               func.call @s0.backward(%[[DH2]], %[[X]],
// CHECK-SAME:            %[[S]])
// CHECK:           pipeline.mark @s0.U[%[[T]]]
// CHECK:           %[[BASE:.*]] = pipeline.hyperparameter "lr"
// CHECK:           %[[LR:.*]] = func.call @lr(%[[BASE]], %[[T]])
// CHECK:           %[[W:.*]] = pipeline.slot @fc1[%[[T]]] :
// CHECK:           %[[G:.*]] = pipeline.slot @fc1.grad[%[[T]]] :
// CHECK:           %[[NEXT:.*]] = arith.addi %[[T]], %c1
// CHECK:           %[[N:.*]] = pipeline.slot @fc1[%[[NEXT]]] :
// CHECK:           func.call @sgd.7x11(%[[W]], %[[G]], %[[LR]], %[[N]])

// CHECK-LABEL: func.func @train.1(
// CHECK:         pipeline.await @h2[%[[K:.*]]]
// CHECK:         pipeline.await @labels[%[[K]]]
// CHECK:         pipeline.await @loss[%[[OLD:.*]]]
// CHECK:         pipeline.mark @s1.F[%[[K]]]
// CHECK:         func.call @s1.forward
// CHECK:         pipeline.await @dh2[%{{.*}}]
// CHECK:         pipeline.mark @s1.B

// CHECK: pipeline.schedule @train microbatches(4){{$}}
// CHECK: func.func private @s0.forward(memref<5x7xf32>, memref<7x11xf32>, memref<11x13xf32>, memref<5x13xf32> {pipeline.out}, memref<5x11xf32> {pipeline.out})
// CHECK: func.func private @sgd.13x3(memref

!x = tensor<5x7xf32>
!h1 = tensor<5x11xf32>
!h2 = tensor<5x13xf32>
!z = tensor<5x3xf32>
!y = tensor<5xi64>
!l = tensor<f32>
!w1 = tensor<7x11xf32>
!w2 = tensor<11x13xf32>
!w3 = tensor<13x3xf32>
!Mx = memref<5x7xf32>
!Mh1 = memref<5x11xf32>
!Mh2 = memref<5x13xf32>
!Mz = memref<5x3xf32>
!My = memref<5xi64>
!Ml = memref<f32>
!Mw1 = memref<7x11xf32>
!Mw2 = memref<11x13xf32>
!Mw3 = memref<13x3xf32>

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @x : [!x] source(input "x") slots(3)
pipeline.channel @labels : [!y] source(labels) slots(2)
pipeline.channel @loss : [!l] sink(loss) staging(1)
pipeline.channel @h2 : [!h2] slots(2)
pipeline.channel @dh2 : [!h2] slots(1) staging(1)
pipeline.channel @s0.residuals : [!x, !h1, !h2] slots(2)
pipeline.channel @s1.residuals : [!h2, !z, !y] slots(1)
pipeline.variable @fc1 : !w1 parameter of @s0
pipeline.variable @fc2 : !w2 parameter of @s0
pipeline.variable @fc3 : !w3 parameter of @s1
pipeline.variable @fc1.grad : !w1 gradient of @s0
pipeline.variable @fc2.grad : !w2 gradient of @s0
pipeline.variable @fc3.grad : !w3 gradient of @s1

pipeline.task @s0.F forward of @s0(%k) {
  %x = pipeline.take @x : !x
  %w1 = pipeline.read @fc1 lag(0) : !w1
  %w2 = pipeline.read @fc2 lag(0) : !w2
  %h2, %h1 = func.call @s0.forward(%x, %w1, %w2) : (!x, !w1, !w2) -> (!h2, !h1)
  pipeline.put %h2 to @h2 : !h2
  pipeline.put %x, %h1, %h2 to @s0.residuals : !x, !h1, !h2
}
pipeline.task @s0.B backward of @s0(%k) {
  %dh2 = pipeline.take @dh2 : !h2
  %x, %h1, %h2 = pipeline.take @s0.residuals : !x, !h1, !h2
  %w2 = pipeline.read @fc2 lag(0) : !w2
  %g1 = pipeline.read @fc1.grad : !w1
  %g2 = pipeline.read @fc2.grad : !w2
  %n1, %n2 = func.call @s0.backward(%dh2, %x, %h1, %h2, %w2, %g1, %g2)
    : (!h2, !x, !h1, !h2, !w2, !w1, !w2) -> (!w1, !w2)
  pipeline.write %n1 to @fc1.grad : !w1
  pipeline.write %n2 to @fc2.grad : !w2
}
pipeline.task @s0.U update of @s0(%t) {
  %base = pipeline.hyperparameter "lr" default(0.1) : f32
  %lr = func.call @lr(%base, %t) : (f32, index) -> f32
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
pipeline.task @s1.F forward of @s1(%k) {
  %h2 = pipeline.take @h2 : !h2
  %y = pipeline.take @labels : !y
  %w3 = pipeline.read @fc3 lag(0) : !w3
  %l, %p = func.call @s1.forward(%h2, %y, %w3) : (!h2, !y, !w3) -> (!l, !z)
  pipeline.put %l to @loss : !l
  pipeline.put %h2, %p, %y to @s1.residuals : !h2, !z, !y
}
pipeline.task @s1.B backward of @s1(%k) {
  %h2, %p, %y = pipeline.take @s1.residuals : !h2, !z, !y
  %w3 = pipeline.read @fc3 lag(0) : !w3
  %g3 = pipeline.read @fc3.grad : !w3
  %dh2, %n3 = func.call @s1.backward(%h2, %p, %y, %w3, %g3)
    : (!h2, !z, !y, !w3, !w3) -> (!h2, !w3)
  pipeline.put %dh2 to @dh2 : !h2
  pipeline.write %n3 to @fc3.grad : !w3
}
pipeline.task @s1.U update of @s1(%t) {
  %base = pipeline.hyperparameter "lr" default(0.1) : f32
  %lr = func.call @lr(%base, %t) : (f32, index) -> f32
  %w = pipeline.read @fc3 : !w3
  %g = pipeline.read @fc3.grad : !w3
  %n, %c = func.call @sgd.13x3(%w, %g, %lr) : (!w3, !w3, f32) -> (!w3, !w3)
  pipeline.write %n to @fc3 : !w3
  pipeline.write %c to @fc3.grad : !w3
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
    pipeline.repeat updates {
      pipeline.repeat times 4 {
        pipeline.recv @x ahead(2)
        pipeline.run @s0.F ahead(1)
        pipeline.send @h2 ahead(1)
        pipeline.recv @dh2
        pipeline.run @s0.B
      }
      pipeline.run @s0.U
    }
  }
  pipeline.order 1 {
    pipeline.repeat updates {
      pipeline.repeat times 4 {
        pipeline.recv @labels ahead(1)
        pipeline.recv @h2 ahead(1)
        pipeline.run @s1.F
        pipeline.send @loss
        pipeline.run @s1.B
        pipeline.send @dh2
      }
      pipeline.run @s1.U
    }
  }
}

func.func private @lr(f32, index) -> f32
func.func private @s0.forward(!x, !w1, !w2) -> (!h2, !h1)
func.func private @s0.backward(!h2, !x, !h1, !h2, !w2, !w1 {pipeline.into = 0 : i64}, !w2 {pipeline.into = 1 : i64}) -> (!w1, !w2)
func.func private @s1.forward(!h2, !y, !w3) -> (!l, !z)
func.func private @s1.backward(!h2, !z, !y, !w3, !w3 {pipeline.into = 1 : i64}) -> (!h2, !w3)
func.func private @sgd.7x11(!w1, !w1 {pipeline.into = 1 : i64}, f32) -> (!w1, !w1)
func.func private @sgd.11x13(!w2, !w2 {pipeline.into = 1 : i64}, f32) -> (!w2, !w2)
func.func private @sgd.13x3(!w3, !w3 {pipeline.into = 1 : i64}, f32) -> (!w3, !w3)
func.func private @s0.forward.kernel(!Mx, !Mw1, !Mw2, !Mh2, !Mh1)
func.func private @s0.backward.kernel(!Mh2, !Mx, !Mh1, !Mh2, !Mw2, !Mw1 {pipeline.into = 0 : i64}, !Mw2 {pipeline.into = 1 : i64}, memref<448xi8> {pipeline.scratch})
func.func private @s1.forward.kernel(!Mh2, !My, !Mw3, !Ml, !Mz)
func.func private @s1.backward.kernel(!Mh2, !Mz, !My, !Mw3, !Mw3 {pipeline.into = 1 : i64}, !Mh2)
func.func private @sgd.7x11.kernel(!Mw1, !Mw1 {pipeline.into = 1 : i64}, f32, !Mw1)
func.func private @sgd.11x13.kernel(!Mw2, !Mw2 {pipeline.into = 1 : i64}, f32, !Mw2)
func.func private @sgd.13x3.kernel(!Mw3, !Mw3 {pipeline.into = 1 : i64}, f32, !Mw3)

// -----

// A loop over microbatches does not drain: versions by lag, updates by
// remainder. Evaluation has its own schedule, and is told which version of the
// ring is the newest.

!t = tensor<4xf32>
!m = memref<4xf32>
pipeline.stage @s devices [0]
pipeline.channel @x : [!t] source(input "x") slots(3)
pipeline.channel @loss : [tensor<f32>] sink(loss) staging(2)
pipeline.channel @res : [!t] slots(2)
pipeline.variable @w : !t parameter of @s
pipeline.variable @w.grad : !t gradient of @s
pipeline.weight_stash @w depth(2)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : !t
  %w = pipeline.read @w lag(1) : !t
  %l, %r = func.call @f(%x, %w) : (!t, !t) -> (tensor<f32>, !t)
  pipeline.put %l to @loss : tensor<f32>
  pipeline.put %r to @res : !t
}
pipeline.task @B backward of @s(%k) {
  %r = pipeline.take @res : !t
  %g = pipeline.read @w.grad : !t
  %n = func.call @b(%r, %g, %k) : (!t, !t, index) -> !t
  pipeline.write %n to @w.grad : !t
}
pipeline.task @U update of @s(%t) {
  %w = pipeline.read @w : !t
  %g = pipeline.read @w.grad : !t
  %n, %c = func.call @u(%w, %g) : (!t, !t) -> (!t, !t)
  pipeline.write %n to @w : !t
  pipeline.write %c to @w.grad : !t
}
// CHECK-LABEL: func.func @open.0(
// CHECK-SAME:    %[[FIRST:.*]]: index, %[[UPDATES:.*]]: index)
// CHECK-DAG:     %[[COUNT:.*]] = arith.muli %[[UPDATES]], %c2
// CHECK-DAG:     %[[K0:.*]] = arith.muli %[[FIRST]], %c2
// CHECK:         %[[END:.*]] = arith.addi %[[COUNT]], %c2
// CHECK:         scf.for %[[J:.*]] = %c0 to %[[END]] step %c1 {
// CHECK:           %[[DONE:.*]] = arith.divui %[[J]], %c2
// CHECK:           %[[LEAST:.*]] = arith.addi %[[DONE]], %c1
// CHECK:           %[[N:.*]] = pipeline.bound %[[LEAST]]
// CHECK:           %[[COUNT:.*]] = arith.muli %[[N]], %c2
// CHECK:           %[[I:.*]] = arith.subi %[[J]], %c1
// CHECK:           %[[HAS:.*]] = arith.cmpi ult, %[[I]], %[[COUNT]]
// CHECK:           %[[K:.*]] = arith.addi %[[K0]], %[[I]]
// CHECK:           scf.if %[[HAS]] {
// CHECK:             pipeline.mark @F[%[[K]]]
// CHECK:             %[[KL:.*]] = arith.subi %[[K]], %c1
// CHECK:             %[[KM:.*]] = arith.maxsi %[[KL]], %[[K0]]
// CHECK:             %[[V:.*]] = arith.divui %[[KM]], %c2
// CHECK:             pipeline.slot @w[%[[V]]] ring(2)
// CHECK:           %[[I:.*]] = arith.subi %[[J]], %c2
// CHECK:           scf.if
// CHECK:             pipeline.mark @B[%[[K:.*]]]
// CHECK:             func.call @b(%{{.*}}, %{{.*}}, %[[K]])
// CHECK:           %[[I:.*]] = arith.subi %[[J]], %c2
// CHECK:           %[[IN:.*]] = arith.cmpi ult, %[[I]], %[[COUNT]]
// CHECK:           %[[K:.*]] = arith.addi %[[K0]], %[[I]]
// CHECK:           %[[K1:.*]] = arith.addi %[[K]], %c1
// CHECK:           %[[REST:.*]] = arith.remui %[[K1]], %c2
// CHECK:           %[[DUE:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK:           %[[BOTH:.*]] = arith.andi %[[IN]], %[[DUE]]
// CHECK:           scf.if %[[BOTH]] {
// CHECK:             %[[T:.*]] = arith.divui %[[K]], %c2
// CHECK:             pipeline.mark @U[%[[T]]]
// CHECK:             pipeline.slot @w[%[[T]]] ring(2)
// CHECK:             %[[NEXT:.*]] = arith.addi %[[T]], %c1
// CHECK:             pipeline.slot @w[%[[NEXT]]] ring(2)
pipeline.schedule @open microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat microbatches {
      pipeline.recv @x ahead(2)
      pipeline.run @F ahead(1)
      pipeline.send @loss ahead(1)
      pipeline.run @B
      pipeline.run @U every(2)
    }
  }
}
pipeline.task @E evaluate of @s(%k) {
  %x = pipeline.take @x : !t
  %w = pipeline.read @w : !t
  %l, %r = func.call @f(%x, %w) : (!t, !t) -> (tensor<f32>, !t)
  pipeline.put %l to @loss : tensor<f32>
  pipeline.put %r to @seen : !t
}
pipeline.channel @seen : [!t] sink(output "seen") staging(1)
// CHECK-LABEL: func.func @evaluate.0(
// CHECK-SAME:    %first: index, %updates: index, %[[NEWEST:.*]]: index)
// CHECK:         pipeline.slot @w[%[[NEWEST]]] ring(2)
pipeline.schedule @evaluate to evaluate microbatches(1) {
  pipeline.order 0 {
    pipeline.repeat microbatches {
      pipeline.recv @x
      pipeline.run @E
      pipeline.send @loss
      pipeline.send @seen
    }
  }
}
func.func private @f(!t, !t) -> (tensor<f32>, !t)
func.func private @b(!t, !t {pipeline.into = 0 : i64}, index) -> !t
func.func private @u(!t, !t {pipeline.into = 1 : i64}) -> (!t, !t)
func.func private @f.kernel(!m, !m, memref<f32>, !m)
func.func private @b.kernel(!m, !m {pipeline.into = 0 : i64}, index)
func.func private @u.kernel(!m, !m {pipeline.into = 1 : i64}, !m)

// -----

// One device has both stages, as in the replay program: no transfer, and a
// value that is both passed on and kept is stored once, in as many slots as the
// longer-lived channel needs. Its kernels are those of the parent.

!t = tensor<4xf32>
!m = memref<4xf32>
func.func private @a(!t) -> !t
func.func private @b(!t, !t) -> tensor<f32>
func.func private @a.kernel(!m, !m)
func.func private @b.kernel(!m, !m, memref<f32>)
module @replay {
  pipeline.stage @s0 devices [0]
  pipeline.stage @s1 devices [0]
  pipeline.channel @x : [!t] source(input "x") slots(2)
  pipeline.channel @h : [!t] slots(1)
  pipeline.channel @skip : [!t, !t] slots(3)
  pipeline.channel @loss : [tensor<f32>] sink(loss) staging(1)
  pipeline.task @F0 forward of @s0(%k) {
    %x = pipeline.take @x : !t
    %h = func.call @a(%x) : (!t) -> !t
    pipeline.put %x, %h to @skip : !t, !t
    pipeline.put %h to @h : !t
  }
  pipeline.task @F1 forward of @s1(%k) {
    %h = pipeline.take @h : !t
    %y, %g = pipeline.take @skip : !t, !t
    %l = func.call @b(%h, %y) : (!t, !t) -> tensor<f32>
    pipeline.put %l to @loss : tensor<f32>
  }
  // CHECK-LABEL: module @replay
  // CHECK:       func.func @train.0
  // CHECK:         scf.for %[[T:.*]] = %
  // CHECK:           %[[K0:.*]] = arith.muli %[[T]], %c3
  // CHECK:           pipeline.start_recv @x[%[[K0]]]
  // CHECK:           %[[K:.*]] = arith.addi %[[K0]], %c1
  // CHECK:           pipeline.start_recv @x[%[[K]]]
  // CHECK:           scf.for %[[J:.*]] = %c0 to %c2 step %c1 {
  // CHECK:             %[[K:.*]] = arith.addi %[[K0]], %[[J]]
  // CHECK:             pipeline.mark @F0[%[[K]]]
  // CHECK:             %[[X:.*]] = pipeline.slot @x[%[[K]]] ring(2)
  // CHECK:             %[[H:.*]] = pipeline.slot @skip[%[[K]]] field(1) ring(3)
  // CHECK:             func.call @a(%[[X]], %[[H]])
  // CHECK:             pipeline.mark @F1[%[[K]]]
  // CHECK:             func.call @b(%[[H]], %[[X]],
  // CHECK:           %[[K:.*]] = arith.addi %[[K0]], %c2
  // CHECK:           pipeline.mark @F0[%[[K]]]
  // CHECK:       func.func private @a(memref<4xf32>, memref<4xf32> {pipeline.out})
  pipeline.schedule @train microbatches(3) {
    pipeline.order 0 {
      pipeline.repeat updates {
        pipeline.recv @x
        pipeline.recv @x
        pipeline.repeat times 2 {
          pipeline.run @F0
          pipeline.run @F1
          pipeline.send @loss
        }
        pipeline.recv @x
        pipeline.run @F0
        pipeline.run @F1
        pipeline.send @loss
      }
    }
  }
  func.func private @a(!t) -> !t
  func.func private @b(!t, !t) -> tensor<f32>
}
