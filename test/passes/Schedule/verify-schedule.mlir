// RUN: penstock-opt %s --split-input-file --pipeline-verify-schedule=remarks --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s

// Two stages of PipeDream: an open loop, weights one update old on the first,
// which keeps two versions as its B reads the one that F read.
// CHECK: remark: proved: {{[0-9]+}} segments, {{[0-9]+}} steps, steady from update
!t = tensor<3xf32>
pipeline.stage @a devices [0]
pipeline.stage @b devices [1]
pipeline.channel @x : [!t] source(input "x") slots(3)
pipeline.channel @loss : [!t] sink(loss) staging(1)
pipeline.channel @h : [!t] slots(2) staging(1)
pipeline.channel @dh : [!t] slots(1) staging(1)
pipeline.channel @ra : [!t] slots(2)
pipeline.channel @rb : [!t] slots(1)
pipeline.variable @v : !t parameter of @a
pipeline.weight_stash @v depth(2)
pipeline.variable @w : !t parameter of @b
pipeline.task @a.F forward of @a(%k) {
  %x = pipeline.take @x : !t
  %v = pipeline.read @v lag(1) : !t
  %h = func.call @f(%x, %v) : (!t, !t) -> !t
  pipeline.put %h to @h : !t
  pipeline.put %x to @ra : !t
}
pipeline.task @a.B backward of @a(%k) {
  %d = pipeline.take @dh : !t
  %x = pipeline.take @ra : !t
  %v = pipeline.read @v lag(1) : !t
}
pipeline.task @a.U update of @a(%t) {
  %v = pipeline.read @v : !t
  pipeline.write %v to @v : !t
}
pipeline.task @b.F forward of @b(%k) {
  %h = pipeline.take @h : !t
  %w = pipeline.read @w lag(0) : !t
  %l = func.call @f(%h, %w) : (!t, !t) -> !t
  pipeline.put %l to @loss : !t
  pipeline.put %h to @rb : !t
}
pipeline.task @b.B backward of @b(%k) {
  %h = pipeline.take @rb : !t
  %w = pipeline.read @w lag(0) : !t
  %d = func.call @f(%h, %w) : (!t, !t) -> !t
  pipeline.put %d to @dh : !t
}
pipeline.task @b.U update of @b(%t) {
  %w = pipeline.read @w : !t
  pipeline.write %w to @w : !t
}
func.func private @f(!t, !t) -> !t
pipeline.schedule @pipedream microbatches(1) {
  pipeline.order 0 { pipeline.repeat microbatches {
    pipeline.recv @x ahead(2)
    pipeline.run @a.F ahead(1)
    pipeline.send @h ahead(1)
    pipeline.recv @dh
    pipeline.run @a.B
    pipeline.run @a.U every(1)
  } }
  pipeline.order 1 { pipeline.repeat microbatches {
    pipeline.recv @h ahead(1)
    pipeline.run @b.F
    pipeline.send @loss
    pipeline.run @b.B
    pipeline.send @dh
    pipeline.run @b.U every(1)
  } }
}
