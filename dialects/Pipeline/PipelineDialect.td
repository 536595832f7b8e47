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

    Its discardable attributes are in DiscardableAttributes.h. Others that begin
    with its name are rejected.
  }];
  // Of which an op has its scratch.
  let dependentDialects = ["::penstock::nn::NnDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
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

def Pipeline_PanelsAttr : Pipeline_Attr<"Panels", "panels"> {
  let summary = "Weights of a product, prepacked";
  let description = [{
    A matrix of so many rows and columns, whose elements have these strides in
    the weights, in panels of `width` columns, one behind the other. The rows of
    a panel are `stride` elements apart. The last panel may have more columns.

    ```mlir
    #pipeline.panels<[1024, 4096] strides [1, 1024] width 384 stride 400>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t">:$strides,
                        "int64_t":$width, "int64_t":$stride);
  let assemblyFormat = [{
    `<` `[` $sizes `]` `strides` `[` $strides `]` `width` $width
    `stride` $stride `>`
  }];
  let genVerifyDecl = 1;
}

class Pipeline_I32Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::penstock::pipeline";
  let genSpecializedAttr = 0;
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
  let assemblyFormat = "`<` $kind ($name^)? `>`";
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
  I32EnumAttrCase<"Output", 3, "output">]>;

def Pipeline_SinkAttr : Pipeline_Attr<"Sink", "sink"> {
  let summary = "What a channel reports to the outside";
  let description = [{
    The loss of a microbatch, its numbers of right predictions and of labels
    that count, or an output of the model, with its name.

    ```mlir
    #pipeline.sink<loss>
    #pipeline.sink<output "y">
    ```

    A channel prints it as `sink(output "y")`. Exactly outputs have a name.
  }];
  let parameters = (ins EnumParameter<Pipeline_SinkKind>:$kind,
                        OptionalParameter<"::mlir::StringAttr">:$name);
  let assemblyFormat = "`<` $kind ($name^)? `>`";
  let genVerifyDecl = 1;
}

def Pipeline_TaskKind : Pipeline_I32Enum<"TaskKind", "what a task does", [
  I32EnumAttrCase<"Forward", 0, "forward">,
  I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"InputGrad", 2, "input_grad">,
  I32EnumAttrCase<"WeightGrad", 3, "weight_grad">,
  I32EnumAttrCase<"Norm", 4, "norm">,
  I32EnumAttrCase<"Update", 5, "update">,
  I32EnumAttrCase<"Evaluate", 6, "evaluate">]>;
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

def Pipeline_MethodKind : Pipeline_I32Enum<"MethodKind", "a training method", [
  I32EnumAttrCase<"Sync", 0, "sync">,
  I32EnumAttrCase<"Naive", 1, "naive">,
  I32EnumAttrCase<"PipeDream", 2, "pipedream">,
  I32EnumAttrCase<"TwoBW", 3, "2bw">,
  I32EnumAttrCase<"PipeMare", 4, "pipemare">,
  I32EnumAttrCase<"SpecTrain", 5, "spectrain">,
  I32EnumAttrCase<"XPipe", 6, "xpipe">,
  I32EnumAttrCase<"PipeOptim", 7, "pipeoptim">]>;

// Quotes what is no keyword.
def Pipeline_MethodParameter : EnumParameter<Pipeline_MethodKind> {
  let printer = "$_printer.getStream() << $_self";
}

// Written without its type, and so that no bit is lost.
def Pipeline_F64Parameter
    : OptionalParameter<"::mlir::FloatAttr", "a number of type f64"> {
  let parser = "parseF64($_parser)";
  let printer = "$_printer.printFloat($_self.getValue())";
}

def Pipeline_MethodAttr : Pipeline_Attr<"Method", "method"> {
  let summary = "A training method with its parameters";
  let description = [{
    What is off is left out: PipeDream's vertical sync, and PipeMare's updates
    over which rates are divided (T1), D of its correction of discrepancies
    (T2), and its synchronous updates at first (T3).

    ```mlir
    #pipeline.method<"2bw">
    #pipeline.method<pipedream vertical_sync(true)>
    #pipeline.method<pipemare anneal_steps(500) decay(0.135) warmup_steps(100)>
    ```
  }];
  let parameters = (ins Pipeline_MethodParameter:$kind,
                        DefaultValuedParameter<"bool", "false">:$vertical_sync,
                        DefaultValuedParameter<"int64_t", "0">:$anneal_steps,
                        Pipeline_F64Parameter:$decay,
                        DefaultValuedParameter<"int64_t", "0">:$warmup_steps);
  let assemblyFormat = [{
    `<` $kind (`vertical_sync` `(` $vertical_sync^ `)`)?
    (`anneal_steps` `(` $anneal_steps^ `)`)? (`decay` `(` $decay^ `)`)?
    (`warmup_steps` `(` $warmup_steps^ `)`)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEDIALECT_TD
