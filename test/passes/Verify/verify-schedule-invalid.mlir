// RUN: %expand-cases %s | penstock-opt --split-input-file --pipeline-set-training=microbatches=4 --pipeline-verify=level=schedule --verify-diagnostics

// One case for each rule that needs more than one op, as edits of a few programs.

// C2
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : tensor<2xf32> parameter of @s0
// expected-error @+1 {{C2: keeps versions of @w, which no update task writes}}
pipeline.double_buffer @w
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}

// -----

@@
-pipeline.double_buffer @w
 pipeline.task @s0.F forward of @s0(%k) {
+  // expected-error @+1 {{C15: of @w sees the newest value and has no lag}}
+  %a = pipeline.read @w lag(0) : tensor<2xf32>

// -----

// C17
@@
-pipeline.double_buffer @w
 pipeline.task @s0.F forward of @s0(%k) {
+  %a = pipeline.read @w : tensor<2xf32>
+  // expected-error @+1 {{C17: needs a delta of role compensation, @w is parameter}}
+  %b = pipeline.compensate %a, %a tau(1.0) : tensor<2xf32>

// -----

// C17
@@
-pipeline.double_buffer @w
+func.func private @f(tensor<2xf32>) -> tensor<2xf32>
 pipeline.task @s0.F forward of @s0(%k) {
+  %a = pipeline.read @w : tensor<2xf32>
+  %d = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>
+  // expected-error @+1 {{C17: needs a delta of role compensation, but no variable holds it}}
+  %b = pipeline.compensate %a, %d tau(1.0) : tensor<2xf32>

// -----

// C18
@@
-pipeline.double_buffer @w
 pipeline.task @s0.F forward of @s0(%k) {
+  %lr = pipeline.hyperparameter "lr" : f32
+  %a = pipeline.read @w : tensor<2xf32>
+  // expected-error @+1 {{C18: needs a direction of role optimizer, @w is parameter}}
+  %b = pipeline.predict %a, %a, %lr steps(1.0) : tensor<2xf32>, f32

// -----

@@
-pipeline.variable @w : tensor<2xf32> parameter of @s0
-pipeline.double_buffer @w
+// expected-error @+1 {{C44: names @nothing, which is no variable of this module}}
+pipeline.double_buffer @nothing

// -----

// C8
@@
-pipeline.double_buffer @w
+pipeline.variable @v : tensor<3xf32> parameter of @s1
+// expected-error @+1 {{C8: sums 'tensor<2xf32>' and 'tensor<3xf32>'}}
+pipeline.group @g members [[@w], [@v]]

// -----

@@
-pipeline.double_buffer @w
+pipeline.variable @v : tensor<2xf32> parameter of @s0
+// expected-error @+1 {{C8: has two members on one stage}}
+pipeline.group @g members [[@w], [@v]]

// -----

@@
-pipeline.double_buffer @w
+pipeline.variable @v : tensor<2xf32> parameter of @s1
+// expected-error @+1 {{C8: has a member on two stages}}
+pipeline.group @g members [[@w, @v]]

// -----

// C22
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 1 { pipeline.repeat updates {
    // expected-error @+1 {{C22: of @s0.F on device 1, but stage @s0 is not there}}
    pipeline.run @s0.F
  } }
}

// -----

@@
-    pipeline.run @s0.F
+    // expected-error @+1 {{C44: names @nothing, which is no task of this module}}
+    pipeline.run @nothing

// -----

// C23
@@
-  pipeline.order 1 { pipeline.repeat updates {
-    pipeline.run @s0.F
+  pipeline.order 0 { pipeline.repeat microbatches {
+    // expected-error @+1 {{C23: has every(3), expected every(4): M / replicas}}
+    pipeline.run @s0.F every(3)

// -----

// C15
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.task @s0.F forward of @s0(%k) {
  // expected-error @+1 {{C15: of @w, which an update task writes, needs a lag at level schedule}}
  %a = pipeline.read @w : tensor<2xf32>
}
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s0.U update of @s0(%t) {
  %a = pipeline.read @w : tensor<2xf32>
  pipeline.write %a to @w : tensor<2xf32>
}

// -----

@@
+pipeline.double_buffer @w
+// expected-error @+1 {{C2: is the second version storage of @w}}
+pipeline.weight_stash @w depth(2)
 pipeline.task @s0.F forward of @s0(%k) {
-  %a = pipeline.read @w : tensor<2xf32>

// -----

// C15
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s0.U update of @s0(%t) {
  // expected-error @+1 {{C15: of @w in an update task needs a lag of at least 1}}
  %a = pipeline.read @w lag(0) : tensor<2xf32>
  pipeline.write %a to @w : tensor<2xf32>
}

// -----

// C15: optimizer state has no versions.
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @m : tensor<2xf32> optimizer of @s0
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s0.U update of @s0(%t) {
  // expected-error @+1 {{C15: of @m sees the newest value and has no lag}}
  %a = pipeline.read @m lag(1) : tensor<2xf32>
  pipeline.write %a to @m : tensor<2xf32>
}

// -----

// C35
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.variable @v : tensor<2xf32> parameter of @s0
func.func private @f(tensor<2xf32>) -> tensor<2xf32>
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s0.U update of @s0(%t) {
  %s = pipeline.hyperparameter "s" : f32
  %old = pipeline.read @w lag(1) : tensor<2xf32>
  %v = pipeline.read @v : tensor<2xf32>
  %w = pipeline.read @w : tensor<2xf32>
  %a = func.call @f(%w) : (tensor<2xf32>) -> tensor<2xf32>
  %b = func.call @f(%v) : (tensor<2xf32>) -> tensor<2xf32>
  pipeline.write %a to @w : tensor<2xf32>
  pipeline.write %b to @v : tensor<2xf32>
  // expected-error @+1 {{C35: needs two versions of one parameter, the newer as it is written}}
  %c = pipeline.blend %b, %old, %s : tensor<2xf32>, f32
}

// -----

// C35: not any number says how much an older version counts,
@@
-  %c = pipeline.blend %b, %old, %s : tensor<2xf32>, f32
+  // expected-error @+1 {{C35: weighs by a number that no function makes of the staleness of what is 1 updates older}}
+  %c = pipeline.blend %a, %old, %s : tensor<2xf32>, f32

// -----

// nor that of another version.
@@
-func.func private @f(tensor<2xf32>) -> tensor<2xf32>
+func.func private @f(tensor<2xf32>) -> tensor<2xf32>
+func.func private @s(index) -> f32
@@
-  %s = pipeline.hyperparameter "s" : f32
+  %d = pipeline.staleness lag(2)
+  %s = func.call @s(%d) : (index) -> f32
@@
-  %c = pipeline.blend %b, %old, %s : tensor<2xf32>, f32
+  // expected-error @+1 {{C35: weighs by a number that no function makes of the staleness of what is 1 updates older}}
+  %c = pipeline.blend %a, %old, %s : tensor<2xf32>, f32

// -----

// C7
// expected-error @+1 {{C7: has no devices at level schedule}}
pipeline.stage @s0
pipeline.task @s0.F forward of @s0(%k) {
}

// -----

pipeline.stage @s0 devices [0, 1]
// expected-error @+1 {{C7: shares device 0 with @s0, but has another number of replicas}}
pipeline.stage @s1 devices [0]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}

// -----

// C20
pipeline.stage @s0 devices [0, 1]
pipeline.task @s0.F forward of @s0(%k) {
}
// expected-error @+1 {{C20: has 3 microbatches for 2 replicas of stage @s0: not a multiple}}
pipeline.schedule @train microbatches(3) {
}

// -----

// C20: a device in use has an order.
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @x : [tensor<2xf32>] source(input "x")
pipeline.channel @h : [tensor<2xf32>]
pipeline.task @s0.F forward of @s0(%k) {
  %a = pipeline.take @x : tensor<2xf32>
  pipeline.put %a to @h : tensor<2xf32>
}
pipeline.task @s1.F forward of @s1(%k) {
  %a = pipeline.take @h : tensor<2xf32>
}
// expected-error @+1 {{C20: has no order for device 1, where stage @s1 is}}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.F  pipeline.send @h }
  } }
}

// -----

@@
   } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @h  pipeline.run @s1.F }
+  } }
+  // expected-error @+1 {{C20: is for device 2, where no stage is}}
+  pipeline.order 2 { pipeline.repeat updates { } }

