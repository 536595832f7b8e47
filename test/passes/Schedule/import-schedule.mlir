// The table of torch.distributed.pipelining: a row per device.
// RUN: rm -rf %t && split-file %s %t
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=2 --pipeline-import-schedule=file=%t/v.csv | FileCheck %s --check-prefix=RUNS
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-place=file=%t/v.csv | FileCheck %s --check-prefix=PLACES
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=2 --pipeline-import-schedule=file=%t/v.csv --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=PROVED
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=1 --pipeline-import-schedule=file=%t/sends.csv --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=SENDS

// Stages go where the table has them; numbers are implied. Other systems'
// actions on parameters are skipped, a pair runs one after the other.
// RUNS: pipeline.stage @s0 devices [0]
// RUNS: pipeline.stage @s1 devices [1]
// RUNS: pipeline.stage @s2 devices [1]
// RUNS: pipeline.stage @s3 devices [0]
// PLACES: pipeline.stage @s0 devices [0]
// PLACES: pipeline.stage @s2 devices [1]
// PLACES-NOT: pipeline.schedule
// RUNS:      pipeline.schedule @train microbatches(2) generator<file> {
// RUNS-NEXT:   pipeline.order 0 {
// RUNS-NEXT:     pipeline.repeat updates {
// RUNS-NEXT:       pipeline.run @s0.F
// RUNS-NEXT:       pipeline.run @s0.F
// RUNS-NEXT:       pipeline.run @s3.F
// RUNS-NEXT:       pipeline.run @s3.B
// RUNS-NEXT:       pipeline.run @s3.F
// RUNS-NEXT:       pipeline.run @s3.B
// RUNS-NEXT:       pipeline.run @s0.B
// RUNS-NEXT:       pipeline.run @s0.B
// RUNS-NEXT:       pipeline.run @s0.U
// RUNS-NEXT:       pipeline.run @s3.U
// PROVED: remark: proved:
// PROVED: pipeline.send

// Transfers stay where they were written; data and losses are ours.
// SENDS: remark: proved:
// SENDS:      pipeline.order 0
// SENDS-NEXT:   pipeline.repeat updates {
// SENDS-NEXT:     pipeline.recv @x
// SENDS-NEXT:     pipeline.run @s0.F
// SENDS-NEXT:     pipeline.send @h1
// SENDS-NEXT:     pipeline.send @skip
// SENDS-NEXT:     pipeline.recv @dh1
// SENDS-NEXT:     pipeline.recv @dskip
// SENDS-NEXT:     pipeline.run @s0.B

// What stage 0 sends past the others has no cell: where it stood right behind
// what stage 1 gets, stage 3 would have to receive it before anything else, or
// all would wait in a circle.
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=2 --pipeline-import-schedule=file=%t/past.csv --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=PAST
// PAST: remark: proved:
// PAST:      pipeline.order 0
// PAST:      pipeline.send @h1
// PAST-NEXT: pipeline.send @h1
// PAST-NEXT: pipeline.send @skip
// PAST-NEXT: pipeline.send @skip
// PAST:      pipeline.order 3
// PAST:      pipeline.recv @h3
// PAST-NEXT: pipeline.recv @skip
// PAST:      pipeline.run @s3.F

// Stages with replicas stand in as many rows, which take turns: device 1 has the
// even microbatches of stage 3, whatever its place. Sums are ours.
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=2 --pipeline-import-schedule='file=%t/wide.csv replicas=2,1,1,2' --pipeline-sum-replicas --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=2 --pipeline-import-schedule='file=%t/wide-sends.csv replicas=2,1,1,2' --pipeline-sum-replicas --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: remark: proved:
// WIDE: pipeline.stage @s0 devices [0, 2]
// WIDE: pipeline.stage @s1 devices [3]
// WIDE: pipeline.stage @s2 devices [4]
// WIDE: pipeline.stage @s3 devices [1, 5]
// WIDE: pipeline.order 0
// WIDE: pipeline.all_reduce @s0.replicas
// WIDE-NEXT: pipeline.run @s0.U

// A file, how many replicas its stages have, and of how many microbatches.
// DEFINE: %{replicas} = 1
// DEFINE: %{microbatches} = 2
// DEFINE: %{rejects} = %each 'not penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=%{microbatches} \
// DEFINE:   --pipeline-import-schedule="file=%t/{flags}.csv replicas=%{replicas}" \
// DEFINE:   --pipeline-assign-versions --pipeline-order-transfers 2>&1 | FileCheck %s --check-prefix={name}'
// RUN: %{rejects} circle order again twice word pair part number stages empty none
// REDEFINE: %{microbatches} = 1
// RUN: %{rejects} missing
// REDEFINE: %{microbatches} = 2
// REDEFINE: %{replicas} = 2
// RUN: %{rejects} mixed elsewhere late odd
// REDEFINE: %{replicas} = 2,1
// RUN: %{rejects} 'widths: mixed'
// RUN: not penstock-opt %S/inputs/four-stages.mlir --pipeline-set-training=microbatches=3 --pipeline-import-schedule=file=%t/v.csv 2>&1 | FileCheck %s --check-prefix=COUNT

