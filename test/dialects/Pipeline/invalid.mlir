// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// One case for each rule that an op checks by itself.

// expected-error @+1 {{C3: init has 4 bytes, 'tensor<2xf32>' takes 8}}
pipeline.variable @w : tensor<2xf32> parameter init <"f", 0, 4>

// -----

// A bf16 variable may start as f32 bytes, or as its own.
// expected-error @+1 {{C3: init has 16 bytes, 'tensor<2xbf16>' takes 4}}
pipeline.variable @w : tensor<2xbf16> parameter init <"f", 0, 16>
pipeline.variable @v : tensor<2xbf16> parameter init <"f", 0, 8>
pipeline.variable @u : tensor<2xbf16> parameter init <"f", 0, 4>

// -----

// expected-error @+1 {{C3: needs a static shape of numbers, got 'tensor<?xf32>'}}
pipeline.variable @w : tensor<?xf32> parameter

// -----

// expected-error @+1 {{a byte range cannot be negative, got offset -1 and length 8}}
pipeline.variable @w : tensor<2xf32> parameter init <"f", -1, 8>

// -----

// expected-error @+1 {{a byte range needs a file name}}
pipeline.variable @w : tensor<2xf32> parameter init <"", 0, 8>

// -----

// expected-error @+1 {{C2: needs a depth of 2 or more, got 1}}
pipeline.weight_stash @w depth(1)

// -----

// expected-error @+1 {{C6: carries nothing}}
pipeline.channel @c : []

// -----

// expected-error @+1 {{C6: has both a source and a sink}}
pipeline.channel @c : [tensor<f32>] source(input "x") sink(loss)

// -----

// expected-error @+1 {{C6: with a source or a sink carries one tensor, got 2}}
pipeline.channel @c : [tensor<f32>, tensor<f32>] source(input "x")

// -----

// expected-error @+1 {{C6: carries tensors of static shape, got}}
pipeline.channel @c : [f32]

// -----

// expected-error @+1 {{C7: has device 1 twice}}
pipeline.stage @s devices [1, 1]

// -----

// expected-error @+1 {{C7: has a negative device -1}}
pipeline.stage @s devices [-1]

// -----

// expected-error @+1 {{C8: members are lists of variables}}
pipeline.group @g members [@a]

// -----

// expected-error @+1 {{C8: members have 1 and 2 variables}}
pipeline.group @g members [[@a], [@b, @c]]

// -----

// expected-error @+1 {{C8: has no members}}
pipeline.group @g members []

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.take @c : tensor<2xf32>
  // expected-error @+1 {{C10: is the second take from @c in one task}}
  %b = pipeline.take @c : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.take @d : tensor<2xf32>
  pipeline.put %a to @c : tensor<2xf32>
  // expected-error @+1 {{C10: is the second put to @c in one task}}
  pipeline.put %a to @c : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.take @d : tensor<2xf32>
  pipeline.write %a to @w : tensor<2xf32>
  // expected-error @+1 {{C10: is the second write to @w in one task}}
  pipeline.write %a to @w : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.take @d : tensor<2xf32>
  pipeline.write %a to @w : tensor<2xf32>
  // expected-error @+1 {{C10: reads @w after the task wrote it}}
  %w = pipeline.read @w : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  // expected-error @+1 {{C9: does not belong into a task, which takes, reads, calls functions, puts and writes}}
  %a = tensor.empty() : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.read @w : tensor<2xf32>
  // expected-error @+1 {{C17: needs a positive tau}}
  %b = pipeline.compensate %a, %a tau(0.0) : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.read @w : tensor<2xf32>
  // expected-error @+1 {{C17: makes 'tensor<2xf16>' of 'tensor<2xf32>', which only f32 to bf16 may round}}
  %b = pipeline.compensate %a, %a tau(1.0) : tensor<2xf32> -> tensor<2xf16>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %lr = pipeline.hyperparameter "lr" : f32
  %a = pipeline.read @w : tensor<2xbf16>
  // expected-error @+1 {{C18: makes 'tensor<2xf32>' of 'tensor<2xbf16>', which only f32 to bf16 may round}}
  %b = pipeline.predict %a, %a, %lr steps(1.0) : tensor<2xbf16> -> tensor<2xf32>, f32
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %a = pipeline.take @c : tensor<2xf32>
  // expected-error @+1 {{C17: needs a parameter and its delta, as they are read or as an update makes them}}
  %b = pipeline.compensate %a, %a tau(1.0) : tensor<2xf32>
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %lr = pipeline.hyperparameter "lr" : f32
  %a = pipeline.read @w : tensor<2xf32>
  // expected-error @+1 {{C18: needs a positive number of steps}}
  %b = pipeline.predict %a, %a, %lr steps(0.0) : tensor<2xf32>, f32
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %lr = pipeline.hyperparameter "lr" : f32
  %a = pipeline.take @w : tensor<2xf32>
  // expected-error @+1 {{C18: needs a parameter and optimizer state, as they are read or as an update makes them}}
  %b = pipeline.predict %a, %a, %lr steps(1.0) : tensor<2xf32>, f32
}

