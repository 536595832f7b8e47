// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=6 --pipeline-place --pipeline-generate-schedule=schedule=1f1b | FileCheck %s --check-prefix=FLUSH
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=6 --pipeline-place --pipeline-generate-schedule=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=6 --pipeline-place='devices=2' --pipeline-generate-schedule | FileCheck %s --check-prefix=SHARED
// RUN: penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --pipeline-place --pipeline-generate-schedule | FileCheck %s --check-prefix=EVAL
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=6 --pipeline-place='devices=2 schedule=interleaved' --pipeline-generate-schedule=schedule=interleaved | FileCheck %s --check-prefix=LOOP
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=6 --pipeline-place --pipeline-generate-schedule=schedule=zb-h2 | FileCheck %s --check-prefix=WHOLE
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=40 --pipeline-place='schedule=zb-v' --pipeline-generate-schedule=schedule=zb-v | FileCheck %s --check-prefix=WRITTEN
// RUN: %expect-error --any-lines "error: schedule zb-v on 2 devices needs its stages placed for it: stage 1 is not where it belongs" -- penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=8 --pipeline-place='devices=2' --pipeline-generate-schedule=schedule=zb-v
// RUN: %expect-error --any-lines "error: schedule interleaved on 2 devices needs a multiple of 2 microbatches, not 5" -- penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=5 --pipeline-place='devices=2 schedule=interleaved' --pipeline-generate-schedule=schedule=interleaved
// RUN: %expect-error --any-lines "for the --schedule option: schedule '2f2b' is not known; there are gpipe, 1f1b, interleaved:chunks=2," -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --pipeline-place --pipeline-generate-schedule=schedule=2f2b
// RUN: %expect-error --any-lines "error: 'pipeline.training' op attribute 'microbatches' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training=microbatches=0 --pipeline-place --pipeline-generate-schedule
// RUN: %expect-error --any-lines "error: 'pipeline.stage' op has no device; run pipeline-place first" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --pipeline-generate-schedule
// RUN: %expect-error --any-lines "error: has a schedule already" -- penstock-opt %S/inputs/two-stages.mlir --pipeline-set-training --pipeline-place --pipeline-generate-schedule --pipeline-generate-schedule

// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='microbatches=2 method=naive' --pipeline-place --pipeline-generate-schedule=schedule=nf1b:ahead=2 | FileCheck %s --check-prefix=MANY
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='microbatches=2 method=naive' --pipeline-place --pipeline-generate-schedule=schedule=nf1b:ahead=2 --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule | FileCheck %s --check-prefix=ROUND
// RUN: %expect-error --any-lines "error: schedule nf1b on 4 devices runs forwards at most 3 updates ahead, not 4: use ahead=3 or leave it out" -- penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='microbatches=2 method=naive' --pipeline-place --pipeline-generate-schedule=schedule=nf1b:ahead=4

// All forwards of an update, two updates ahead of its backwards where there are
// as many stages behind.
// MANY:      pipeline.schedule @train microbatches(2) generator<nf1b, ahead = 2> {
// MANY-NEXT:   pipeline.order 0 {
// MANY-NEXT:     pipeline.repeat microbatches 2 {
// MANY-NEXT:       pipeline.run @s0.F ahead(2)
// MANY-NEXT:       pipeline.run @s0.F ahead(2)
// MANY-NEXT:       pipeline.run @s0.B
// MANY-NEXT:       pipeline.run @s0.B
// MANY-NEXT:       pipeline.run @s0.U every(1)
// MANY-NEXT:     }
// MANY:        pipeline.order 1 {
// MANY:            pipeline.run @s1.F ahead(2)
// MANY:        pipeline.order 2 {
// MANY:            pipeline.run @s2.F ahead(1)
// MANY:        pipeline.order 3 {
// MANY:            pipeline.run @s3.F{{$}}

// Lags of whole updates; messages move one by one.
// ROUND: pipeline.stage @s0 devices [0] {pipeline.lags = array<i64: 4, 0>}
// ROUND: pipeline.stage @s1 devices [1] {pipeline.lags = array<i64: 4, 0>}
// ROUND: pipeline.stage @s2 devices [2] {pipeline.lags = array<i64: 2, 0>}
// ROUND: pipeline.stage @s3 devices [3] {pipeline.lags = array<i64: 0, 0>}
// ROUND:        pipeline.order 3 {
// ROUND-NEXT:     pipeline.repeat microbatches 2 {
// ROUND:            pipeline.run @s3.F{{$}}
// ROUND-NEXT:       pipeline.send @loss
// ROUND:            pipeline.run @s3.F{{$}}
// ROUND:            pipeline.run @s3.B{{$}}
// ROUND:            pipeline.send @dh3
// ROUND:            pipeline.run @s3.B{{$}}
// ROUND:            pipeline.run @s3.U every(1)

