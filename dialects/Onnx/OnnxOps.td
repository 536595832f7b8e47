//===- OnnxOps.td - ONNX nodes as one generic op -----------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One op for every ONNX operator. What an operator means (types, folding,
// lowering) is in a table keyed by (domain, op_type, since-version), so that
// the next operator is an entry there and nothing here.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_ONNX_ONNXOPS_TD
#define PENSTOCK_DIALECTS_ONNX_ONNXOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::penstock::onnx";
  let summary = "A model as imported: ONNX nodes over ranked tensors";
  let description = [{

    Discardable attributes:
    - `onnx.constant_initializers = ["c"]`, on the module: float initializers
      that became constants and do not train
    - `onnx.unreached_initializers = ["w"]`, on the module: initializers that
      would train, but that only other outputs read than the one that enters the
      loss
    - `onnx.unused_inputs = ["x"]`, on the module: inputs of the model that the
      program does not need
    - `onnx.output = "y"`, on a result of a function, at `onnx`: the name of the
      output
    - `onnx.rebound_batch = n`, on a function, until its shapes are known:
      inputs with a leading 1 got this batch size instead
    - `onnx.branch`, on a node, until the condition is known: it is in a branch
      of an If
    - `onnx.passed_on = {a = "b"}`, on the module, until the cut: node a only
      gave the value of node b another shape: `--split-at=a` cuts behind b
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Onnx_Op<string mnemonic, list<Trait> traits = []>
    : Op<Onnx_Dialect, mnemonic, traits>;

def Onnx_NodeOp : Onnx_Op<"node", [Pure]> {
  let summary = "One node of an ONNX graph";
  let description = [{
    `since` is the operator's since-version that the model's opset selects, not
    the opset itself. `params` are the ONNX attributes that the node gives. The
    node's name is the op's location. An absent optional input is a value of
    type `none` (see `onnx.absent`).

    ```mlir
    %y = onnx.node "LeakyRelu"(%x) since 16 {alpha = 0.1 : f32}
       : (tensor<5x7xf32>) -> tensor<5x7xf32>
    ```

    Constraints:
    - **O1**: the operator has a name.
    - **O2**: the node has at least one output.
  }];
  let arguments = (ins StrAttr:$op_type,
                       Variadic<AnyType>:$inputs,
                       ConfinedAttr<I64Attr, [IntPositive]>:$since,
                       OptionalAttr<StrAttr>:$domain,
                       OptionalAttr<DictionaryAttr>:$params);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    $op_type `(` $inputs `)` `since` $since (`domain` $domain^)?
    `` custom<Params>($params) attr-dict-with-keyword
    `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    /// The ONNX attribute `name`, or null when the node does not give it.
    ::mlir::Attribute getParam(::llvm::StringRef name) {
      return getParams() ? getParams()->get(name) : ::mlir::Attribute();
    }
    /// "" for the default domain.
    ::llvm::StringRef getDomainName() {
      return getDomain().value_or(::llvm::StringRef());
    }
    /// Returns true if this chooses between values of two branches.
    bool isIf() { return getOpType() == "If" && getDomainName().empty(); }
  }];
  let hasVerifier = 1;
}

def Onnx_AbsentOp : Onnx_Op<"absent", [Pure]> {
  let summary = "Stands for an optional input that a node leaves out";
  let description = [{
    ONNX names an input that a node leaves out by the empty string. In a list of
    operands, a value of type `none` keeps its position.

    ```mlir
    %none = onnx.absent
    %y = onnx.node "Clip"(%x, %none, %max) since 13
       : (tensor<5x7xf32>, none, tensor<f32>) -> tensor<5x7xf32>
    ```
  }];
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
  let builders = [OpBuilder<(ins), [{
    $_state.addTypes($_builder.getNoneType());
  }]>];
}

def Onnx_LoopOp : Onnx_Op<"loop", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "A Loop or Scan, until shapes give its trip count";
  let description = [{
    `inputs` are the trip count, the condition (each may be absent), and the
    first carried values. The body takes the number of the iteration, the
    condition and the carried values; it yields the next condition, the next
    carried values, and an element of each scan output. Results are the carried
    values, then the scan outputs: the elements of all iterations, joined along
    the new axis that `scan_axes` names for each, the last iteration first where
    `scan_reversed`. `onnx-resolve-shapes` unrolls the loop.

    ```mlir
    %y, %all = onnx.loop(%m, %none, %x) scans [0] reversed [false] {
    ^bb0(%i: tensor<*xf32>, %c: tensor<*xf32>, %h: tensor<*xf32>):
      %0 = onnx.node "Tanh"(%h) since 13 : (tensor<*xf32>) -> tensor<*xf32>
      onnx.yield %c, %0, %0 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
    } : (tensor<i64>, none, tensor<5xf32>) -> (tensor<*xf32>, tensor<*xf32>)
    ```

    Constraints:
    - **O3**: the first two inputs are the trip count and the condition.
    - **O4**: every scan output has an axis and a direction.
    - **O5**: there is a result for each carried value and each scan output.
    - **O6**: the body takes as many values as the op.
    - **O7**: the body yields the condition, the carried values and the elements
      of the scan outputs.
  }];
  let arguments = (ins Variadic<AnyType>:$inputs,
                       DenseI64ArrayAttr:$scan_axes,
                       DenseBoolArrayAttr:$scan_reversed);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `scans` $scan_axes `reversed` $scan_reversed
    attr-dict-with-keyword $body `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

def Onnx_YieldOp
    : Onnx_Op<"yield", [Pure, Terminator, HasParent<"LoopOp">]> {
  let summary = "The values that an iteration of a loop yields";
  let description = [{
    The next condition, the next carried values, and the elements that this
    iteration adds to the scan outputs.

    ```mlir
    onnx.yield %more, %state, %element : tensor<i1>, tensor<5xf32>, tensor<5xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif // PENSTOCK_DIALECTS_ONNX_ONNXOPS_TD
