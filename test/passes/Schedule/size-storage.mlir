// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=4 --pipeline-place --pipeline-generate-schedule --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage | FileCheck %s --check-prefix=TWO
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=5 --pipeline-place --pipeline-generate-schedule=schedule=gpipe --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage | FileCheck %s --check-prefix=GPIPE
// RUN: penstock-opt %s --split-input-file --pipeline-size-storage --verify-diagnostics | FileCheck %s

// x is kept by the residuals until B; h2 is sent from them in training, and
// needs staging in evaluation only.
// TWO: @x : {{.*}} slots(3)
// TWO: @labels : {{.*}} slots(2)
// TWO: @loss : {{.*}} staging(1)
// TWO: @h2 : {{.*}} slots(2) staging(1)
// TWO: @dh2 : {{.*}} slots(1) staging(1)
// TWO: @s0.residuals : {{.*}} slots(2)
// TWO: @s1.residuals : {{.*}} slots(1)

// All microbatches are alive at once.
// GPIPE: @x : {{.*}} slots(5)
// GPIPE: @h1 : {{.*}} slots(5)
// GPIPE-NOT: staging
// GPIPE: @dh1 : {{.*}} slots(2) staging(1)
// GPIPE: @skip : {{.*}} slots(4)
// GPIPE: @s0.residuals : {{.*}} slots(5)
// GPIPE: @s3.residuals : {{.*}} slots(5)

// B reads what F read, one update later: two versions of @w; of @v only F reads
// the older one before it is gone, so that its ring of one is no ring.
// CHECK: pipeline.weight_stash @w depth(2)
// CHECK-NOT: pipeline.weight_stash @v
!t = tensor<3xf32>
pipeline.stage @s devices [0]
pipeline.channel @x : [!t] source(input "x")
pipeline.variable @w : !t parameter of @s
pipeline.weight_stash @w depth(7)
pipeline.variable @v : !t parameter of @s
pipeline.weight_stash @v depth(2)
pipeline.channel @r : [!t]
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : !t
  %w = pipeline.read @w lag(1) : !t
  %v = pipeline.read @v lag(1) : !t
  pipeline.put %x to @r : !t
}
pipeline.task @s.B backward of @s(%k) {
  %x = pipeline.take @r : !t
  %w = pipeline.read @w lag(1) : !t
}
pipeline.task @s.U update of @s(%t) {
  %w = pipeline.read @w : !t
  %v = pipeline.read @v : !t
  pipeline.write %w to @w : !t
  pipeline.write %v to @v : !t
}
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 { pipeline.repeat microbatches {
    pipeline.recv @x ahead(2)
    pipeline.run @s.F ahead(1)
    pipeline.run @s.B
    pipeline.run @s.U every(1)
  } }
}

// -----

!t = tensor<3xf32>
pipeline.stage @s devices [0]
pipeline.channel @x : [!t] source(input "x")
// expected-error @+1 {{S3: needs 2 versions, and has no weight_stash}}
pipeline.variable @w : !t parameter of @s
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : !t
  %w = pipeline.read @w lag(1) : !t
}
pipeline.task @s.U update of @s(%t) {
  %w = pipeline.read @w : !t
  pipeline.write %w to @w : !t
}
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 { pipeline.repeat microbatches {
    pipeline.recv @x ahead(1)
    pipeline.run @s.F
    pipeline.run @s.U every(1)
  } }
}

// -----

!t = tensor<3xf32>
pipeline.stage @s devices [0]
pipeline.channel @x : [!t] source(input "x")
pipeline.variable @w : !t parameter of @s
// expected-error @+1 {{S3: @w needs 3 versions}}
pipeline.double_buffer @w
pipeline.task @s.F forward of @s(%k) {
  %x = pipeline.take @x : !t
  %w = pipeline.read @w lag(2) : !t
}
pipeline.task @s.U update of @s(%t) {
  %w = pipeline.read @w : !t
  pipeline.write %w to @w : !t
}
pipeline.schedule @train microbatches(1) {
  pipeline.order 0 { pipeline.repeat microbatches {
    pipeline.recv @x ahead(1)
    pipeline.run @s.F
    pipeline.run @s.U every(1)
  } }
}