// F runs ahead by the number of stages that follow.
// FLUSH:      pipeline.schedule @train microbatches(6) generator<"1f1b"> {
// FLUSH-NEXT:   pipeline.order 0 {
// FLUSH-NEXT:     pipeline.repeat updates {
// FLUSH-NEXT:       pipeline.repeat times 6 {
// FLUSH-NEXT:         pipeline.run @s0.F ahead(3)
// FLUSH-NEXT:         pipeline.run @s0.B
// FLUSH-NEXT:       }
// FLUSH-NEXT:       pipeline.run @s0.U
// FLUSH-NEXT:     }
// FLUSH-NEXT:   }
// FLUSH:        pipeline.order 2 {
// FLUSH:              pipeline.run @s2.F ahead(1)
// FLUSH:        pipeline.order 3 {
// FLUSH:              pipeline.run @s3.F{{$}}
// There are no evaluate tasks.
// FLUSH-NOT:  @evaluate

// GPIPE:          pipeline.repeat times 6 {
// GPIPE-NEXT:       pipeline.run @s0.F
// GPIPE-NEXT:     }
// GPIPE-NEXT:     pipeline.repeat times 6 {
// GPIPE-NEXT:       pipeline.run @s0.B
// GPIPE-NEXT:     }
// GPIPE-NEXT:     pipeline.run @s0.U

// Stages of one device run like one stage.
// SHARED:       pipeline.order 0
// SHARED:           pipeline.run @s0.F ahead(1)
// SHARED-NEXT:      pipeline.run @s1.F ahead(1)
// SHARED-NEXT:      pipeline.run @s1.B
// SHARED-NEXT:      pipeline.run @s0.B
// SHARED-NEXT:    }
// SHARED-NEXT:    pipeline.run @s0.U
// SHARED-NEXT:    pipeline.run @s1.U
// SHARED:       pipeline.order 1
// SHARED-NOT:   pipeline.order

// EVAL:      pipeline.schedule @train microbatches(1)
// EVAL:      pipeline.schedule @evaluate to evaluate microbatches(1) {
// EVAL-NEXT:   pipeline.order 0 {
// EVAL-NEXT:     pipeline.repeat microbatches {
// EVAL-NEXT:       pipeline.run @s0.E
// EVAL:        pipeline.order 1 {
// EVAL-NEXT:     pipeline.repeat microbatches {
// EVAL-NEXT:       pipeline.run @s1.E

// A round of microbatches is one iteration; a task may stand in it several
// times.
// LOOP:      pipeline.order 0
// LOOP-NEXT:   pipeline.repeat updates {
// LOOP-NEXT:     pipeline.repeat times 3 {
// LOOP-NEXT:       pipeline.run @s0.F ahead(1)
// LOOP-NEXT:       pipeline.run @s2.B
// LOOP-NEXT:       pipeline.run @s0.F ahead(1)
// LOOP-NEXT:       pipeline.run @s2.B
// LOOP-NEXT:       pipeline.run @s2.F ahead(1)
// LOOP-NEXT:       pipeline.run @s0.B
// LOOP-NEXT:       pipeline.run @s2.F ahead(1)
// LOOP-NEXT:       pipeline.run @s0.B
// LOOP-NEXT:     }
// LOOP-NEXT:     pipeline.run @s0.U
// LOOP-NEXT:     pipeline.run @s2.U

// A backward that is not split stands where the half does that others wait for.
// WHOLE:      pipeline.repeat times 6 {
// WHOLE-NEXT:   pipeline.run @s0.F ahead(6)
// WHOLE-NEXT:   pipeline.run @s0.B
// WHOLE-NEXT: }

// What has no such form is written out, but for the part that recurs.
// WRITTEN:      pipeline.order 0
// WRITTEN-NEXT:   pipeline.repeat updates {
// WRITTEN-NEXT:     pipeline.run @s0.F
// WRITTEN:          pipeline.repeat times 3{{[0-9]}} {
// WRITTEN-NEXT:       pipeline.run
// WRITTEN-NEXT:       pipeline.run
// WRITTEN-NEXT:       pipeline.run
// WRITTEN-NEXT:       pipeline.run
// WRITTEN-NEXT:     }

// Without flush there is one loop, and the update stands in it.
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='method=naive microbatches=6' --pipeline-place --pipeline-generate-schedule | FileCheck %s --check-prefix=OPEN
// OPEN:      pipeline.schedule @train microbatches(6) generator<"1f1b"> {
// OPEN-NEXT:   pipeline.order 0 {
// OPEN-NEXT:     pipeline.repeat microbatches {
// OPEN-NEXT:       pipeline.run @s0.F ahead(3)
// OPEN-NEXT:       pipeline.run @s0.B
// OPEN-NEXT:       pipeline.run @s0.U every(6)
// OPEN-NEXT:     }
// OPEN:        pipeline.order 3 {
// OPEN-NEXT:     pipeline.repeat microbatches {
// OPEN-NEXT:       pipeline.run @s3.F
// OPEN-NEXT:       pipeline.run @s3.B
// OPEN-NEXT:       pipeline.run @s3.U every(6)
