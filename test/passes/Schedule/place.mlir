// RUN: penstock-opt %s --pipeline-place | FileCheck %s --check-prefix=ALL
// RUN: penstock-opt %s --pipeline-place='devices=2' | FileCheck %s --check-prefix=TWO
// RUN: penstock-opt %s --pipeline-place='devices=3' | FileCheck %s --check-prefix=THREE
// RUN: penstock-opt %s --pipeline-place='devices=1' | FileCheck %s --check-prefix=ONE
// RUN: penstock-opt %s --pipeline-place='devices=2 placement=loop chunks=2' | FileCheck %s --check-prefix=LOOP
// RUN: penstock-opt %s --pipeline-place='devices=2 schedule=zb-v' | FileCheck %s --check-prefix=WAVE
// RUN: penstock-opt %s --pipeline-place='schedule=zb-v' | FileCheck %s --check-prefix=WAVE
// RUN: penstock-opt %s --pipeline-place='devices=1 placement=wave' | FileCheck %s --check-prefix=ONE
// RUN: penstock-opt %s --pipeline-place='devices=4 schedule=chimera' | FileCheck %s --check-prefix=MIRROR
// RUN: penstock-opt %s --pipeline-place='replicas=2' | FileCheck %s --check-prefix=PAIRS
// RUN: penstock-opt %s --pipeline-place='devices=4 replicas=2' | FileCheck %s --check-prefix=SHARED
// RUN: penstock-opt %s --pipeline-place='replicas=3,1,2,1,1' | FileCheck %s --check-prefix=WIDTHS
// RUN: %expect-error --any-lines "cannot place 2 replicas of every stage on 5 devices: not a multiple" -- penstock-opt %s --pipeline-place='devices=5 replicas=2'
// RUN: %expect-error --any-lines "there are 5 stages, and numbers of replicas of 2" -- penstock-opt %s --pipeline-place='replicas=2,1'
// RUN: %expect-error --any-lines "the stages have 8 replicas, which need as many devices, not 5" -- penstock-opt %s --pipeline-place='devices=5 replicas=3,1,2,1,1'
// RUN: %expect-error --any-lines "a number of replicas is at least 1" -- penstock-opt %s --pipeline-place='replicas=0'
// RUN: %expect-error --any-lines "schedule chimera has two replicas of every stage by itself" -- penstock-opt %s --pipeline-place='replicas=2 schedule=chimera'
// RUN: %expect-error --any-lines "error: cannot place 5 stages on 3 devices, each with 2: it takes 6" -- penstock-opt %s --pipeline-place='devices=3 schedule=interleaved'
// RUN: %expect-error --any-lines "for the --schedule option: schedule '2f2b' is not known" -- penstock-opt %s --pipeline-place='schedule=2f2b'
// RUN: %expect-error --any-lines "error: cannot place 5 stages on 6 devices: between 1 and 5 can be used" -- penstock-opt %s --pipeline-place='devices=6'
// RUN: %expect-error --any-lines "error: placement 'ring' is not known; there are line, loop, wave" -- penstock-opt %s --pipeline-place='placement=ring'

// Replicas are next to each other; devices count all of them.
// PAIRS:      @s0 devices [0, 1]
// PAIRS-NEXT: @s1 devices [2, 3]
// PAIRS:      @s4 devices [8, 9]
// SHARED:      @s0 devices [0, 1]
// SHARED-NEXT: @s1 devices [0, 1]
// SHARED-NEXT: @s2 devices [0, 1]
// SHARED-NEXT: @s3 devices [2, 3]
// SHARED-NEXT: @s4 devices [2, 3]
// WIDTHS:      @s0 devices [0, 1, 2]
// WIDTHS-NEXT: @s1 devices [3]
// WIDTHS-NEXT: @s2 devices [4, 5]
// WIDTHS-NEXT: @s3 devices [6]
// WIDTHS-NEXT: @s4 devices [7]

// A device per stage; or neighbors share one, the first devices having more.
// ALL:      @s0 devices [0]
// ALL-NEXT: @s1 devices [1]
// ALL-NEXT: @s2 devices [2]
// ALL-NEXT: @s3 devices [3]
// ALL-NEXT: @s4 devices [4]
// TWO:      @s0 devices [0]
// TWO-NEXT: @s1 devices [0]
// TWO-NEXT: @s2 devices [0]
// TWO-NEXT: @s3 devices [1]
// TWO-NEXT: @s4 devices [1]
// THREE:      @s0 devices [0]
// THREE-NEXT: @s1 devices [0]
// THREE-NEXT: @s2 devices [1]
// THREE-NEXT: @s3 devices [1]
// THREE-NEXT: @s4 devices [2]
// ONE:      @s0 devices [0]
// ONE:      @s4 devices [0]
// Chunks go round, or down and up; neighbors share one.
// LOOP:      @s0 devices [0]
// LOOP-NEXT: @s1 devices [0]
// LOOP-NEXT: @s2 devices [1]
// LOOP-NEXT: @s3 devices [0]
// LOOP-NEXT: @s4 devices [1]
// WAVE:      @s0 devices [0]
// WAVE-NEXT: @s1 devices [0]
// WAVE-NEXT: @s2 devices [1]
// WAVE-NEXT: @s3 devices [1]
// WAVE-NEXT: @s4 devices [0]
// MIRROR:      @s0 devices [0, 3]
// MIRROR:      @s4 devices [3, 0]
pipeline.stage @s0
pipeline.stage @s1
pipeline.stage @s2
pipeline.stage @s3
pipeline.stage @s4
