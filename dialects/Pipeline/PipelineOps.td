//===- PipelineOps.td - Ops of the pipeline dialect --------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variables, channels, stages and tasks (what there is) and schedules (when);
// those of device programs are in PipelineProgramOps.td. docs/rules.md
// lists the rules by label.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEOPS_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEOPS_TD

include "dialects/Pipeline/PipelineBase.td"
include "dialects/Pipeline/PipelineProgramOps.td"

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

def Pipeline_VariableOp : Pipeline_Op<"variable", [Symbol, InModule]> {
  let summary = "A tensor that lives across microbatches";
  let description = [{
    Roles: `parameter`, `gradient`, `optimizer` (its state), `compensation`
    (what a method reads or keeps beside weights), `statistic` (of batch
    normalization), `master` (the f32 weights that a bf16 parameter is rounded
    from), `scalar` (such as the norm of gradients) and `prepacked` (weights in
    the layout of a vendor kernel).

    Without `init` it starts at zero. A bf16 variable may start as f32 bytes,
    rounded. `frozen` variables are not differentiated.

    ```mlir
    pipeline.variable @fc1 : tensor<7x11xf32> parameter of @s0
      init <"mlp.onnx", 118, 308>
    ```

    Constraints:
    - **C1**: from level `stages` on, every variable has a stage.
    - **C3**: the shape is static; `init` has as many bytes as the type, or, if
      that is bf16, as f32.
    - **C12**: parameters, optimizer state, compensation and masters are written
      by updates (after waves, parameters and masters also by folds,
      compensation by pushes and folds); gradients by backward or weight_grad tasks, which read them,
      and by updates; statistics by forward tasks, or by updates from what
      backward tasks noted; scalars by norm and update tasks. With one
      microbatch per update a gradient may be written unread, and stay as it is
      in the update. At level `program`, the calls that tasks state do so.
    - **C29**: prepacked weights name their weights and their layout, are of the
      same stage, and are written by the tasks that write the weights, as a
      function of what is written.
    - **C36**: a master is f32, of the shape and the stage of the bf16 parameter
      that it names; a task that writes one of them writes both, as results of
      one function.
    - **C39**: what is frozen is not written and has no gradient; what belongs
      to a variable is of its stage, and that is a parameter, or a statistic of
      which a gradient notes what moves it. From level `schedule` on every
      variable is used, at `program` by the function of a device, and the state
      of a parameter has a kind that its role has, each but once: only the
      global weights of `hetpipe` have none.
    - **C41**: `init` is within the file of the model, and so is what is tied to
      it. Gradients, optimizer state and scalars start at zero; parameters and
      statistics of a model do not.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<Pipeline_Tensor>:$type,
                       Pipeline_RoleAttr:$role,
                       OptionalAttr<FlatSymbolRefAttr>:$stage,
                       OptionalAttr<Pipeline_BytesAttr>:$init,
                       UnitAttr:$frozen);
  let assemblyFormat = [{
    $sym_name `:` $type `` $role (`of` $stage^)? (`init` $init^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

def Pipeline_TrainingOp : Pipeline_Op<"training", [InModule]> {
  let summary = "How the program trains, or that it infers";
  let description = [{
    What the user decides about training that is not seen in tasks and orders.
    Passes read it; none of them changes it. A nested module, which holds the
    same training on one device, has that of its program.

    `microbatches` is M, the microbatches per update, 1 if not said. `optimizer`
    makes the updates, with the learning rate that `rate` gives each of them,
    the same for all if not said. `clipping` bounds the norm of the gradients.
    `batch_norm` says whose statistics batch normalization uses: those of the
    microbatch (`train`, if not said) or the stored ones (`frozen`). `precision`
    says what the model's f32 tensors are rounded to where that keeps what is
    learned: nothing (`f32`, if not said) or `bf16`. `method` says which
    versions of the weights are read. Until it is decided, when the program is
    scheduled, it is left out, and no proof asks for one.

    With `infers` the program has forward passes only.

    ```mlir
    pipeline.training microbatches(4) optimizer<adamw, lr = 1.000000e-03>
      rate<cosine, total_steps = 1000> clipping<5.000000e-01, global>
      method<pipedream, vertical_sync = true>
    ```

    Constraints:
    - **C32**: a program that trains has an optimizer; one that infers has
      nothing but `infers` and a precision. A module has at most one such op, a
      nested module none. From level `training` on a program with tasks has one,
      and it infers exactly when all tasks evaluate.
    - **C33**: a schedule of role `train` has its number of microbatches, and
      the waves and distance of its method; one that evaluates has one
      microbatch and no waves.
    - **C40**: where versions are kept, it has the method, or the stages have
      lags; lags are on all stages or on none; the default of the hyperparameter
      `lr` is that of the optimizer; what is compensated is the delay of the
      stage, from the first update on that the method does not run alone.
  }];
  let arguments = (ins UnitAttr:$infers,
                       DefaultValuedAttr<Positive, "1">:$microbatches,
                       OptionalAttr<Pipeline_OptimizerAttr>:$optimizer,
                       OptionalAttr<Pipeline_RateAttr>:$rate,
                       OptionalAttr<Pipeline_ClippingAttr>:$clipping,
                       DefaultValuedAttr<Pipeline_BatchNormAttr,
                           "::penstock::pipeline::BatchNorm::Train">:$batch_norm,
                       DefaultValuedAttr<Pipeline_PrecisionAttr,
                           "::penstock::pipeline::Precision::F32">:$precision,
                       OptionalAttr<Pipeline_MethodAttr>:$method);
  let assemblyFormat = [{
    (`infers` $infers^)? (`microbatches` `(` $microbatches^ `)`)?
    (`optimizer` `` $optimizer^)? (`rate` `` $rate^)?
    (`clipping` `` $clipping^)? (`batch_norm` `` $batch_norm^)?
    (`precision` `` $precision^)? (`method` `` $method^)? attr-dict
  }];
}

def Pipeline_WeightStashOp : Pipeline_Op<"weight_stash",
    [InModule, DeclareOpInterfaceMethods<VersionStorageOpInterface>]> {
  let summary = "Keeps a ring of versions of a variable (PipeDream)";
  let description = [{
    Microbatches in flight read the version that their forward read: the
    variable has `depth` versions, and update v writes slot v mod depth.

    ```mlir
    pipeline.weight_stash @fc1 depth(3)
    ```

    Constraints:
    - **C2**: `depth` is at least 2; the variable is written by an update task,
      and no other op keeps versions of it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Positive:$depth);
  let assemblyFormat = "$variable `depth` `(` $depth `)` attr-dict";
}

def Pipeline_DoubleBufferOp : Pipeline_Op<"double_buffer",
    [InModule, DeclareOpInterfaceMethods<VersionStorageOpInterface>]> {
  let summary = "Keeps two versions of a variable (PipeDream-2BW)";
  let description = [{
    One version is read while the update writes the other.

    ```mlir
    pipeline.double_buffer @fc1
    ```

    Constraints:
    - **C2**: the variable is written by an update task, and no other op keeps
      versions of it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let assemblyFormat = "$variable attr-dict";
}

def Pipeline_ChannelOp : Pipeline_Op<"channel", [Symbol, InModule]> {
  let summary = "What flows from one task to another, a message at a time";
  let description = [{
    A channel with a source is an input of the model or the labels, one with a
    sink a result that leaves the program. `slots` messages fit on the receiving
    device, `staging` on the sending one. A channel that joins two devices, or
    has a source or a sink, carries one tensor. Transfers of a device end one
    after the other; those of a channel with `queue own` only after each other.

    ```mlir
    pipeline.channel @x : [tensor<4x7xf32>] source(input "x") slots(2)
    pipeline.channel @labels : [tensor<4xi64>] source(labels)
    pipeline.channel @h : [tensor<4x11xf32>] slots(3) staging(2)
    pipeline.channel @loss : [tensor<f32>] sink(loss)
    pipeline.channel @wave : [tensor<7x11xf32>] slots(2) staging(2) queue own
    ```

    Constraints:
    - **C4**: of the tasks that one schedule executes, exactly one puts into a
      channel and one takes from it; none puts where there is a source, none
      takes where there is a sink. Before there are schedules: of the tasks of
      training, and of the evaluate tasks.
    - **C5**: both tasks count microbatches, or neither does.
    - **C6**: a channel carries one or more tensors of static shape. With a
      source or a sink, and it has not both, it carries one tensor and is in no
      queue of its own.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeArrayAttr:$types,
                       OptionalAttr<Pipeline_SourceAttr>:$source,
                       OptionalAttr<Pipeline_SinkAttr>:$sink,
                       OptionalAttr<Positive>:$slots,
                       OptionalAttr<Positive>:$staging,
                       UnitAttr:$own_queue);
  let assemblyFormat = [{
    $sym_name `:` $types (`source` `(` custom<SourceEnd>($source)^ `)`)?
    (`sink` `(` custom<SinkEnd>($sink)^ `)`)? (`slots` `(` $slots^ `)`)? (`staging` `(` $staging^ `)`)? (`queue` `own` $own_queue^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType(unsigned field) {
      return ::llvm::cast<::mlir::RankedTensorType>(
          ::llvm::cast<::mlir::TypeAttr>(getTypes()[field]).getValue());
    }
    bool isLabels() {
      return getSource() && getSource()->getKind() == SourceKind::Labels;
    }
    bool isLoss() { return getSink() && getSink()->getKind() == SinkKind::Loss; }
  }];
}

def Pipeline_StageOp : Pipeline_Op<"stage", [Symbol, InModule]> {
  let summary = "A part of the model and, once placed, its devices";
  let description = [{
    A stage has one device, or one per replica. Stages of a `worker` form a
    pipeline of their own, which trains a copy of the weights.

    ```mlir
    pipeline.stage @s0 devices [0]
    pipeline.stage @vw1.s0 worker(1) devices [2]
    ```

    Constraints:
    - **C7**: from level `schedule` on every stage has devices, none twice;
      stages that share a device have equally many replicas. Evaluation is
      executed on the first of them, unless the program only infers: then on
      all.
    - **C34**: the devices of one stage have one target.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<DenseI64ArrayAttr>:$devices,
                       DefaultValuedAttr<NonNegative, "0">:$worker);
  let assemblyFormat =
      "$sym_name (`worker` `(` $worker^ `)`)? (`devices` $devices^)? attr-dict";
}

def Pipeline_GroupOp : Pipeline_Op<"group", [Symbol, InModule]> {
  let summary = "Variables whose values are summed over stages or replicas";
  let description = [{
    A member is a list of variables of one stage. An `all_reduce` of the group
    adds their values position by position, in the order (stage, replica), so
    that the sum does not depend on which device comes first.

    ```mlir
    pipeline.group @tied members [[@wte.grad], [@head.grad]]
    ```

    Constraints:
    - **C8**: members are lists of equally many variables, agree in types
      position by position, are of one stage each, and of distinct ones. A
      schedule that sums a group does so on all devices of these stages.
    - **C37**: what must be summed is, by one group: the gradients of copies of
      a parameter, over the stages that hold one, each made by one of them; the
      gradients of a stage with replicas; and the squares of a global norm. The
      members stand in the order of the stages. Gradients are never summed
      `once`, what replicas have alike always is. A norm is made exactly where
      `pipeline.training` clips.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$members);
  let assemblyFormat = "$sym_name `members` $members attr-dict";
}

def Pipeline_TaskOp : Pipeline_Op<"task",
    [Symbol, InModule, IsolatedFromAbove, SingleBlock, NoTerminator,
     DeclareOpInterfaceMethods<OpAsmOpInterface,
                               ["getAsmBlockArgumentNames"]>]> {
  let summary = "One step of a stage: local, without loops or waiting";
  let description = [{
    Takes from channels, reads variables, calls pure functions, puts and writes.
    Kinds are `forward` (F), `backward` (B), its halves `input_grad` (I) and
    `weight_grad` (W), `norm` (G), `update` (U), `evaluate` (E), `push` (P) and
    `fold` (S). The block argument counts microbatches (updates, for norm and
    update; waves, for push and fold) from the start of training.

    ```mlir
    pipeline.task @s0.F forward of @s0(%k) {
      %x = pipeline.take @x : tensor<5x7xf32>
      %w = pipeline.read @fc1 : tensor<7x11xf32>
      %h = func.call @s0.forward(%x, %w)
          : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<5x11xf32>
      pipeline.put %h to @h1 : tensor<5x11xf32>
    }
    ```

    At level `program` a task is a declaration, a name for `pipeline.mark`, and
    has no body. It states the calls that follow the mark, by position, and
    where the messages that it puts leave from:

    ```mlir
    pipeline.task @s0.F forward of @s0
      calls [#pipeline.call<@s0.forward [#pipeline.operand<read @x>,
                                         #pipeline.operand<read @w lag 0>,
                                         #pipeline.operand<write @h>]>]
      puts [#pipeline.put<@h from @h>]
    ```

    Constraints:
    - **C9**: before level `program` a task has a body with one argument, an
      index. It holds ops of this dialect that stand in tasks, calls, and scalar
      `arith` and `math`.
    - **C10**: a task has at most one take and one put per channel and one write
      per variable, and no read behind the write.
    - **C13**: of the tasks that are executed together (C4), a stage has at most
      one of each kind. From level `training` on it has a forward task and, with
      gradients, a backward task or its halves, never both.
    - **C31**: where stages have several workers, each that updates has a push
      and a fold. A push takes a weight as it is and as the wave before left it,
      and puts the difference to every other worker, through channels with
      queues of their own. A fold takes the waves of one parameter from all
      workers in their order, its own later ones and the global weights, and
      writes every parameter that the update writes.
    - **C38**: the task gives a function what its `pipeline.signature` says by
      position, and its results go where that says. All that one call of a
      shared function has is of one parameter, in the order of the declarations,
      or of the group that sums them.
    - **C42**: the replay, a nested module, has the variables, the tasks and the
      microbatches of its program; the bodies of tasks differ in lags alone.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       Pipeline_TaskKindAttr:$kind,
                       FlatSymbolRefAttr:$stage,
                       OptionalAttr<Pipeline_CallArrayAttr>:$calls,
                       OptionalAttr<Pipeline_PutArrayAttr>:$puts);
  let regions = (region AnyRegion:$body);
  let assemblyFormat = [{
    $sym_name `` $kind `of` $stage (`calls` $calls^)? (`puts` $puts^)?
    `` custom<TaskBody>($body) attr-dict-with-keyword
  }];
  let extraClassDeclaration = [{
    bool isBodyless() { return getBody().empty(); }
    /// Returns true if the task runs once per microbatch; the others run per
    /// update, or per wave of updates.
    bool countsMicrobatches();
    bool countsWaves();
    /// The letter of reports and schedule files: F B I W G U E P S.
    char getLetter();
    /// Appends the block with its counter argument.
    ::mlir::Block *addBody();
    ::mlir::Value getCounter() { return getBody().getArgument(0); }
  }];
}

def Pipeline_BoundaryOp : Pipeline_Op<"boundary", []> {
  let summary = "Ops from here to the next boundary are stage `index`";
  let description = [{
    The partitioner puts boundaries between the ops of the forward function:
    what is above boundary 1 is stage 0. `pipeline-outline-stages` cuts there.

    ```mlir
    %h = linalg.contract ... -> tensor<5x11xf32>
    pipeline.boundary 1
    %y = linalg.contract ... -> tensor<5x3xf32>
    ```

    Constraints:
    - **C14**: the boundaries of a function are numbered 1, 2, and so on.
  }];
  let arguments = (ins Positive:$index);
  let assemblyFormat = "$index attr-dict";
}

//===----------------------------------------------------------------------===//
// What a task does
//===----------------------------------------------------------------------===//

def Pipeline_TakeOp : Pipeline_Op<"take", [InTask, Pipeline_WritesState]> {
  let summary = "Takes the next message from a channel";
  let description = [{
    The microbatch, or the update, of the task says which message it is.

    ```mlir
    %x, %h = pipeline.take @s0.residuals : tensor<5x7xf32>, tensor<5x11xf32>
    ```

    Constraints:
    - **C4**: no other task that is executed with this one takes from the
      channel.
    - **C6**: it takes what the channel carries.
    - **C10**: no other take of the task is from the channel.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel);
  let results = (outs Variadic<Pipeline_Tensor>:$values);
  let assemblyFormat = "$channel attr-dict `:` type($values)";
}

def Pipeline_PutOp : Pipeline_Op<"put", [InTask, Pipeline_WritesState]> {
  let summary = "Puts a message into a channel";
  let description = [{
    A value that is put into several channels of one device is stored once.

    ```mlir
    pipeline.put %h to @h1 : tensor<5x11xf32>
    ```

    Constraints:
    - **C4**: no other task that is executed with this one puts into the
      channel.
    - **C6**: it puts what the channel carries.
    - **C10**: no other put of the task is into the channel.
  }];
  let arguments = (ins Variadic<Pipeline_Tensor>:$values,
                       FlatSymbolRefAttr:$channel);
  let assemblyFormat = "$values `to` $channel attr-dict `:` type($values)";
}

def Pipeline_ReadOp : Pipeline_Op<"read", [InTask, Pipeline_ReadsState]> {
  let summary = "Reads a variable, `lag` microbatches old";
  let description = [{
    Microbatch k reads the version after max(0, floor((k - lag) / M)) updates of
    the segment. Without a lag: the newest. The update that makes version v of
    the segment reads version max(0, v - lag) by a read with a lag, which is at
    least 1. The push of wave c reads the version lag updates older than what
    the wave ends with. Of what pushes write, the fold of wave c with distance D
    reads that of wave c + D - lag, or of the last one of the segment.

    ```mlir
    %new = pipeline.read @fc1 : tensor<7x11xf32>
    %old = pipeline.read @fc1 lag(2) : tensor<7x11xf32>
    ```

    Constraints:
    - **C11**: the variable is of the stage of the task.
    - **C15**: from level `schedule` on a read has a lag exactly when an update
      writes the variable, the task counts microbatches and does not evaluate,
      and the variable is no gradient. An update may also read a parameter that
      it writes with a lag of at least 1.
    - **C16**: the type is that of the variable.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable,
                       OptionalAttr<NonNegative>:$lag);
  let results = (outs Pipeline_Tensor:$value);
  let builders = [OpBuilder<(ins "VariableOp":$variable,
                                 CArg<"::mlir::IntegerAttr", "{}">:$lag), [{
    build($_builder, $_state, variable.getTensorType(),
          FlatSymbolRefAttr::get(variable), lag);
  }]>];
  let assemblyFormat = [{
    $variable (`lag` `(` $lag^ `)`)? attr-dict `:` type($value)
  }];
}

def Pipeline_WriteOp : Pipeline_Op<"write", [InTask, Pipeline_WritesState]> {
  let summary = "Writes a variable";
  let description = [{
    Makes the next version of a variable that is versioned, and otherwise
    changes it in place. Tasks that follow on the device see it.

    ```mlir
    pipeline.write %w to @fc1 : tensor<7x11xf32>
    ```

    Constraints:
    - **C10**: no other write of the task is to the variable.
    - **C11**: the variable is of the stage of the task.
    - **C12**: the kind of the task may write variables of this role; a gradient
      is written by a task that reads it, unless an update has one microbatch.
    - **C16**: the type is that of the variable.
  }];
  let arguments = (ins Pipeline_Tensor:$value, FlatSymbolRefAttr:$variable);
  let builders = [OpBuilder<(ins "::mlir::Value":$value,
                                 "VariableOp":$variable), [{
    build($_builder, $_state, value, FlatSymbolRefAttr::get(variable));
  }]>];
  let assemblyFormat = "$value `to` $variable attr-dict `:` type($value)";
}

def Pipeline_CompensateOp : Pipeline_Op<"compensate",
    [Pure, InTask, AllTypesMatch<["weight", "delta"]>,
     AllShapesMatch<["weight", "result"]>]> {
  let summary = "w - tau * delta (PipeMare, T2)";
  let description = [{
    The weight that the gradient of a delayed microbatch should have seen, by
    the moving average `delta` of what updates change. Of an f32 weight the
    result may be bf16.

    ```mlir
    %u = pipeline.compensate %w, %delta tau(1.5) : tensor<7x11xf32>
    ```

    Constraints:
    - **C17**: `tau` is positive; the operands are a variable and a compensation
      variable, as they are read or as a function makes them; a result of
      another type is the bf16 of f32.
  }];
  let arguments = (ins Pipeline_Tensor:$weight, Pipeline_Tensor:$delta,
                       F64Attr:$tau);
  let results = (outs Pipeline_Tensor:$result);
  let assemblyFormat = [{
    $weight `,` $delta `tau` `(` $tau `)` attr-dict `:`
    custom<AdjustedTypes>(type($weight), type($result))
  }];
}

def Pipeline_PredictOp : Pipeline_Op<"predict",
    [Pure, InTask, AllTypesMatch<["weight", "velocity"]>,
     AllShapesMatch<["weight", "result"]>]> {
  let summary = "w - steps * lr * v (SpecTrain)";
  let description = [{
    The weight after `steps` more updates along the direction `velocity`. Of an
    f32 weight the result may be bf16.

    ```mlir
    %u = pipeline.predict %w, %v, %lr steps(2.0) : tensor<7x11xf32>, f32
    ```

    Constraints:
    - **C18**: `steps` is positive; the operands are a variable and optimizer
      state, as they are read (at the same lag) or as a function makes them, or
      a direction that a function makes; a result of another type is the bf16 of
      f32.
  }];
  let arguments = (ins Pipeline_Tensor:$weight, Pipeline_Tensor:$velocity,
                       AnyFloat:$rate, F64Attr:$steps);
  let results = (outs Pipeline_Tensor:$result);
  let assemblyFormat = [{
    $weight `,` $velocity `,` $rate `steps` `(` $steps `)` attr-dict
    `:` custom<AdjustedTypes>(type($weight), type($result)) `,` type($rate)
  }];
}

def Pipeline_BlendOp : Pipeline_Op<"blend",
    [Pure, InTask, AllTypesMatch<["weight", "older", "result"]>]> {
  let summary = "older * s + w * (1 - s) (I-TiMePReSt)";
  let description = [{
    In the task that updates the weight; `older` is a version that it reads with
    a lag. s is rounded to the type of the weight, as is 1 - s. Where s is 0,
    the result is the weight.

    ```mlir
    %old = pipeline.read @fc2 lag(2) : tensor<11x13xf32>
    %d = pipeline.staleness lag(2)
    %s = func.call @s0.significance(%d) : (index) -> f32
    %b = pipeline.blend %w, %old, %s : tensor<11x13xf32>, f32
    ```

    Constraints:
    - **C35**: the operands are a parameter as an update makes it and an older
      version of it, which that update reads with a lag; a function makes s of
      the staleness of that version.
  }];
  let arguments = (ins Pipeline_Tensor:$weight, Pipeline_Tensor:$older,
                       AnyFloat:$significance);
  let results = (outs Pipeline_Tensor:$result);
  let assemblyFormat = [{
    $weight `,` $older `,` $significance attr-dict
    `:` type($result) `,` type($significance)
  }];
}

def Pipeline_StalenessOp : Pipeline_Op<"staleness", [Pure, InTask]> {
  let summary = "How many updates the version behind a lag is older";
  let description = [{
    In an update task: the update that makes version v of the segment gets
    min(v, lag), and the last one of the segment 0. Whoever reads what that one
    makes begins a new segment, in which there is no older version.

    ```mlir
    %updates = pipeline.staleness lag(2)
    ```

    Constraints:
    - **C35**: it stands in an update task.
  }];
  let arguments = (ins Positive:$lag);
  let results = (outs Index:$updates);
  let assemblyFormat = "`lag` `(` $lag `)` attr-dict";
}

def Pipeline_LaterWavesOp : Pipeline_Op<"later_waves", [Pure, InTask]> {
  let summary = "How many waves have been pushed behind the one that is folded";
  let description = [{
    In a fold task: the fold of wave c of the segment gets `distance`, or fewer
    where the segment has fewer waves behind it.

    ```mlir
    %waves = pipeline.later_waves distance(1)
    ```

    Constraints:
    - **C31**: it stands in a fold task.
  }];
  let arguments = (ins Positive:$distance);
  let results = (outs Index:$waves);
  let assemblyFormat = "`distance` `(` $distance `)` attr-dict";
}

def Pipeline_HyperparameterOp : Pipeline_Op<"hyperparameter",
    [Pure, InTaskOrFunction,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A number that the user may set when the program runs";
  let description = [{
    `default` is what it is otherwise, as compiled in. An integer is 0 then.

    ```mlir
    %lr = pipeline.hyperparameter "lr" default(1.0e-02) : f32
    ```

    Constraints:
    - **C19**: it has a name; all that share it have one type of number and one
      default; an integer has none but 0.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<F64Attr>:$default_value);
  let results = (outs AnyTypeOf<[AnyFloat, I64]>:$value);
  let assemblyFormat = [{
    $name (`default` `(` $default_value^ `)`)? attr-dict `:` type($value)
  }];
}

//===----------------------------------------------------------------------===//
// When
//===----------------------------------------------------------------------===//

def Pipeline_ScheduleOp : Pipeline_Op<"schedule",
    [Symbol, InModule, SingleBlock, NoTerminator]> {
  let summary = "What each device does, in order";
  let description = [{
    `role` is what the program executes it for: `to train` unless said, `to
    evaluate` or `to infer`. `microbatches` is M, the microbatches per weight
    update. At level `program` the orders have become functions and the schedule
    is a declaration. For reports, `predicted_bubble` is the idle fraction of
    the simulation, and `generator` the schedule that the orders were generated
    by.

    One execution of a schedule, from empty channels to empty channels, is a
    *segment*: N updates, a multiple of `wave`. Device functions and the runtime
    count waves. A wave is folded into the weights of all workers `distance`
    waves after it is pushed.

    ```mlir
    pipeline.schedule @train microbatches(4) generator<"1f1b"> {
      pipeline.order 0 { ... }
      pipeline.order 1 { ... }
    }
    ```

    Constraints:
    - **C20**: it holds orders, one for every device that has a stage and for no
      other. M is a multiple of every number of replicas.
    - **C30**: a schedule that executes evaluate tasks has the role `evaluate`,
      or `infer` where nothing trains, others `train`; at level `program` there
      is at most one of each role.
    - **C31**: only a schedule that trains has a `distance`. A push and a fold
      are executed once per wave, the fold `distance` waves later.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<Pipeline_ScheduleRoleAttr,
                           "::penstock::pipeline::ScheduleRole::Train">:$role,
                       Positive:$microbatches,
                       DefaultValuedAttr<Positive, "1">:$wave,
                       DefaultValuedAttr<NonNegative, "0">:$distance,
                       OptionalAttr<F64Attr>:$predicted_bubble,
                       OptionalAttr<Pipeline_GeneratorAttr>:$generator);
  let regions = (region AnyRegion:$body);
  let assemblyFormat = [{
    $sym_name (`to` `` $role^)? `microbatches` `(` $microbatches `)`
    (`wave` `(` $wave^ `)`)? (`distance` `(` $distance^ `)`)?
    (`predicted_bubble` `(` $predicted_bubble^ `)`)?
    (`generator` `` $generator^)?
    `` custom<OptionalBody>($body) attr-dict-with-keyword
  }];
  let extraClassDeclaration = [{
    bool isBodyless() { return getBody().empty(); }
  }];
}

def Pipeline_OrderOp : Pipeline_Op<"order",
    [In<"ScheduleOp">, SingleBlock, NoTerminator]> {
  let summary = "What one device does, in order";
  let description = [{
    The program order of a device: which tasks it executes and which transfers
    it queues, one after the other.

    ```mlir
    pipeline.order 0 {
      pipeline.repeat updates {
        pipeline.repeat times 4 {
          pipeline.recv @x ahead(1)
          pipeline.run @s0.F
          pipeline.send @h1
          pipeline.recv @dh1
          pipeline.run @s0.B
        }
        pipeline.run @s0.U
      }
    }
    ```

    Constraints:
    - **C20**: the device has a stage and no other order.
    - **C21**: an order is one loop over updates or over microbatches.
  }];
  let arguments = (ins NonNegative:$device);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$device $body attr-dict";
}

def Pipeline_RepeatOp : Pipeline_Op<"repeat",
    [InSchedule, SingleBlock, NoTerminator]> {
  let summary = "A loop of a schedule";
  let description = [{
    In a segment of N updates, for stages of r replicas, the body is executed N
    times (`updates`), N*M/r times (`microbatches`), once for each n of these
    (`microbatches n`), or n times (`times n`).

    ```mlir
    pipeline.repeat microbatches {
      pipeline.run @s0.F
      pipeline.run @s0.B
      pipeline.run @s0.U every(4)
    }
    ```

    Constraints:
    - **C21**: loops over updates or microbatches are outermost, and `updates`
      has no count; `times` has one and nests in `updates`. A loop holds loops
      and entries of schedules.
  }];
  let arguments = (ins Pipeline_RepeatKindAttr:$kind,
                       OptionalAttr<Positive>:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "`` $kind `` custom<RepeatCount>($count) $body attr-dict";
}

// ScheduleEntryOpInterface says what `ahead` and `every` mean.
class Pipeline_Entry<string mnemonic, string subject>
    : Pipeline_Op<mnemonic, [InSchedule, ScheduleEntryOpInterface]> {
  code entryDeclaration = [{
    ::mlir::FlatSymbolRefAttr getSubjectAttr() { return get}] # subject # [{Attr(); }
    int64_t getAheadOr0() { return getAhead().value_or(0); }
  }];
  let extraClassDeclaration = entryDeclaration;
}

class Pipeline_PeriodicEntry<string mnemonic, string subject>
    : Pipeline_Entry<mnemonic, subject> {
  let extraClassDeclaration = entryDeclaration # [{
    ::std::optional<uint64_t> getPeriod() { return getEvery(); }
  }];
}

def Pipeline_RunOp : Pipeline_PeriodicEntry<"run", "Task"> {
  let summary = "Runs a task on its next microbatch or update";
  let description = [{
    The n-th `run` of a task handles its n-th microbatch, or update, of the
    device. `ahead` and `every` say in which iterations of the loop it is
    executed; see [ScheduleEntryOpInterface](pipeline-interfaces.md).

    ```mlir
    pipeline.run @s0.F ahead(1)
    pipeline.run @s0.U every(4)
    ```

    Constraints:
    - **C22**: the stage of the task is on the device.
    - **C23**: `every(m)` stands in a loop over microbatches of step n, with m =
      M/(r*n). Tasks that count waves have m = M*wave/n.
  }];
  let arguments = (ins FlatSymbolRefAttr:$task, OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $task (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

def Pipeline_SendOp : Pipeline_PeriodicEntry<"send", "Channel"> {
  let summary = "Queues the next message of a channel for sending";
  let description = [{
    Transfers of a device start in the order of their entries, each when both
    ends are at it. The message is the one that the task has just put, or will
    put. Tasks go on meanwhile. `ahead` and `every` are those of `pipeline.run`.

    ```mlir
    pipeline.send @h1 ahead(1)
    ```

    Constraints:
    - **C23**: `every(m)` stands in a loop over microbatches of step n, with m =
      M/(r*n).
    - **C24**: a transfer is of one tensor; the device is that end of the
      channel, and the other end of the same microbatch is another device, a
      source or a sink.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel,
                       OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $channel (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

def Pipeline_RecvOp : Pipeline_PeriodicEntry<"recv", "Channel"> {
  let summary = "Queues the next message of a channel for receiving";
  let description = [{
    Transfers of a device start in the order of their entries, each when both
    ends are at it. It fills the next of the `slots` of the channel. Tasks go on
    meanwhile. `ahead` and `every` are those of `pipeline.run`.

    ```mlir
    pipeline.recv @h1 ahead(1)
    ```

    Constraints:
    - **C23**: `every(m)` stands in a loop over microbatches of step n, with m =
      M/(r*n).
    - **C24**: a transfer is of one tensor; the device is that end of the
      channel, and the other end of the same microbatch is another device, a
      source or a sink.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel,
                       OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $channel (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

def Pipeline_AllReduceOp : Pipeline_PeriodicEntry<"all_reduce", "Group"> {
  let summary = "Queues the sum over a group, in the order (stage, replica)";
  let description = [{
    All devices of the group take part, each with one such entry. Afterwards
    every replica of every member holds the sum. `ahead` and `every` are those
    of `pipeline.run`.

    ```mlir
    pipeline.all_reduce @s0.grads every(4)
    ```

    Constraints:
    - **C23**: `every(m)` stands in a loop over microbatches of step n, with m =
      M/(r*n).
    - **C25**: a member of the group is on the device.
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $group (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEOPS_TD