// -----

pipeline.task @s.F forward of @s(%k) {
  %lr = pipeline.hyperparameter "lr" : f32
  %a = pipeline.read @w lag(1) : tensor<2xf32>
  %v = pipeline.read @v lag(2) : tensor<2xf32>
  // expected-error @+1 {{C18: reads the weight and the direction at different lags}}
  %b = pipeline.predict %a, %v, %lr steps(1.0) : tensor<2xf32>, f32
}

// -----

pipeline.task @s.U update of @s(%t) {
  %s = pipeline.hyperparameter "s" : f32
  %a = pipeline.read @w : tensor<2xf32>
  // expected-error @+1 {{C35: needs a parameter as an update makes it, and an older version that is read with a lag}}
  %b = pipeline.blend %a, %a, %s : tensor<2xf32>, f32
}

// -----

pipeline.task @s.B backward of @s(%k) {
  // expected-error @+1 {{C35: stands in a task that is no update}}
  %d = pipeline.staleness lag(1)
}

// -----

pipeline.task @s.F forward of @s(%k) {
  // expected-error @+1 {{C19: needs a name}}
  %lr = pipeline.hyperparameter "" : f32
}

// -----

pipeline.task @s.F forward of @s(%k) {
  // expected-error @+1 {{C19: is an integer, which has no default but 0}}
  %seed = pipeline.hyperparameter "seed" default(1.0) : i64
}

// -----

// expected-error @+1 {{a range holds some integer, this is 3 to 3}}
pipeline.channel @labels : [tensor<5xi64>] source(labels) {pipeline.range = #pipeline.range<3 to 3>}

// -----

// expected-error @+1 {{the range from 0 to 3 holds 2 already}}
pipeline.channel @labels : [tensor<5xi64>] source(labels) {pipeline.range = #pipeline.range<0 to 3 or 2>}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { }
  // expected-error @+1 {{C20: is the second order of device 0}}
  pipeline.order 0 { }
}

// -----

pipeline.schedule @train microbatches(4) {
  // expected-error @+1 {{C20: does not belong into a schedule, which holds orders}}
  %c = arith.constant 1 : index
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
  // expected-error @+1 {{C21: does not belong into an order, which is one loop over updates or microbatches}}
  %c = arith.constant 1 : index
  }
}

// -----

// Once per segment, however many updates it has.
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
  // expected-error @+1 {{'pipeline.run' op C21: does not belong into an order, which is one loop over updates or microbatches}}
  pipeline.run @s.F
  }
}

// -----

// Two loops in a row would need to agree on where the first ends.
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
  pipeline.repeat updates { }
  // expected-error @+1 {{'pipeline.repeat' op C21: does not belong into an order, which is one loop over updates or microbatches}}
  pipeline.repeat updates { }
  }
}

// -----

// GPipe's order of one update, and nothing says how many there are.
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
  // expected-error @+1 {{'pipeline.repeat' op C21: times is outermost; an order is one loop over updates or microbatches}}
  pipeline.repeat times 4 { pipeline.run @s.F }
  }
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
  // expected-error @+1 {{C21: times needs a count}}
  pipeline.repeat times { }
  }
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 {
  // expected-error @+1 {{C21: counts by itself, without a number}}
  pipeline.repeat updates 3 { }
  }
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat microbatches {
  // expected-error @+1 {{C21: times may nest in updates, not in microbatches}}
  pipeline.repeat times 3 { }
  } }
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
  // expected-error @+1 {{C21: over updates or microbatches is outermost}}
  pipeline.repeat microbatches { }
  } }
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
  // expected-error @+1 {{C21: does not belong into a schedule's loop}}
  %c = arith.constant 1 : index
  } }
}