// -----

// C4, among the tasks of one schedule: two may put into a channel if they never
// run together.
@@
+pipeline.task @s0.warm forward of @s0(%k) {
+  %a = pipeline.take @x : tensor<2xf32>
+  pipeline.put %a to @h : tensor<2xf32>
+}
+pipeline.schedule @warmup microbatches(4) {
+  pipeline.order 0 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.warm  pipeline.send @h }
+  } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @h  pipeline.run @s1.F }
+  } }
+}
 pipeline.schedule @train microbatches(4) {
@@
   } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @h  pipeline.run @s1.F }
+  } }

// -----

@@
+// expected-error @+1 {{C4: is taken by task @s1.F, but no task of schedule @train puts into it}}
 pipeline.channel @h : [tensor<2xf32>]
@@
+pipeline.task @s0.warm forward of @s0(%k) {
+  %a = pipeline.take @x : tensor<2xf32>
+}
 pipeline.schedule @train microbatches(4) {
@@
-    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.F  pipeline.send @h }
+    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.warm }
+  } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.run @s1.F }

// -----

@@
+// expected-error @+1 {{C4: is put by task @s0.F, but no task of schedule @train takes from it}}
 pipeline.channel @h : [tensor<2xf32>]
@@
+pipeline.task @s1.warm forward of @s1(%k) {
+}
 pipeline.schedule @train microbatches(4) {
@@
   } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.run @s1.warm }
