// RUN: penstock-opt %s --split-input-file | penstock-opt --split-input-file | FileCheck %s

// What a program says of its training. Defaults are not printed, what was given
// is, and no bit of a number is lost.

// CHECK: pipeline.training optimizer<sgd>
pipeline.training optimizer<sgd>

// -----

// CHECK: pipeline.training microbatches(4) optimizer<adamw, beta1 = 8.000000e-01, lr = 0.10000000000000002> rate<cosine, total_steps = 1000, warmup_steps = 50> clipping<5.000000e-01, stage> batch_norm frozen method<pipedream, vertical_sync = true>
pipeline.training microbatches(4) optimizer<adamw, lr = 0.10000000000000002, beta1 = 0.8>
  rate<cosine, warmup_steps = 50, total_steps = 1000> clipping<0.5, stage>
  batch_norm frozen method<pipedream, vertical_sync = true>

// -----

// Names that are no keywords are quoted; a default that was given stays.
// CHECK: pipeline.training microbatches(2) optimizer<sgd, momentum = 9.000000e-01, nesterov = true> method<"2bw">
// CHECK: pipeline.training infers
pipeline.training microbatches(2) optimizer<sgd, nesterov = true, momentum = 0.9> method<"2bw">
module { pipeline.training infers }

// -----

// The precision, which a program that infers has as well.
// CHECK: pipeline.training optimizer<sgd> precision bf16
// CHECK: pipeline.training infers precision bf16
pipeline.training optimizer<sgd> precision bf16
module { pipeline.training infers precision bf16 }

// -----

// CHECK: pipeline.training optimizer<adam> method<pipemare, anneal_steps = 500, decay = 1.353530e-01, warmup_steps = 7>
pipeline.training optimizer<adam> method<pipemare, anneal_steps = 500, decay = 0.135353, warmup_steps = 7>
