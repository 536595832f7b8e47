//===- PipelineDialect.td - The pipeline dialect -----------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect, its attributes and enumerations.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEDIALECT_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Pipeline_Dialect : Dialect {
  let name = "pipeline";
  let cppNamespace = "::penstock::pipeline";
  let summary = "Programs that train a model as a pipeline of stages";
  let description = [{
    A module holds variables (what lives across microbatches), channels (what
    flows), stages (where), tasks (what one step of a stage does), schedules
    (when) and pure functions.

    Discardable attributes:
    - `pipeline.model = #pipeline.bytes<"f.onnx", 0, size>`, on the module: the
      file that `--save` patches, and that the program checks when it starts
    - `pipeline.external_data = ["f.data"]`, on the module: the files beside the
      model that hold its external data; `--save` writes them, too
    - `pipeline.range = #pipeline.range<0 to 10 or -100>`, on a channel with a
      source of integers: which it may carry: labels name a class or are
      ignored, indices a position of their axis; the program checks its data
      before it starts
    - `pipeline.stage_seconds = array<f64: …>`, on the module: `--profile`:
      forward, backward and update of every stage
    - `pipeline.unit_seconds = array<f64: …>`, on the forward function, before
      it is cut: the same of every unit
    - `pipeline.direct_convolution`, on the module: its convolutions add up the
      products of the definition: `--convolution=direct`
    - `pipeline.parameter = @w`, on a gradient, optimizer or adjusted variable;
      a channel: whose it is; that it carries what the owner's forward read of
      it to other stages, or their cotangents back
    - `pipeline.parameter = @w`, on a parameter: it is a copy of @w, on another
      stage
    - `pipeline.parameter = @w`, on a variable of prepacked weights, a master:
      which weights they are
    - `pipeline.kind = "momentum"`, on an optimizer or adjusted variable: what
      it is to its parameter: its name in a checkpoint, whatever program reads
      that
    - `pipeline.tied = {v = #pipeline.bytes<…>}`, on a parameter, a master:
      other initializers that train as this one (`--tie`, copies that an
      exporter folded), and where their bytes are; with
      `#pipeline.transposed<#pipeline.bytes<…> order [1, 0]>` those are of a
      transpose
    - `pipeline.senders`, `pipeline.receivers = array<i64: 0, 1>`, on a channel
      at `program`: an end has replicas: message k goes from and to device k
      modulo their number
    - `pipeline.rate_scale = x : f64`, `pipeline.no_decay`, on a parameter: its
      learning rate is that of the update times x; it has no weight decay; the
      former also on the function that multiplies the rate by x
    - `pipeline.parts = r`, on a gradient of the replay: it is kept in r parts,
      as by r replicas: microbatch k adds to part k mod r, a sum adds the parts
      into the first and leaves zero in the others
    - `pipeline.once`, on a group: replicas of a stage have the same value, of
      which that of the first is added; all receive the sum
    - `pipeline.lags = array<i64: f, b>`, on a stage under an asynchronous
      method: how old what its forward and its backward read must be; a third
      number, how many updates what an update blends is older than what it makes
    - `pipeline.sent = @w`, on an op of the forward function: the owner's copy
      of a parameter that it sends to other stages
    - `pipeline.recomputes`, on a backward task or a half of one: it runs ops of
      the forward again that read parameters
    - `pipeline.compensates_from = v`, on `compensate` in an update: from
      version v on; earlier ones stay as they are
    - `pipeline.target = #cpu.target<…>`, on a function, at `program`: the
      target of all devices that run it
    - `pipeline.signature = #pipeline.signature<(…) -> (…)>`, on a function that
      tasks call: what its arguments and results stand for (C38)
    - `pipeline.rate`, on a function: it makes the learning rate of the next
      update of base rate and updates done; `pipeline.rate_of = @s0`: it makes
      that of stage @s0 of the rate and updates done
    - `pipeline.into = i`, on an argument of a function: result i is stored into
      its buffer
    - `pipeline.out`, on an argument of a kernel: it is a result
    - `pipeline.scratch`, on the last argument of a kernel: it is temporary
      memory
    - `pipeline.schedule = @s`, `pipeline.device = d`, on a function: it is the
      program of device d under schedule s
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Lets the attribute of this mnemonic be verified by a table. The libraries
    /// that know the rows do so when the dialect is loaded.
    void addTable(::llvm::StringRef mnemonic,
                  const ::penstock::SpecTable &table) {
      tables[mnemonic] = &table;
    }
    /// Null if no library has added one.
    const ::penstock::SpecTable *findTable(::llvm::StringRef mnemonic) const {
      return tables.lookup(mnemonic);
    }

  private:
    ::llvm::StringMap<const ::penstock::SpecTable *> tables;

  public:
  }];
}

