//===- Passes.td - Training passes -------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From forward tasks to forward, backward, update and evaluate tasks.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_PASSES_TD
#define PENSTOCK_PASSES_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelineSetTraining : Pass<"pipeline-set-training", "::mlir::ModuleOp"> {
  let summary = "Says how the program trains, or that it infers";
  let description = [{
    Adds `pipeline.training`, or replaces those of its facts that are given. The
    compiler's driver does so from its flags; this is the same by hand.

    ```mlir
    // penstock-opt --pipeline-set-training='microbatches=4 optimizer=adamw
    //   lr-schedule=cosine:total-steps=1000 method=2bw'
    pipeline.training microbatches(4) optimizer<adamw>
      rate<cosine, total_steps = 1000> method<"2bw">
    ```
  }];
  let options = [
    Option<"microbatches", "microbatches", "int64_t", "1",
           "Microbatches per weight update">,
    Option<"optimizer", "optimizer", "::penstock::OptimizerSpec", "",
           "Optimizer, with parameters: sgd:lr=0.1,momentum=0.9">,
    Option<"rates", "lr-schedule", "::penstock::RateSchedule", "",
           "Learning-rate schedule, with parameters: step:step-size=30">,
    Option<"clipGradNorm", "clip-grad-norm", "double", "0",
           "Bound of the norm of the gradients">,
    Option<"clipScope", "clip-scope", "::penstock::pipeline::ClipScope",
           "::penstock::pipeline::ClipScope::Global",
           "Whose norm is bounded", "::penstock::clipScopes()">,
    Option<"batchNorm", "batch-norm", "::penstock::pipeline::BatchNorm",
           "::penstock::pipeline::BatchNorm::Train",
           "Statistics of batch normalization",
           "::penstock::batchNormModes()">,
    Option<"precision", "precision", "::penstock::pipeline::Precision",
           "::penstock::pipeline::Precision::F32",
           "What f32 tensors are rounded to", "::penstock::precisions()">,
    Option<"method", "method", "::penstock::MethodSpec", "",
           "Training method, with parameters: pipedream:vertical-sync">,
    Option<"infer", "infer", "bool", "false",
           "The program infers; leaves out all the others but the precision">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineDeriveEvaluate
    : Pass<"pipeline-derive-evaluate", "::mlir::ModuleOp"> {
  let summary = "Adds the tasks that evaluate the model";
  let description = [{
    Every stage gets a task of kind `evaluate` that calls a copy of its forward
    function over the same channels. Where the loss is one `nn.cross_entropy`,
    its stage also puts how many labels were predicted (`correct`; the first
    index of the largest logit) and how many there were (`count`). Functions
    that are equal become one. Ops that training changes are in inference form.

    In a program that infers these tasks replace the forward tasks, and nothing
    is counted.

    `metrics=top-5,mae` adds a sink for each: of `top-K`, the labels whose logit
    has fewer than K larger ones (of equal ones, the first is the larger); of
    `mae`, the mean of the absolute differences that a mean squared error is of.

    Runs before `pipeline-differentiate`, which adds residuals to the forward
    functions.

    ```mlir
    pipeline.task @s1.E evaluate of @s1(%k) {
      %h2 = pipeline.take @h2 : !h2    %y = pipeline.take @labels : !y
      %w3 = pipeline.read @fc3 : !w3
      %l, %correct, %count = func.call @s1.evaluate(%h2, %w3, %y)
        : (!h2, !w3, !y) -> (!l, tensor<i64>, tensor<i64>)
      pipeline.put %l to @loss : !l
      pipeline.put %correct to @correct : tensor<i64>
      pipeline.put %count to @count : tensor<i64>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::math::MathDialect"];
  let options = [
    ListOption<"metrics", "metrics", "std::string",
               "What an evaluation adds up besides: top-K, mae">
  ];
}

def PipelineExpandTraining
    : Pass<"pipeline-expand-training", "::mlir::ModuleOp"> {
  let summary = "Expands mode-dependent ops in training form";
  let description = [{
    Ops with `ModeDependentOpInterface` in the forward functions (batch
    normalization, dropout) get their meaning in training. What they need of the
    task (the number of the microbatch, a hyperparameter) becomes a scalar
    argument of the function. State that they leave behind becomes a result,
    which the task writes: its variable has the role `statistic`.

    Runs after `pipeline-derive-evaluate`, whose copies are in inference form,
    and before `pipeline-differentiate`.

    ```mlir
    %m = pipeline.read @bn.mean : tensor<7xf32>
    %y, %m1 = func.call @s0.forward(%x, %m, ...)
    pipeline.write %m1 to @bn.mean : tensor<7xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineDifferentiate : Pass<"pipeline-differentiate", "::mlir::ModuleOp"> {
  let summary = "Adds the backward tasks";
  let description = [{
    From the last stage to the first: the backward function of each stage's
    forward function, its residuals as further results of the forward and a
    channel from forward to backward task, gradient variables, and channels for
    cotangents. A stage without trained parameters through which no gradient has
    to flow gets none of them.

    The cotangent of a value with several consuming stages runs from the last of
    them to the first and then to its producer, each adding its own
    contributions: the additions happen in the order that they have without
    stages, so the cut does not change a bit.

    ```mlir
    pipeline.task @s0.B backward of @s0(%k) {
      %dh2 = pipeline.take @dh2 : !h2
      %x, %h1, %h2 = pipeline.take @s0.residuals : !x, !h1, !h2
      %w2 = pipeline.read @fc2 : !w2
      %g1 = pipeline.read @fc1.grad : !w1    %g2 = pipeline.read @fc2.grad : !w2
      %n1, %n2 = func.call @s0.backward(%dh2, %x, %h1, %h2, %w2, %g1, %g2)
        : (!h2, !x, !h1, !h2, !w2, !w1, !w2) -> (!w1, !w2)
      pipeline.write %n1 to @fc1.grad : !w1
      pipeline.write %n2 to @fc2.grad : !w2
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineRecompute : Pass<"pipeline-recompute", "::mlir::ModuleOp"> {
  let summary = "Computes residuals again instead of storing them";
  let description = [{
    Residuals leave the channel from a stage's forward to its backward task, and
    the ops that made them run again in the backward function, each just before
    its first use. They start from what stays stored, read the parameters as the
    backward task reads them, and get its microbatch number; so every value is
    bit for bit what the forward had. What depends on statistics that the
    forward changes stays stored. A task whose recomputation reads parameters is
    marked: `pipeline-assign-versions` rejects it under methods whose backward
    sees other weights than the forward saw.

    ```mlir
    pipeline.task @s0.F forward of @s0(%k) {
      ...
      pipeline.put %x to @s0.residuals : !x }              // was %x, %h1, %h2
    pipeline.task @s0.B backward of @s0(%k) {
      ...
      %x = pipeline.take @s0.residuals : !x
      %w1 = pipeline.read @fc1 : !w1    %w2 = pipeline.read @fc2 : !w2
      %n1, %n2 = func.call @s0.backward(%dh2, %x, %w1, %w2, %g1, %g2)
        : (!h2, !x, !w1, !w2, !w1, !w2) -> (!w1, !w2) }
    ```
  }];
  let options = [
    Option<"policy", "policy", "::penstock::RecomputePolicy",
           "::penstock::RecomputePolicy::None", "What backwards compute again",
           "::penstock::recomputePolicies()">,
    Option<"nodes", "nodes", "std::string", "",
           "For matching: a regular expression of ONNX nodes">,
    ListOption<"budgets", "budgets", "int64_t",
               "Bytes per microbatch that a stage may store, in the order of "
               "the stages; -1: no limit">
  ];
}

def PipelineSplitBackward
    : Pass<"pipeline-split-backward", "::mlir::ModuleOp"> {
  let summary = "Splits backward tasks into input and weight gradients";
  let description = [{
    The part of a backward function that the input cotangents need becomes the
    function of a task of kind `input_grad`, the rest that of a task of kind
    `weight_grad`. What the second needs of what the first takes or computes
    flows through a channel between them; a value that is taken and put again is
    stored once. A backward task without input cotangents stays whole.

    ```mlir
    pipeline.task @s1.I input_grad of @s1(%k) {
      %h2, %y, %p = pipeline.take @s1.residuals : !h2, !y, !z
      %w3 = pipeline.read @fc3 : !w3
      %dh2, %dz = func.call @s1.input_grad(%y, %p, %w3)
        : (!y, !z, !w3) -> (!h2, !z)
      pipeline.put %dh2 to @dh2 : !h2
      pipeline.put %h2, %dz to @s1.weight_residuals : !h2, !z
    }
    pipeline.task @s1.W weight_grad of @s1(%k) {
      %h2, %dz = pipeline.take @s1.weight_residuals : !h2, !z
      %g3 = pipeline.read @fc3.grad : !w3
      %n3 = func.call @s1.weight_grad(%h2, %dz, %g3) : (!h2, !z, !w3) -> !w3
      pipeline.write %n3 to @fc3.grad : !w3
    }
    ```
  }];
}

def PipelineOverwriteGradients
    : Pass<"pipeline-overwrite-gradients", "::mlir::ModuleOp"> {
  let summary = "With one microbatch per update gradients are not added to";
  let description = [{
    With one microbatch per update, backward and weight gradient tasks no longer read the
    gradients that they write: their functions begin with zero. The update then
    need not leave zero behind. Gradients of parameters that several nodes read
    stay sums. With more microbatches nothing changes.

    ```mlir
    %g1 = pipeline.read @fc1.grad : !w1
    %n1 = func.call @s0.backward(%dh, %x, %g1) : (!h, !x, !w1) -> !w1
    pipeline.write %n1 to @fc1.grad : !w1
    ```
    becomes
    ```mlir
    %n1 = func.call @s0.backward(%dh, %x) : (!h, !x) -> !w1
    pipeline.write %n1 to @fc1.grad : !w1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineInsertOptimizer
    : Pass<"pipeline-insert-optimizer", "::mlir::ModuleOp"> {
  let summary = "Adds the tasks that update the parameters";
  let description = [{
    Every stage with gradients gets a task of kind `update`: per parameter one
    call of a function that is shared by all parameters of the same type, and
    that also sets the gradient to zero where a task adds to it.

    ```mlir
    pipeline.task @s0.U update of @s0(%t) {
      %lr = pipeline.hyperparameter "lr" default(0.01) : f32
      %w1 = pipeline.read @fc1 : !w1    %g1 = pipeline.read @fc1.grad : !w1
      %n1, %c1 = func.call @sgd.7x11(%w1, %g1, %lr)
        : (!w1, !w1, f32) -> (!w1, !w1)
      pipeline.write %n1 to @fc1 : !w1
      pipeline.write %c1 to @fc1.grad : !w1
    }
    ```

    Where the learning rate is not constant, a function of the base rate and of
    the updates done gives that of each update:

    ```mlir
    %lr = pipeline.hyperparameter "lr" default(0.01) : f32
    %rate = func.call @lr(%lr, %t) : (f32, index) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineClipGradients
    : Pass<"pipeline-clip-gradients", "::mlir::ModuleOp"> {
  let summary = "Bounds the norm of the gradients";
  let description = [{
    Where `pipeline.training` has a `clipping` of bound x, multiplies the
    gradients of an update by min(1, x / (norm + 1e-6)). A
    task of kind `norm` per stage sums the squares of each gradient. With
    `global` scope every stage has zeros for the parameters of the others, a
    group adds them up over the stages, and every update adds the squares in the
    order of the parameters in the module. With `stage` scope each stage has a
    norm of its own, and nothing waits for another stage.

    ```mlir
    pipeline.variable @s0.squares : tensor<2xf64> scalar of @s0
    pipeline.variable @s1.squares : tensor<2xf64> scalar of @s1
    pipeline.group @clip_squares members [[@s0.squares], [@s1.squares]]
      {pipeline.once}
    pipeline.task @s0.G norm of @s0(%t) {
      %g1 = pipeline.read @fc1.grad : !w1
      %n = func.call @s0.norm(%g1) : (!w1) -> tensor<2xf64>
      pipeline.write %n to @s0.squares : tensor<2xf64>
    }
    pipeline.task @s0.U update of @s0(%t) {
      %n = pipeline.read @s0.squares : tensor<2xf64>
      %c = func.call @clip_factor(%n) : (tensor<2xf64>) -> tensor<f32>
      pipeline.write %c to @s0.clip_factor : tensor<f32>
      %n1, %z1 = func.call @sgd.7x11(%w1, %g1, %c, %lr)
        : (!w1, !w1, tensor<f32>, f32) -> (!w1, !w1)
      ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineLowerPrecision
    : Pass<"pipeline-lower-precision", "::mlir::ModuleOp"> {
  let summary = "Rounds tensors and weights to bf16";
  let description = [{
    Does nothing unless `pipeline.training` has `precision bf16`. Functions keep
    computing in f32. What they make is rounded between two ops, which fusion
    leaves in registers, and stored as bf16: in channels, in residuals, and in
    temporaries. A product has factors that are rounded and a sum in f32, so a
    library may multiply them as bf16.

    Rounded are f32 tensors of two or more dimensions that depend on data and on
    weights. In f32 remain

    - what follows the last contractions and convolutions: losses, outputs, and
      gradients, to which contractions add;
    - sums over elements, and functions of such sums only, as the statistics of
      normalizations; the probabilities of a loss;
    - what may be out of the range of bf16, as scores with a mask added to them.

    Parameters that are factors become bf16. Each of them that is updated gets a
    variable of role `master` with the weights in f32. The update reads and
    writes that one, and writes the rounded weights beside it, in one function.
    A copy of a parameter on another stage is rounded where the parameter is.

    ```mlir
    pipeline.variable @fc1 : tensor<7x11xf32> parameter of @s0
    pipeline.task @s0.F forward of @s0(%k) {
      %x = pipeline.take @x : tensor<5x7xf32>
      %w = pipeline.read @fc1 : tensor<7x11xf32>
      %h = func.call @s0.forward(%x, %w)
        : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<5x11xf32>
      pipeline.put %h to @h : tensor<5x11xf32>
    }
    pipeline.task @s0.U update of @s0(%t) {
      %w = pipeline.read @fc1 : tensor<7x11xf32>
      %n = func.call @sgd.7x11(%w, %g, %lr) : (...) -> tensor<7x11xf32>
      pipeline.write %n to @fc1 : tensor<7x11xf32>
    }
    ```
    becomes
    ```mlir
    pipeline.variable @fc1 : tensor<7x11xbf16> parameter of @s0
    pipeline.variable @fc1.master : tensor<7x11xf32> master of @s0
      {pipeline.parameter = @fc1}
    pipeline.task @s0.F forward of @s0(%k) {
      %x = pipeline.take @x : tensor<5x7xf32>
      %w = pipeline.read @fc1 : tensor<7x11xbf16>
      %h = func.call @s0.forward(%x, %w)
        : (tensor<5x7xf32>, tensor<7x11xbf16>) -> tensor<5x11xbf16>
      pipeline.put %h to @h : tensor<5x11xbf16>
    }
    pipeline.task @s0.U update of @s0(%t) {
      %w = pipeline.read @fc1.master : tensor<7x11xf32>
      %n, %r = func.call @sgd.7x11.bf16(%w, %g, %lr)
        : (...) -> (tensor<7x11xf32>, tensor<7x11xbf16>)
      pipeline.write %n to @fc1.master : tensor<7x11xf32>
      pipeline.write %r to @fc1 : tensor<7x11xbf16>
    }
    ```

    A tensor of f64 is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // PENSTOCK_PASSES_TRAINING_PASSES_TD