+  } }

// -----

@@
+pipeline.task @s0.warm forward of @s0(%k) {
+  // expected-error @+1 {{C4: is the second end of channel @x, after task @s0.F}}
+  %a = pipeline.take @x : tensor<2xf32>
+}
 pipeline.schedule @train microbatches(4) {
@@
-    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.F  pipeline.send @h }
+    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.F  pipeline.run @s0.warm  pipeline.send @h }
+  } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @h  pipeline.run @s1.F }

// -----

// C13, the same way.
@@
-pipeline.schedule @train microbatches(4) {
+// expected-error @+1 {{C13: is the second forward task of its stage}}
+pipeline.task @s0.again forward of @s0(%k) {
+}
+pipeline.schedule @warmup microbatches(4) {
@@
   } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @h  pipeline.run @s1.F }
+  } }
 }
+pipeline.schedule @train microbatches(4) {
+  pipeline.order 0 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @x  pipeline.run @s0.F  pipeline.run @s0.again  pipeline.send @h }
+  } }
+  pipeline.order 1 { pipeline.repeat updates {
+    pipeline.repeat times 4 { pipeline.recv @h  pipeline.run @s1.F }
+  } }
+}

// -----

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.channel @x : [tensor<2xf32>] source(input "x")
pipeline.channel @h : [tensor<2xf32>]
pipeline.channel @r : [tensor<2xf32>, tensor<2xf32>]
pipeline.task @s0.F forward of @s0(%k) {
  %a = pipeline.take @x : tensor<2xf32>
  pipeline.put %a to @h : tensor<2xf32>
  pipeline.put %a, %a to @r : tensor<2xf32>, tensor<2xf32>
}
pipeline.task @s1.F forward of @s1(%k) {
  %a = pipeline.take @h : tensor<2xf32>
  %b:2 = pipeline.take @r : tensor<2xf32>, tensor<2xf32>
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.run @s0.F
  } }
  pipeline.order 1 { pipeline.repeat updates { pipeline.run @s1.F
  } }
}

// -----