class Pipeline_Attr<string name, string attrMnemonic>
    : AttrDef<Pipeline_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Pipeline_BytesAttr : Pipeline_Attr<"Bytes", "bytes"> {
  let summary = "A range of bytes in a file";
  let parameters = (ins StringRefParameter<"path as the user gave it">:$file,
                        "int64_t":$offset, "int64_t":$length);
  let assemblyFormat = "`<` $file `,` $offset `,` $length `>`";
  let genVerifyDecl = 1;
}

def Pipeline_TransposedAttr : Pipeline_Attr<"Transposed", "transposed"> {
  let summary = "A range of bytes in a file that holds a transpose";
  let description = [{
    Axis i of what the file holds is axis `order[i]` of the variable.

    ```mlir
    #pipeline.transposed<#pipeline.bytes<"model.onnx", 64, 24> order [1, 0]>
    ```
  }];
  let parameters = (ins "::penstock::pipeline::BytesAttr":$bytes,
                        ArrayRefParameter<"int64_t">:$order);
  let assemblyFormat = "`<` qualified($bytes) `order` `[` $order `]` `>`";
  let genVerifyDecl = 1;
}

def Pipeline_RangeAttr : Pipeline_Attr<"Range", "range"> {
  let summary = "Which integers a value may be";
  let description = [{
    Those from `low` to before `high`, and `ignored`, if given.

    ```mlir
    #pipeline.range<0 to 10>
    #pipeline.range<0 to 10 or -100>
    ```
  }];
  let parameters = (ins "int64_t":$low, "int64_t":$high,
                        OptionalParameter<"std::optional<int64_t>">:$ignored);
  let assemblyFormat = "`<` $low `to` $high (`or` $ignored^)? `>`";
  let genVerifyDecl = 1;
}

class Pipeline_I32Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::penstock::pipeline";
  let genSpecializedAttr = 0;
}

