// RUN: penstock-opt %s --split-input-file --verify-diagnostics

// One case for each rule of the facts by themselves. Methods, optimizers and
// schedules are those of the command line, and so is what is said of them.

// expected-error @+1 {{C32: trains without an optimizer}}
pipeline.training microbatches(4)

// -----

// expected-error @+1 {{C32: says how to train, and infers}}
pipeline.training infers microbatches(4)

// -----

// expected-error @+1 {{C32: says how to train, and infers}}
pipeline.training infers optimizer<sgd>

// -----

// expected-error @+1 {{attribute 'microbatches' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
pipeline.training microbatches(0) optimizer<sgd>

// -----

// expected-error @+1 {{unknown method 'hogwild': known are sync, naive, pipedream, 2bw, pipemare, spectrain, xpipe, pipeoptim, timeprest, v-timeprest, i-timeprest, hetpipe}}
pipeline.training optimizer<sgd> method<hogwild>

// -----

// expected-error @+1 {{naive has no option 'vertical-sync': it has none}}
pipeline.training optimizer<sgd> method<naive, vertical_sync = true>

// -----

// expected-error @+1 {{pipedream: vertical-sync is true or false}}
pipeline.training optimizer<sgd> method<pipedream, vertical_sync = 1>

// -----

// expected-error @+1 {{pipemare: warmup-steps needs a number of updates, as in warmup-steps=100, not '-1'}}
pipeline.training optimizer<sgd> method<pipemare, warmup_steps = -1>

// -----

// expected-error @+1 {{pipemare: anneal-steps is an i64}}
pipeline.training optimizer<sgd> method<pipemare, anneal_steps = 0.5>

// -----

// expected-error @+1 {{pipemare: decay needs a number from 0 (off) to below 1, as in decay=0.135353, not '1'}}
pipeline.training optimizer<sgd> method<pipemare, decay = 1.0>

// -----

// expected-error @+1 {{decay is given twice}}
pipeline.training optimizer<sgd> method<pipemare, decay = 0.5, decay = 0.5>

// -----

// expected-error @+1 {{unknown optimizer 'sophia': known are sgd, adam, adamw, nadam, rmsprop, adagrad, lion, adafactor}}
pipeline.training optimizer<sophia>

// -----

// expected-error @+1 {{adam has no option 'momentum': known are lr, weight-decay, beta1, beta2, eps}}
pipeline.training optimizer<adam, momentum = 0.9>

// -----

// expected-error @+1 {{adam: beta2=1 is not below 1}}
pipeline.training optimizer<adam, beta2 = 1.0>

// -----

// expected-error @+1 {{sgd: lr=-1 is negative}}
pipeline.training optimizer<sgd, lr = -1.0>

// -----

// expected-error @+1 {{sgd: lr is an f64}}
pipeline.training optimizer<sgd, lr = 1>

// -----

// expected-error @+1 {{sgd: nesterov needs momentum > 0 and dampening = 0, as in sgd:momentum=0.9,nesterov}}
pipeline.training optimizer<sgd, nesterov = true>

// -----

// expected-error @+1 {{unknown schedule 'exponential': known are constant, linear, cosine, step, poly}}
pipeline.training optimizer<sgd> rate<exponential>

// -----

// expected-error @+1 {{cosine needs total-steps, the update after which the rate stays: cosine:total-steps=1000}}
pipeline.training optimizer<sgd> rate<cosine>

// -----

// expected-error @+1 {{step: step-size=0: a positive number is needed}}
pipeline.training optimizer<sgd> rate<step, step_size = 0>

// -----

// expected-error @+1 {{the bound of a norm is a positive f64, got 0.000000e+00 : f64}}
pipeline.training optimizer<sgd> clipping<0.0, global>