// circle: error: 'pipeline.schedule' op cannot be given its transfers: run @s0.B of microbatch 0 on device 0 and run @s1.F of microbatch 1 on device 1 wait for each other
// circle: note: device 0: @s0.F[0] | @s0.B[0] waits for @s1.B[0] of device 1
// circle: note: device 1: @s1.F[0] | @s1.F[1] waits for @s0.F[1] of device 0
// order: error: schedule file {{.*}}: row 1, cell 1 ('0F1'): microbatch 0 is due; a stage's microbatches run in order
// again: error: schedule file {{.*}}: row 1, cell 4 ('0B1') is there already
// twice: error: schedule file {{.*}}: row 2, cell 2 ('0B0'): stage 0 is in row 1 already; without --replicas, a stage has one device
// word: error: schedule file {{.*}}: row 1, cell 2 ('0X0') is no action; actions are stage, letter, microbatch, as in 2F0, or transfers, as in 2SEND_F0
// pair: error: schedule file {{.*}}: row 1, cell 2 ('(0F1;0B0)TOGETHER') is no action: a pair is written (0F1;3B0)OVERLAP_F_B
// missing: error: schedule file {{.*}}: row 3: stage 2 runs B for 0 of 1 microbatches
// part: error: schedule file {{.*}}: stage 0 runs backward for 1 of 2 microbatches
// number: error: schedule file {{.*}}: row 1, cell 1 ('0F') is without a microbatch
// stages: error: schedule file {{.*}} has 2 stages, the program 4
// empty: error: schedule file {{.*}}: there is no action
// none: error: schedule file {{.*}}none.csv: No such file or directory
// mixed: error: schedule file {{.*}}: row 1, cell 2 ('0F1'): microbatch 1 is for replica 1 of 2 of stage 0, and the row is replica 0
// elsewhere: error: schedule file {{.*}}: row 2, cell 1 ('0F2'): microbatch 2 is for replica 0 of 2 of stage 0, which is in row 1
// late: error: schedule file {{.*}}: row 1, cell 1 ('0F2'): microbatch 0 is due; a stage's microbatches run in order
// odd: error: schedule file {{.*}}: it has 3 microbatches, no multiple of the 2 replicas of stage 0
// widths: error: schedule file {{.*}}: it has 1 stages, and there are 2 numbers of replicas
// COUNT: error: schedule file {{.*}} has 2 microbatches, not 3

//--- v.csv
0UNSHARD,0F0,0F1,3F0,3B0,(3F1;3B1)OVERLAP_F_B,0B0,,0B1,0REDUCE_GRAD
1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1
//--- sends.csv
0F0,0SEND_F0,0RECV_B0,0B0
1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0
2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2SEND_B0
3RECV_F0,3F0,3B0,3SEND_B0
//--- past.csv
0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
1RECV_F0,1RECV_F1,1F0,1F1,1SEND_F0,1SEND_F1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1
2RECV_F0,2F0,2SEND_F0,2RECV_F1,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1
3RECV_F0,3F0,3RECV_F1,3F1,3B0,3SEND_B0,3B1,3SEND_B1
//--- wide.csv
0F0,0B0
3F0,3B0
0F1,0B1
1F0,1F1,1B0,1B1
2F0,2F1,2B0,2B1
3F1,3B1
//--- wide-sends.csv
0F0,0SEND_F0,0RECV_B0,0B0
3RECV_F0,3F0,3B0,3SEND_B0
0F1,0SEND_F1,0RECV_B1,0B1
1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1
2RECV_F0,2F0,2SEND_F0,2RECV_F1,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1
3RECV_F1,3F1,3B1,3SEND_B1
//--- mixed.csv
0F0,0F1,0B0,0B1
//--- elsewhere.csv
0F0,0B0
0F2,0F3,0B2
//--- late.csv
0F2,0F0
0F1,0F3
//--- odd.csv
0F0,0F2
0F1
//--- circle.csv
0F0,0B0,0F1,0B1
1F0,1F1,1B0,1B1
2F0,2F1,2B0,2B1
3F0,3F1,3B0,3B1
//--- order.csv
0F1,0F0,0B0,0B1
//--- again.csv
0F0,0F1,0B1,0B1
//--- twice.csv
0F0
1F0,0B0,1B0
//--- word.csv
0F0,0X0
//--- pair.csv
0F0,(0F1;0B0)TOGETHER
//--- missing.csv
0F0,0B0
1F0,1B0
2F0
3F0,3B0
//--- part.csv
0F0,0F1,0B0
//--- number.csv
0F
//--- stages.csv
0F0,0B0
1F0,1B0
//--- empty.csv

//--- unused
