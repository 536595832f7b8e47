// The table of torch.distributed.pipelining: a row per device.
// RUN: rm -rf %t && split-file %s %t
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-import-schedule=file=%t/v.csv | FileCheck %s --check-prefix=RUNS
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-import-schedule=file=%t/v.csv --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=PROVED
// RUN: penstock-opt %S/inputs/four-stages.mlir --pipeline-import-schedule=file=%t/sends.csv --pipeline-assign-versions --pipeline-order-transfers --pipeline-size-storage --pipeline-verify-schedule=remarks 2>&1 | FileCheck %s --check-prefix=SENDS

// Stages go where the table has them; numbers are implied. Other systems'
// actions on parameters are skipped, a pair runs one after the other.
// RUNS: pipeline.stage @s0 devices [0]
// RUNS: pipeline.stage @s1 devices [1]
// RUNS: pipeline.stage @s2 devices [1]
// RUNS: pipeline.stage @s3 devices [0]
// RUNS:      pipeline.schedule @train microbatches(2) {
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

// DEFINE: %{refused} =
// DEFINE: %{refuse} = not penstock-opt %S/inputs/four-stages.mlir \
// DEFINE:   --pipeline-import-schedule=file=%t/%{refused}.csv \
// DEFINE:   --pipeline-assign-versions --pipeline-order-transfers 2>&1 | \
// DEFINE:   FileCheck %s --check-prefix
// REDEFINE: %{refused} = circle
// RUN: %{refuse} CIRCLE
// REDEFINE: %{refused} = order
// RUN: %{refuse} ORDER
// REDEFINE: %{refused} = again
// RUN: %{refuse} AGAIN
// REDEFINE: %{refused} = twice
// RUN: %{refuse} TWICE
// REDEFINE: %{refused} = word
// RUN: %{refuse} WORD
// REDEFINE: %{refused} = pair
// RUN: %{refuse} PAIR
// REDEFINE: %{refused} = missing
// RUN: %{refuse} MISSING
// REDEFINE: %{refused} = number
// RUN: %{refuse} NUMBER
// REDEFINE: %{refused} = stages
// RUN: %{refuse} STAGES
// REDEFINE: %{refused} = empty
// RUN: %{refuse} EMPTY
// REDEFINE: %{refused} = none
// RUN: %{refuse} NONE
// RUN: not penstock-opt %S/inputs/four-stages.mlir --pipeline-import-schedule='file=%t/v.csv microbatches=3' 2>&1 | FileCheck %s --check-prefix=COUNT

// CIRCLE: error: 'pipeline.schedule' op cannot be given its transfers: run @s0.B of microbatch 0 on device 0 and run @s1.F of microbatch 1 on device 1 wait for each other
// CIRCLE: note: device 0: @s0.F[0] | @s0.B[0] waits for @s1.B[0] of device 1
// CIRCLE: note: device 1: @s1.F[0] | @s1.F[1] waits for @s0.F[1] of device 0
// ORDER: error: schedule file {{.*}}: row 1, cell 1 ('0F1'): microbatch 0 is due; a stage's microbatches run in order
// AGAIN: error: schedule file {{.*}}: row 1, cell 4 ('0B1') is there already
// TWICE: error: schedule file {{.*}}: row 2, cell 2 ('0B0'): stage 0 is in row 1 already; a stage has one device
// WORD: error: schedule file {{.*}}: row 1, cell 2 ('0X0') is no action; actions are stage, letter, microbatch, as in 2F0, or transfers, as in 2SEND_F0
// PAIR: error: schedule file {{.*}}: row 1, cell 2 ('(0F1;0B0)TOGETHER') is no action: a pair is written (0F1;3B0)OVERLAP_F_B
// MISSING: error: schedule file {{.*}}: stage 0 runs backward for 0 of 1 microbatches
// NUMBER: error: schedule file {{.*}}: row 1, cell 1 ('0F') is without a microbatch
// STAGES: error: schedule file {{.*}} has 2 stages, the program 4
// EMPTY: error: schedule file {{.*}}: there is no action
// NONE: error: schedule file {{.*}}none.csv: No such file or directory
// COUNT: error: schedule file {{.*}} has 2 microbatches, not 3

//--- v.csv
0UNSHARD,0F0,0F1,3F0,3B0,(3F1;3B1)OVERLAP_F_B,0B0,,0B1,0REDUCE_GRAD
1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1
//--- sends.csv
0F0,0SEND_F0,0RECV_B0,0B0
1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0
2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2SEND_B0
3RECV_F0,3F0,3B0,3SEND_B0
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
0F0
//--- number.csv
0F
//--- stages.csv
0F0,0B0
1F0,1B0
//--- empty.csv

//--- unused