def Pipeline_FieldAttr : Pipeline_Attr<"Field", "field"> {
  let summary = "A value of a channel or a result of a function";
  let description = [{
    ```mlir
    #pipeline.field<@s0.residuals, 2>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$symbol, "int64_t":$index);
  let assemblyFormat = "`<` $symbol `,` $index `>`";
}

def Pipeline_SignatureAttr : Pipeline_Attr<"Signature", "signature"> {
  let summary = "What the arguments and results of a task's function stand for";
  let description = [{
    An argument of a function of one task alone stands for a value of the
    program: a variable, what a source feeds (`@x`), or a result of the function
    that makes it, in whatever channels it travels (`@s0.forward[1]`). A result
    stands for the variable that it is written to or the sink that it goes to.
    One of a function that several calls share stands for any variable of a
    role; all of one call are of one parameter. Numbers have names: those of
    hyperparameters, or of what computes them. `_` says nothing. A function of
    equal tasks has for each argument a value of each of them (`@x | @h`).

    ```mlir
    #pipeline.signature<(@x, @fc1, "seed") -> (_, @loss)>
    #pipeline.signature<(parameter, gradient, "lr") -> (parameter, gradient)>
    ```

    Each term is a symbol, several (`@loss | @y`), a `#pipeline.field`, a role,
    a string, or unit.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$inputs,
                        "::mlir::ArrayAttr":$results);
  let assemblyFormat =
      "`<` custom<Terms>($inputs) `->` custom<Terms>($results) `>`";
}

def Pipeline_ComputedAttr : Pipeline_Attr<"Computed", "computed"> {
  let summary = "How a task computes a number";
  let description = [{
    By result `index` of a function, or by an op with its attributes and type,
    from operands: strings name hyperparameters, `unit` is the counter of the
    task, other attributes are constants.

    ```mlir
    #pipeline.computed<@adam.rates[1] -> f32 ["lr", unit]>
    #pipeline.computed<"arith.remui" -> index [unit, 4 : index]>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$by,
                        OptionalParameter<"int64_t">:$index,
                        "::mlir::Type":$type,
                        "::mlir::ArrayAttr":$operands,
                        OptionalParameter<"::mlir::DictionaryAttr">:$attributes);
  let assemblyFormat =
      "`<` $by (`[` $index^ `]`)? `->` $type $operands ($attributes^)? `>`";
}

def Pipeline_Access : Pipeline_I32Enum<"AccessKind", "what a call does", [
  I32EnumAttrCase<"Read", 0, "read">,
  I32EnumAttrCase<"Write", 1, "write">,
  I32EnumAttrCase<"Update", 2, "update">]>;

def Pipeline_OperandAttr : Pipeline_Attr<"Operand", "operand"> {
  let summary = "The buffer that a call of a task gets at one position";
  let description = [{
    Of a variable or of a field of a channel. It is read, filled anew, or both
    (`update`), as an accumulator. A variable that an update task writes is read
    as microbatches see it with this lag.

    ```mlir
    #pipeline.operand<read @fc1 lag 4>
    #pipeline.operand<write @s0.residuals field 2>
    ```
  }];
  let parameters = (ins EnumParameter<Pipeline_Access>:$access,
                        "::mlir::FlatSymbolRefAttr":$symbol,
                        DefaultValuedParameter<"int64_t", "0">:$field,
                        OptionalParameter<"std::optional<int64_t>">:$lag);
  let assemblyFormat =
      "`<` $access $symbol (`field` $field^)? (`lag` $lag^)? `>`";
}

def Pipeline_CallAttr : Pipeline_Attr<"Call", "call"> {
  let summary = "A call of a task, at level program";
  let description = [{
    Its operands by position, without scratch: a `#pipeline.operand` for each
    buffer, and for each number how it is computed.

    ```mlir
    #pipeline.call<@sgd.7x11 [#pipeline.operand<update @fc1>,
                              #pipeline.operand<update @fc1.grad>, "lr"]>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$callee,
                        "::mlir::ArrayAttr":$operands);
  let assemblyFormat = "`<` $callee $operands `>`";
}

def Pipeline_PutAttr : Pipeline_Attr<"Put", "put"> {
  let summary = "Where a message of a task leaves from, at level program";
  let description = [{
    ```mlir
    #pipeline.put<@h2 from @s0.residuals field 2>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$channel,
                        "::mlir::FlatSymbolRefAttr":$symbol,
                        DefaultValuedParameter<"int64_t", "0">:$field);
  let assemblyFormat = "`<` $channel `from` $symbol (`field` $field^)? `>`";
}

def Pipeline_Role : Pipeline_I32Enum<"Role", "what a variable is for", [
  I32EnumAttrCase<"Parameter", 0, "parameter">,
  I32EnumAttrCase<"Gradient", 1, "gradient">,
  I32EnumAttrCase<"Optimizer", 2, "optimizer">,
  I32EnumAttrCase<"Compensation", 3, "compensation">,
  I32EnumAttrCase<"Statistic", 4, "statistic">,
  I32EnumAttrCase<"Master", 5, "master">,
  I32EnumAttrCase<"Scalar", 6, "scalar">,
  I32EnumAttrCase<"Prepacked", 7, "prepacked">]>;
def Pipeline_RoleAttr : EnumAttr<Pipeline_Dialect, Pipeline_Role, "role">;

def Pipeline_SourceKind
    : Pipeline_I32Enum<"SourceKind", "what feeds a channel", [
  I32EnumAttrCase<"Input", 0, "input">,
  I32EnumAttrCase<"Labels", 1, "labels">]>;

def Pipeline_SourceAttr : Pipeline_Attr<"Source", "source"> {
  let summary = "What feeds a channel from outside";
  let description = [{
    An input of the model, with its name, or the labels of the loss. A model's
    own input of the name `labels` is the labels, too: both are given by
    `--labels`.

    ```mlir
    #pipeline.source<input "x">
    #pipeline.source<labels>
    ```

    A channel prints it as `source(input "x")`. Exactly inputs have a name.
  }];
  let parameters = (ins EnumParameter<Pipeline_SourceKind>:$kind,
                        OptionalParameter<"::mlir::StringAttr">:$name);
  let assemblyFormat = "`<` $kind custom<EndName>($name) `>`";
  let extraClassDeclaration = [{
    /// Returns the name of the input, or "labels".
    ::llvm::StringRef getEndpoint();
  }];
  let genVerifyDecl = 1;
}

def Pipeline_SinkKind
    : Pipeline_I32Enum<"SinkKind", "what a channel reports", [
  I32EnumAttrCase<"Loss", 0, "loss">,
  I32EnumAttrCase<"Correct", 1, "correct">,
  I32EnumAttrCase<"Count", 2, "count">,
  I32EnumAttrCase<"Output", 3, "output">,
  I32EnumAttrCase<"Metric", 4, "metric">]>;

def Pipeline_SinkAttr : Pipeline_Attr<"Sink", "sink"> {
  let summary = "What a channel reports to the outside";
  let description = [{
    The loss of a microbatch, its numbers of right predictions and of labels
    that count, an output of the model, or what a metric adds up, with its name.

    ```mlir
    #pipeline.sink<loss>
    #pipeline.sink<output "y">
    #pipeline.sink<metric "top-5">
    ```

    A channel prints it as `sink(output "y")`. Exactly outputs and metrics have
    a name.
  }];
  let parameters = (ins EnumParameter<Pipeline_SinkKind>:$kind,
                        OptionalParameter<"::mlir::StringAttr">:$name);
  let assemblyFormat = "`<` $kind custom<EndName>($name) `>`";
  let genVerifyDecl = 1;
}

def Pipeline_TaskKind : Pipeline_I32Enum<"TaskKind", "what a task does", [
  I32EnumAttrCase<"Forward", 0, "forward">,
  I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"InputGrad", 2, "input_grad">,
  I32EnumAttrCase<"WeightGrad", 3, "weight_grad">,
  I32EnumAttrCase<"Norm", 4, "norm">,
  I32EnumAttrCase<"Update", 5, "update">,
  I32EnumAttrCase<"Evaluate", 6, "evaluate">,
  I32EnumAttrCase<"Push", 7, "push">,
  I32EnumAttrCase<"Fold", 8, "fold">]>;
def Pipeline_TaskKindAttr
    : EnumAttr<Pipeline_Dialect, Pipeline_TaskKind, "kind">;

def Pipeline_ScheduleRole
    : Pipeline_I32Enum<"ScheduleRole", "what a schedule is for", [
  I32EnumAttrCase<"Train", 0, "train">,
  I32EnumAttrCase<"Evaluate", 1, "evaluate">,
  I32EnumAttrCase<"Infer", 2, "infer">]>;
def Pipeline_ScheduleRoleAttr
    : EnumAttr<Pipeline_Dialect, Pipeline_ScheduleRole, "schedule_role">;

def Pipeline_RepeatKind : Pipeline_I32Enum<"RepeatKind", "what a loop counts", [
  I32EnumAttrCase<"Updates", 0, "updates">,
  I32EnumAttrCase<"Microbatches", 1, "microbatches">,
  I32EnumAttrCase<"Times", 2, "times">]>;
def Pipeline_RepeatKindAttr
    : EnumAttr<Pipeline_Dialect, Pipeline_RepeatKind, "repeat_kind">;

// Written without its type, and so that no bit is lost.
def Pipeline_F64Parameter : AttrParameter<"::mlir::FloatAttr",
                                          "a number of type f64"> {
  let parser = "parseF64($_parser)";
  let printer = "$_printer.printFloat($_self.getValue())";
}

// A row of a table with the values that were given for its keys. Which rows and
// keys there are is known to the library of the table, which adds it to the
// dialect: a new row needs nothing here.
class Pipeline_SpecAttr<string name, string attrMnemonic>
    : Pipeline_Attr<name, attrMnemonic> {
  let parameters = (ins StringRefParameter<"name of the row">:$kind,
                        "::mlir::DictionaryAttr":$parameters);
  let assemblyFormat = "`<` custom<Row>($kind, $parameters) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// As on the command line: NAME:key=value,...
    ::std::string getText() const;
  }];
}

