//===- PipelineOps.td - Ops of the pipeline dialect --------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variables, channels, stages and tasks (what there is) and schedules (when);
// those of device programs are in PipelineProgramOps.td. Rules C1 to C42 are
// explained in docs/ir.md.
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
    Without `init` it starts at zero. `frozen` variables are not differentiated.
    A bf16 variable may start as f32 bytes, rounded. One of role `master` holds
    the f32 weights that a bf16 parameter is rounded from.

    ```mlir
    pipeline.variable @fc1 : tensor<7x11xf32> parameter of @s0
      init <"mlp.onnx", 118, 308>
    ```
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
    1. A program that trains has an optimizer; one that infers has nothing but
       `infers` and a precision (verifier of the op).
    2. A module has at most one, a nested module none (`pipeline-verify`, C32).
    3. From level `training` on a program with tasks has one, and it infers
       exactly when all tasks evaluate (C32).
    4. A schedule of role `train` has its number of microbatches (C33).
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
  let arguments = (ins FlatSymbolRefAttr:$variable, Positive:$depth);
  let assemblyFormat = "$variable `depth` `(` $depth `)` attr-dict";
}

def Pipeline_DoubleBufferOp : Pipeline_Op<"double_buffer",
    [InModule, DeclareOpInterfaceMethods<VersionStorageOpInterface>]> {
  let summary = "Keeps two versions of a variable (PipeDream-2BW)";
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
    Stages of a `worker` are a line of their own, which trains a copy of the
    weights.

    ```mlir
    pipeline.stage @s0 devices [0]
    pipeline.stage @vw1.s0 worker(1) devices [2]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<DenseI64ArrayAttr>:$devices,
                       DefaultValuedAttr<NonNegative, "0">:$worker);
  let assemblyFormat =
      "$sym_name (`worker` `(` $worker^ `)`)? (`devices` $devices^)? attr-dict";
}

def Pipeline_GroupOp : Pipeline_Op<"group", [Symbol, InModule]> {
  let summary = "Variables whose values are summed over stages or replicas";
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
    The block argument counts microbatches (updates, for kinds norm and update;
    waves, for push and fold) from the start of training. At level `program` a
    task is a declaration, a name for `pipeline.mark`, and has no body. It
    states the calls that follow the mark, by position, and where the messages
    that it puts leave from:

    ```mlir
    pipeline.task @s0.F forward of @s0
      calls [#pipeline.call<@s0.forward [#pipeline.operand<read @x>,
                                         #pipeline.operand<read @w lag 0>,
                                         #pipeline.operand<write @h>]>]
      puts [#pipeline.put<@h from @h>]
    ```
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
    /// Whether the task runs once per microbatch; the others run per update, or
    /// per wave of updates.
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
  let arguments = (ins Positive:$index);
  let assemblyFormat = "$index attr-dict";
}

//===----------------------------------------------------------------------===//
// What a task does
//===----------------------------------------------------------------------===//

def Pipeline_TakeOp : Pipeline_Op<"take", [InTask, Pipeline_WritesState]> {
  let summary = "Takes the next message from a channel";
  let arguments = (ins FlatSymbolRefAttr:$channel);
  let results = (outs Variadic<Pipeline_Tensor>:$values);
  let assemblyFormat = "$channel attr-dict `:` type($values)";
}

def Pipeline_PutOp : Pipeline_Op<"put", [InTask, Pipeline_WritesState]> {
  let summary = "Puts a message into a channel";
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
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable,
                       OptionalAttr<NonNegative>:$lag);
  let results = (outs Pipeline_Tensor:$value);
  let assemblyFormat = [{
    $variable (`lag` `(` $lag^ `)`)? attr-dict `:` type($value)
  }];
}

def Pipeline_WriteOp : Pipeline_Op<"write", [InTask, Pipeline_WritesState]> {
  let summary = "Writes a variable";
  let arguments = (ins Pipeline_Tensor:$value, FlatSymbolRefAttr:$variable);
  let assemblyFormat = "$value `to` $variable attr-dict `:` type($value)";
}

def Pipeline_CompensateOp : Pipeline_Op<"compensate",
    [Pure, InTask, AllTypesMatch<["weight", "delta"]>,
     AllShapesMatch<["weight", "result"]>]> {
  let summary = "w - tau * delta (PipeMare, T2)";
  let description = [{
    Of an f32 weight the result may be bf16.
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
    Of an f32 weight the result may be bf16.
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
    a lag. s is rounded to the type of the weight, as is 1 - s. Where s is 0, the
    result is the weight.

    ```mlir
    %old = pipeline.read @fc2 lag(2) : tensor<11x13xf32>
    %d = pipeline.staleness lag(2)
    %s = func.call @s0.significance(%d) : (index) -> f32
    %b = pipeline.blend %w, %old, %s : tensor<11x13xf32>, f32
    ```
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
    `default` is what it is otherwise. An integer is 0 then.
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
    `role` is what the program runs it for: `to train` unless said, `to
    evaluate` or `to infer`. `microbatches` is M, the microbatches per weight
    update. At level `program` the orders have become functions and the schedule
    is a declaration. `predicted_bubble`, when known, is the idle share of the
    simulation. `generator` is the schedule that the orders were generated by,
    for reports. A segment has a multiple of `wave` updates; device functions
    and the runtime count waves. A wave is folded into the weights of all
    workers `distance` waves after it is pushed.
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
  let arguments = (ins NonNegative:$device);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$device $body attr-dict";
}

def Pipeline_RepeatOp : Pipeline_Op<"repeat",
    [InSchedule, SingleBlock, NoTerminator]> {
  let summary = "A loop of a schedule";
  let description = [{
    `updates` runs N times, `microbatches` N*M/r times (N: updates of the
    segment, r: replicas of the stage), `microbatches n` once in n of these,
    `times n` n times.
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
  let arguments = (ins FlatSymbolRefAttr:$task, OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $task (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

def Pipeline_SendOp : Pipeline_PeriodicEntry<"send", "Channel"> {
  let summary = "Queues the next message of a channel for sending";
  let arguments = (ins FlatSymbolRefAttr:$channel,
                       OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $channel (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

def Pipeline_RecvOp : Pipeline_PeriodicEntry<"recv", "Channel"> {
  let summary = "Queues the next message of a channel for receiving";
  let arguments = (ins FlatSymbolRefAttr:$channel,
                       OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $channel (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

def Pipeline_AllReduceOp : Pipeline_PeriodicEntry<"all_reduce", "Group"> {
  let summary = "Queues the sum over a group, in the order (stage, replica)";
  let arguments = (ins FlatSymbolRefAttr:$group, OptionalAttr<I64Attr>:$ahead,
                       OptionalAttr<Positive>:$every);
  let assemblyFormat = [{
    $group (`ahead` `(` $ahead^ `)`)? (`every` `(` $every^ `)`)? attr-dict
  }];
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEOPS_TD
