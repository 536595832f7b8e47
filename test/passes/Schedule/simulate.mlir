// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=4 --lower-training-to-schedule=replay=0 --pipeline-simulate='backward=1 timeline' -o /dev/null | FileCheck %s --check-prefix=FLUSH
// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=2 --lower-training-to-schedule='schedule=gpipe replay=0' --pipeline-simulate='timeline updates=2' -o /dev/null | FileCheck %s --check-prefix=GPIPE
// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=4 --lower-training-to-schedule=replay=0 | FileCheck %s --check-prefix=BUBBLE
// RUN: %expect-error --any-lines "calls a function without a body, so that it has no analytic cost; use costs=unit" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=4 --lower-training-to-schedule=replay=0 --pipeline-simulate='costs=analytic'
// RUN: %expect-error --any-lines "error: costs must be unit, analytic, measured or seconds" -- penstock-opt %s --pipeline-simulate='costs=guess'
// RUN: %expect-error --any-lines "error: 'pipeline.schedule' op has no measured costs: the module needs pipeline.stage_seconds" -- penstock-opt %s --pipeline-simulate='costs=measured'
// RUN: %expect-error --any-lines "error: updates must be at least 1" -- penstock-opt %s --pipeline-simulate='updates=0'
// RUN: penstock-opt %s --pipeline-simulate='costs=analytic timeline' -o /dev/null | FileCheck %s --check-prefix=ANALYTIC
// RUN: penstock-opt %s --pipeline-simulate='costs=seconds timeline' -o /dev/null | FileCheck %s --check-prefix=SECONDS

// FLUSH:      @train, 1 update: makespan 10, bubble 20.0 %
// FLUSH-NEXT: 0: F0 F1 .  B0 F2 B1 F3 B2 .  B3 U
// FLUSH-NEXT: 1: .  F0 B0 F1 B1 F2 B2 F3 B3 U

// Backward takes two cells, and updates none.
// GPIPE:      @train, 2 updates: makespan 18, bubble 33.3 %
// GPIPE-NEXT: 0: F0  F1  .   .   .   B0  -   B1  -U  F2  F3

// (p - 1) / (M + p - 1)
// BUBBLE: @train microbatches(4) predicted_bubble({{0.19999|0.2[0}]}}

// 30 multiplications per microbatch.
// ANALYTIC: @train, 1 update: makespan 60, bubble 0.0 %
// Its traffic: 360 bytes per microbatch, two operands and a result, at 20 GB/s.
// SECONDS: @train, 1 update: makespan 3.6e-08, bubble 0.0 %
!t = tensor<5x6xf32>
#id = affine_map<(i, j) -> (i, j)>
pipeline.stage @s devices [0]
pipeline.channel @x : [!t] source(input "x") slots(2)
pipeline.channel @y : [!t] sink(output "y") staging(1)
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : !t
  %y = func.call @square(%x) : (!t) -> !t
  pipeline.put %y to @y : !t
}
func.func private @square(%x: !t) -> !t {
  %e = tensor.empty() : !t
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%e : !t) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.mulf %a, %a : f32
      linalg.yield %r : f32
  } -> !t
  return %y : !t
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 { pipeline.repeat updates { pipeline.repeat times 2 {
    pipeline.recv @x ahead(1)
    pipeline.run @s.F
    pipeline.send @y
  } } }
}
