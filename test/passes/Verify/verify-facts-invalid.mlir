// RUN: penstock-opt %s --split-input-file --pipeline-verify --verify-diagnostics

// Rules C32 and C33: the facts of training stand once, and tasks and schedules
// agree with them.

// C32: once.
pipeline.training optimizer<sgd>
// expected-error @+1 {{C32: is the second of its module}}
pipeline.training optimizer<sgd>
func.func private @f()

// -----

// C32: the replay has those of its program.
pipeline.training optimizer<sgd>
func.func private @f()
module @replay {
  // expected-error @+1 {{C32: is in a nested module, which has those of its program}}
  pipeline.training optimizer<sgd>
  func.func private @f()
}

// -----

// C32: from level training on.
// expected-error @below {{C32: has no pipeline.training, which says how it trains: run pipeline-set-training}}
module {
  pipeline.stage @a
  pipeline.channel @x : [tensor<3xf32>] source(input "x")
  pipeline.task @a.E evaluate of @a(%k) {
    %x = pipeline.take @x : tensor<3xf32>
  }
}

// -----

// C32: a program with nothing but evaluate tasks infers,
// expected-error @+1 {{C32: says how a program trains that infers}}
pipeline.training optimizer<sgd>
pipeline.stage @a
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.task @a.E evaluate of @a(%k) {
  %x = pipeline.take @x : tensor<3xf32>
}

// -----

// C32: and any other trains.
// expected-error @+1 {{C32: says that a program infers which trains}}
pipeline.training infers
pipeline.stage @a
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.channel @r : [tensor<3xf32>]
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : tensor<3xf32>
  pipeline.put %x to @r : tensor<3xf32>
}
pipeline.task @a.W weight_grad of @a(%k) {
  %x = pipeline.take @r : tensor<3xf32>
}

// -----

// C33: M is that of the facts.
pipeline.training microbatches(3) optimizer<sgd>
pipeline.stage @a devices [0]
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : tensor<3xf32>
}
// expected-error @+1 {{C33: has 4 microbatches per update, pipeline.training 3}}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 { pipeline.recv @x pipeline.run @a.F }
  } }
}

// -----

// C33: workers are those of the method,
pipeline.training optimizer<sgd> method<sync>
// expected-error @+1 {{C33: is of worker 1, the method of pipeline.training has 1}}
pipeline.stage @a devices [0] {worker = 1 : i64}
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : tensor<3xf32>
}
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.recv @x pipeline.run @a.F
  } }
}

// -----

// which take their own microbatches.
pipeline.training optimizer<sgd> method<sync>
pipeline.stage @a devices [0]
// expected-error @+1 {{C33: is of worker 0 of 1, but of other microbatches}}
pipeline.channel @x : [tensor<3xf32>] source(input "x") {pipeline.turn = array<i64: 1, 2>}
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : tensor<3xf32>
}
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.recv @x pipeline.run @a.F
  } }
}