// C24
@@
   pipeline.order 1 { pipeline.repeat updates { pipeline.run @s1.F
+// expected-error @+1 {{C24: of @x on device 1, which is not that end of it}}
+    pipeline.recv @x

// -----

@@
   pipeline.order 0 { pipeline.repeat updates { pipeline.run @s0.F
+// expected-error @+1 {{C24: of @h on device 0, which is not that end of it}}
+    pipeline.recv @h

// -----

@@
   pipeline.order 0 { pipeline.repeat updates { pipeline.run @s0.F
+// expected-error @+1 {{C24: of @r, which carries 2 tensors; a transfer is one tensor}}
+    pipeline.send @r

// -----

@@
-pipeline.stage @s1 devices [1]
+pipeline.stage @s1 devices [0]
@@
-  pipeline.order 0 { pipeline.repeat updates { pipeline.run @s0.F
-  } }
-  pipeline.order 1 { pipeline.repeat updates { pipeline.run @s1.F
+  pipeline.order 0 { pipeline.repeat updates { pipeline.run @s0.F pipeline.run @s1.F
+// expected-error @+1 {{C24: of @h, whose both ends are on device 0}}
+    pipeline.send @h

// -----

// C25
pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.stage @s2 devices [2]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.variable @v : tensor<2xf32> parameter of @s1
pipeline.group @g members [[@w], [@v]]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}
pipeline.task @s2.F forward of @s2(%k) {
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 2 { pipeline.repeat updates {
    // expected-error @+1 {{C25: of @g on device 2, which has no member of it}}
    pipeline.all_reduce @g
  } }
}

// -----

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
// expected-error @+1 {{C9: needs a body before level program}}
pipeline.task @s0.F forward of @s0

// -----

pipeline.stage @s0 devices [0]
pipeline.stage @s1 devices [1]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s1.F forward of @s1(%k) {
}
// expected-error @+1 {{C43: needs orders before level program}}
pipeline.schedule @train microbatches(4)

// -----

// C8: a sum needs all replicas of its members.
pipeline.stage @s0 devices [0, 1]
pipeline.variable @g : tensor<2xf32> gradient of @s0
pipeline.group @sum members [[@g]]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.B backward of @s0(%k) {
  %g = pipeline.read @g : tensor<2xf32>
  pipeline.write %g to @g : tensor<2xf32>
}
// expected-error @+1 {{C8: sums @sum without device 1, where stage @s0 is}}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates {
    pipeline.repeat times 2 { pipeline.run @s0.F  pipeline.run @s0.B }
    pipeline.all_reduce @sum
  } }
  pipeline.order 1 { pipeline.repeat updates {
    pipeline.repeat times 2 { pipeline.run @s0.F  pipeline.run @s0.B }
  } }
}

// -----

// C12
pipeline.stage @s0 devices [0]
pipeline.variable @w : tensor<2xf32> parameter of @s0
pipeline.variable @g : tensor<2xf32> gradient of @s0
pipeline.task @s0.W weight_grad of @s0(%k) {
  %a = pipeline.read @w lag(0) : tensor<2xf32>
  // expected-error @+1 {{C12: overwrites gradient @g, but @train has 2 microbatches per update}}
  pipeline.write %a to @g : tensor<2xf32>
}
pipeline.task @s0.U update of @s0(%t) {
  %a = pipeline.read @g : tensor<2xf32>
  pipeline.write %a to @w : tensor<2xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat updates {
      pipeline.repeat times 2 {
        pipeline.run @s0.W
      }
      pipeline.run @s0.U
    }
  }
}

// -----

// C30: what a schedule is for is what it runs.
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0(%k) {
}
pipeline.task @s0.E evaluate of @s0(%k) {
}
// expected-error @+1 {{C30: has the role train, but what it runs is to evaluate}}
pipeline.schedule @test microbatches(2) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.run @s0.E } } }
}

// -----

// C30
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0(%k) {
}
// expected-error @+1 {{C30: has the role evaluate, but what it runs is to train}}
pipeline.schedule @evaluate to evaluate microbatches(2) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.run @s0.F } } }
}

// -----

// C46
pipeline.stage @s0 devices [0]
pipeline.task @s0.F forward of @s0(%k) {
}
// expected-error @+1 {{C46: evaluates, but no schedule runs it}}
pipeline.task @s0.E evaluate of @s0(%k) {
}
pipeline.schedule @train microbatches(4) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 4 { pipeline.run @s0.F } } }
}

// -----

// C30: without training, evaluate tasks are all there is.
pipeline.stage @s0 devices [0]
pipeline.task @s0.E evaluate of @s0(%k) {
}
// expected-error @+1 {{C30: has the role evaluate, but what it runs is to infer}}
pipeline.schedule @evaluate to evaluate microbatches(2) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 2 { pipeline.run @s0.E } } }
}