// -----

pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
  // expected-error @+1 {{C23: has every(m) outside of a loop over microbatches}}
  pipeline.run @s.U every(4)
  } }
}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{C26: of a ring of 2 needs a stride where it has an address}}
  %b = pipeline.slot @w[%n] ring(2) at(0) : memref<2xf32>
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{C26: needs a buffer of static shape and identity layout, got}}
  %b = pipeline.slot @w[%n] : memref<?xf32>
  return
}

// -----

func.func @f(%n: index, %b: memref<2xf32, strided<[2]>>) {
  // expected-error @+1 {{C26: needs a buffer of static shape and identity layout, got}}
  pipeline.start_send @c[%n], %b : memref<2xf32, strided<[2]>>
  return
}

// -----

func.func @f(%n: index, %b: memref<2xf32, strided<[2]>>) {
  // expected-error @+1 {{C26: needs a buffer of static shape and identity layout, got}}
  pipeline.start_recv @c[%n], %b : memref<2xf32, strided<[2]>>
  return
}

// -----

// The custom syntax gives the counter no other type.
pipeline.stage @s
// expected-error @+1 {{'pipeline.task' op C9: has one argument, an index that counts}}
"pipeline.task"() <{kind = #pipeline<kind forward>, stage = @s, sym_name = "F"}> ({
^bb0(%k: i64):
}) : () -> ()

// -----

// expected-error @+1 {{unknown schedule '2f2b': known are gpipe, 1f1b, interleaved, looped-bfs, zb-h1, zb-h2, zb-v, v-half, v-min, dualpipe-v, chimera, hanayo, zb-auto, nf1b, file}}
pipeline.schedule @train microbatches(1) generator<"2f2b">

// -----

func.func @train.0(%n: index) {
  // expected-error @+1 {{C26: has a place for each of its ring, and its address is the first}}
  %0 = pipeline.slot @w[%n] ring(3) at(64) stride(64) places [64, 256] : memref<2xf32>
  return
}

// -----

func.func @train.0(%n: index) {
  // expected-error @+1 {{C26: has a place for each of its ring, and its address is the first}}
  %0 = pipeline.slot @w[%n] ring(2) at(0) stride(64) places [64, 256] : memref<2xf32>
  return
}

// -----

// expected-error @+1 {{expected input "NAME" or labels}}
pipeline.channel @x : [tensor<2xf32>] source("x")

// -----

// expected-error @+1 {{expected loss, correct, count, output "NAME" or metric "NAME"}}
pipeline.channel @y : [tensor<2xf32>] sink("y")

// -----

// expected-error @+1 {{a source that is input has the input's name}}
pipeline.channel @x : [tensor<2xf32>] source(input)

// -----

// expected-error @+1 {{a source that is labels has no name}}
pipeline.channel @x : [tensor<2xf32>] source(labels "x")

// -----

// expected-error @+1 {{a sink that is output has the output's name}}
pipeline.channel @y : [tensor<2xf32>] sink(output)

// -----

// expected-error @+1 {{a sink that is loss has no name}}
pipeline.channel @y : [tensor<2xf32>] sink(loss "y")

// -----

func.func @train.0(%first: index, %updates: index) {
  // expected-error @below {{C28: stands in an outermost loop of a function}}
  %n = pipeline.bound %updates
  return
}

// -----

pipeline.stage @s
pipeline.task @s.P push of @s(%t) {
  // expected-error @+1 {{C31: stands in a task that is no fold}}
  %n = pipeline.later_waves distance(1)
}

// -----

// expected-error @+1 {{C6: with a source or a sink is in no queue of a device}}
pipeline.channel @x : [tensor<2xf32>] source(input "x") queue own

// -----

// expected-error @+1 {{C31: folds waves, and does not train}}
pipeline.schedule @evaluate to evaluate microbatches(1) distance(1)

// -----

pipeline.channel @x : [tensor<2xf32>]
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 {
    pipeline.repeat updates {
      // expected-error @+1 {{C23: has every(m) outside of a loop over microbatches}}
      pipeline.send @x every(2)
    }
  }
}
