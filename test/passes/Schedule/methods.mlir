// The lags of each method, and what keeps the versions that they name. Four
// stages of one parameter each; that of the first is read by the forward only.
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=method=naive --lower-training-to-schedule=replay=false | FileCheck %s --check-prefix=NAIVE
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=method=pipedream --lower-training-to-schedule=replay=false | FileCheck %s --check-prefix=STASH
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='method=pipedream microbatches=2' --lower-training-to-schedule=replay=false | FileCheck %s --check-prefix=TWO
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=method=pipedream:vertical-sync --lower-training-to-schedule=replay=false | FileCheck %s --check-prefix=SYNC
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='method=2bw microbatches=4' --lower-training-to-schedule=replay=false | FileCheck %s --check-prefix=BUFFER
// RUN: %expect-error --any-lines "error: 'pipeline.schedule' op 2bw needs at least as many microbatches per update as the pipeline is deep: use --microbatches=4 or more, or a depth of 3 instead of 4" -- penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training='method=2bw microbatches=3' --lower-training-to-schedule
// RUN: %expect-error --any-lines "for the --method option: naive has no option 'momentum': it has none" -- penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=method=naive:momentum --lower-training-to-schedule

// One version, which every read finds at its age.
// NAIVE:     pipeline.stage @s0 devices [0] {pipeline.lags = array<i64: 3, 0>}
// NAIVE:     pipeline.stage @s3 devices [3] {pipeline.lags = array<i64: 0, 0>}
// NAIVE-NOT: weight_stash
// NAIVE:     pipeline.task @s0.F
// NAIVE:       pipeline.read @w0 lag(3)
// NAIVE:     pipeline.task @s1.F
// NAIVE:       pipeline.read @w1 lag(2)
// NAIVE:     pipeline.task @s1.B
// NAIVE:       pipeline.read @w1 lag(0)

// p - i versions at stage i, where the backward reads them.
// STASH:     pipeline.stage @s1 devices [1] {pipeline.lags = array<i64: 2, 2>}
// STASH-NOT: weight_stash @w0
// STASH:     pipeline.weight_stash @w1 depth(3)
// STASH:     pipeline.weight_stash @w2 depth(2)
// STASH-NOT: weight_stash @w3
// STASH:     pipeline.task @s1.F
// STASH:       pipeline.read @w1 lag(2)
// STASH:     pipeline.task @s1.B
// STASH:       pipeline.read @w1 lag(2)

// ceil(lag / M) + 1 of them.
// TWO:     pipeline.weight_stash @w1 depth(2)
// TWO:     pipeline.weight_stash @w2 depth(2)
// TWO-NOT: weight_stash

// SYNC-NOT: weight_stash @w0
// SYNC:     pipeline.weight_stash @w1 depth(4)
// SYNC:     pipeline.weight_stash @w2 depth(4)
// SYNC:     pipeline.weight_stash @w3 depth(4)
// SYNC:     pipeline.read @w3 lag(3)

// BUFFER: pipeline.double_buffer @w0
// BUFFER: pipeline.double_buffer @w1
// BUFFER: pipeline.double_buffer @w2
// BUFFER: pipeline.double_buffer @w3
// BUFFER: pipeline.read @w0 lag(4)
// BUFFER: pipeline.read @w3 lag(4)
