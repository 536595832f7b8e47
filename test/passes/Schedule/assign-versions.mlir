// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --pipeline-place --pipeline-generate-schedule --pipeline-assign-versions | FileCheck %s
// RUN: %expect-error --any-lines "error: 'pipeline.schedule' op does not fit method pipedream, which never flushes within a segment" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --pipeline-place --pipeline-generate-schedule --pipeline-set-training=method=pipedream --pipeline-assign-versions
// RUN: %expect-error --any-lines "for the --method option: unknown method 'hogwild': known are sync, naive, pipedream, 2bw, pipemare, spectrain, xpipe, pipeoptim, timeprest, v-timeprest, i-timeprest, hetpipe" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=method=hogwild --pipeline-place --pipeline-generate-schedule --pipeline-assign-versions
// RUN: %expect-error --any-lines "error: 'pipeline.schedule' op does not fit method sync, which flushes at every update" -- penstock-opt %s --pipeline-set-training --pipeline-assign-versions

// Reads of what updates write get a lag in forward and backward: not in updates,
// not of gradients, and not in evaluation, which sees the newest.
// CHECK:      pipeline.task @s0.F
// CHECK:        pipeline.read @fc1 lag(0)
// CHECK-NEXT:   pipeline.read @fc2 lag(0)
// CHECK:      pipeline.task @s0.B
// CHECK:        pipeline.read @fc2 lag(0)
// CHECK-NEXT:   pipeline.read @fc1.grad :
// CHECK:      pipeline.task @s0.U
// CHECK:        pipeline.read @fc1 :
// CHECK:      pipeline.task @s0.E
// CHECK:        pipeline.read @fc1 :

pipeline.stage @s devices [0]
pipeline.channel @x : [tensor<3xf32>] source(input "x")
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : tensor<3xf32>
}
pipeline.schedule @train microbatches(2) {
  pipeline.order 0 {
    pipeline.repeat microbatches {
      pipeline.run @s.F
    }
  }
}