def Pipeline_MethodAttr : Pipeline_SpecAttr<"Method", "method"> {
  let summary = "A training method with its parameters";
  let description = [{
    The methods and their keys are those of `--method`, with underscores: a file
    each in `lib/Methods`. What is not given has its default.

    ```mlir
    #pipeline.method<"2bw">
    #pipeline.method<pipedream, vertical_sync = true>
    #pipeline.method<pipemare, anneal_steps = 500, decay = 1.350000e-01>
    ```
  }];
}

def Pipeline_OptimizerAttr : Pipeline_SpecAttr<"Optimizer", "optimizer"> {
  let summary = "An optimizer with its numbers";
  let description = [{
    The optimizers and their keys are those of `--optimizer`, with underscores:
    a file each in `lib/Optimizers`. What is not given has its default.

    ```mlir
    #pipeline.optimizer<sgd, lr = 1.000000e-01, momentum = 9.000000e-01>
    #pipeline.optimizer<adamw>
    ```
  }];
}

def Pipeline_RateAttr : Pipeline_SpecAttr<"Rate", "rate"> {
  let summary = "A learning-rate schedule with its numbers";
  let description = [{
    The schedules and their keys are those of `--lr-schedule`, with underscores:
    a file each in `lib/Optimizers/Rates`. What is not given has its default.

    ```mlir
    #pipeline.rate<cosine, total_steps = 1000, warmup_steps = 50>
    ```
  }];
}

