// RUN: penstock-opt %s --pipeline-lower-schedule --split-input-file \
// RUN:   --verify-diagnostics

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
  pipeline.order 1 {
    pipeline.repeat updates {
      // expected-error @below {{runs @F on device 1, where its stage is not}}
      pipeline.run @F
    }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>

pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  // expected-error @below {{@f has no bufferised form: run pipeline-bufferize-functions}}
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<5xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  // expected-error @below {{does not fit the bufferised form of @f}}
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates {
      // expected-error @below {{S1: @F runs 1 times instead of 2 in one iteration}}
      pipeline.run @F
    }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat microbatches {
      // expected-error @below {{S1: @F must run once in every 1 microbatches}}
      pipeline.run @F every(2)
    }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates {
      pipeline.repeat times 4 {
        // expected-error @below {{does not handle evenly spaced microbatches}}
        pipeline.run @F ahead(2)
        pipeline.run @F
      }
    }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates {
      pipeline.run @F
      // expected-error @below {{two entries of @F run ahead by different numbers of updates}}
      pipeline.run @F ahead(1)
    }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
// expected-error @below {{has no staging: run pipeline-size-storage first}}
pipeline.channel @loss : [tensor<4xf32>] sink("loss") 
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}

// -----

pipeline.stage @s devices [0]
// expected-error @below {{has no slots: run pipeline-size-storage first}}
pipeline.channel @x : [tensor<4xf32>] source("x") 
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  // expected-error @below {{a result of a task's function must be put or written}}
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F } }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  // expected-error @below {{takes from @x, into which "train" runs no task that puts}}
  %x = pipeline.take @x : tensor<4xf32>
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %w = pipeline.read @w : tensor<4xf32>
  // expected-error @below {{only taken values and results of calls can be put: nothing is ever copied}}
  pipeline.put %w to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}
pipeline.variable @w : tensor<4xf32> parameter of @s

// -----

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<4xf32>] source("x") slots(3)
pipeline.channel @loss : [tensor<4xf32>] sink("loss") staging(1)
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @f.kernel(memref<4xf32>, memref<4xf32>)
pipeline.task @F forward of @s(%k) {
  %x = pipeline.take @x : tensor<4xf32>
  %w = pipeline.read @w : tensor<4xf32>
  // expected-error @below {{is not lowered to device programs yet}}
  %c = pipeline.compensate %w, %w tau(1.0) : tensor<4xf32>
  %y = func.call @f(%c) : (tensor<4xf32>) -> tensor<4xf32>
  pipeline.put %y to @loss : tensor<4xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates { pipeline.repeat times 2 { pipeline.recv @x pipeline.run @F pipeline.send @loss } }
  }
}
pipeline.variable @w : tensor<4xf32> parameter of @s