def Pipeline_GeneratorAttr : Pipeline_SpecAttr<"Generator", "generator"> {
  let summary = "The schedule that orders were generated by";
  let description = [{
    The schedules and their keys are those of `--schedule`, with underscores: a
    file each in `lib/Schedule/Generators`; or `file`, for orders of a table.

    ```mlir
    #pipeline.generator<"1f1b">
    #pipeline.generator<interleaved, chunks = 2>
    ```
  }];
}

def Pipeline_ClipScope
    : Pipeline_I32Enum<"ClipScope", "over what a norm is taken", [
  I32EnumAttrCase<"Global", 0, "global">,
  I32EnumAttrCase<"Stage", 1, "stage">]>;

def Pipeline_ClippingAttr : Pipeline_Attr<"Clipping", "clipping"> {
  let summary = "The bound of the norm of the gradients";
  let description = [{
    `global`: of the gradients of all stages together. `stage`: of those of each
    stage by itself.

    ```mlir
    #pipeline.clipping<5.000000e-01, stage>
    ```
  }];
  let parameters = (ins Pipeline_F64Parameter:$norm,
                        EnumParameter<Pipeline_ClipScope>:$scope);
  let assemblyFormat = "`<` $norm `,` $scope `>`";
  let genVerifyDecl = 1;
}

def Pipeline_BatchNorm
    : Pipeline_I32Enum<"BatchNorm", "statistics of batch normalization", [
  I32EnumAttrCase<"Train", 0, "train">,
  I32EnumAttrCase<"Frozen", 1, "frozen">]>;
def Pipeline_BatchNormAttr
    : EnumAttr<Pipeline_Dialect, Pipeline_BatchNorm, "batch_norm">;

def Pipeline_Precision
    : Pipeline_I32Enum<"Precision", "what f32 models are computed in", [
  I32EnumAttrCase<"F32", 0, "f32">,
  I32EnumAttrCase<"BF16", 1, "bf16">]>;
def Pipeline_PrecisionAttr
    : EnumAttr<Pipeline_Dialect, Pipeline_Precision, "precision">;

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEDIALECT_TD
