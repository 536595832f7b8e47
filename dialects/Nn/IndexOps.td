//===- IndexOps.td - Ops that go by positions --------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gathers and scatters, which are each other's derivatives, and the ops along
// one axis whose results depend on positions. Included by NnOps.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_INDEXOPS_TD
#define PENSTOCK_DIALECTS_NN_INDEXOPS_TD

include "mlir/IR/EnumAttr.td"

def Nn_ScatterKind : I32EnumAttr<
    "ScatterKind", "how an update joins what is there",
    [I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Add", 1, "add">,
     I32EnumAttrCase<"Mul", 2, "mul">, I32EnumAttrCase<"Max", 3, "max">,
     I32EnumAttrCase<"Min", 4, "min">]> {
  let cppNamespace = "::penstock::nn";
  let genSpecializedAttr = 0;
}
def Nn_ScatterKindAttr : EnumAttr<Nn_Dialect, Nn_ScatterKind, "scatter_kind">;

defvar accessRules = [{
    Constraints:
    - **M11**: the elements that are moved have the type of the data.
    - **M12**: shapes are static.
    - **M13**: `at` takes an index per axis of the iteration and a symbol per
      index tensor, and gives one of them per axis of the data, each small
      enough for that axis.
    - **M14**: every index tensor has an index map, which takes the indices of
      the iteration, gives an index or a constant per axis of its tensor, and
      stays inside of it.
}];

def Nn_GatherOp : Nn_Op<"gather", [Pure]> {
  let summary = "Elements of a tensor at positions that other tensors hold";
  let description = !strconcat([{
    One iteration per element of the result. `at` maps its indices, and one
    symbol per index tensor, to the position in `data`; `index_maps` say which
    element of each index tensor that symbol is. A negative index counts from
    the end of its axis. Where an index is out of range the result is NaN, or
    the smallest integer: no other element is ever read instead.

    ```mlir
    // Rows of an embedding.
    %y = nn.gather %table[%ids] at affine_map<(i, j)[s] -> (s, j)>
         index_maps [affine_map<(i, j) -> (i)>]
       : tensor<11x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
    ```
  }], accessRules);
  let arguments = (ins AnyRankedTensor:$data,
                       Variadic<RankedTensorOf<[AnySignlessInteger]>>:$indices,
                       AffineMapAttr:$at, AffineMapArrayAttr:$index_maps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $data `[` $indices `]` `at` $at `index_maps` $index_maps attr-dict
    `:` type($data) `,` type($indices) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_ScatterOp
    : Nn_Op<"scatter", [Pure, TypesMatchWith<"the result has init's type",
                                             "init", "result", "$_self">]> {
  let summary = "A tensor with updates at positions that other tensors hold";
  let description = !strconcat([{
    The result is `init`, after each element of `updates`, in row-major order,
    has replaced, been added to, multiplied with or compared with the element at
    its position, which is said as in `nn.gather`. With `add`, this is the
    derivative of a gather; updates of one position are added in their order.
    An update whose index is out of range makes the nearest position NaN, or
    the smallest integer.

    ```mlir
    %d = nn.scatter add %dy into %zeros[%ids]
         at affine_map<(i, j)[s] -> (s, j)>
         index_maps [affine_map<(i, j) -> (i)>]
       : tensor<5x3xf32>, tensor<11x3xf32>, tensor<5xi64>
    ```
  }], accessRules);
  let arguments = (ins AnyRankedTensor:$updates, AnyRankedTensor:$init,
                       Variadic<RankedTensorOf<[AnySignlessInteger]>>:$indices,
                       Nn_ScatterKindAttr:$kind, AffineMapAttr:$at,
                       AffineMapArrayAttr:$index_maps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $kind $updates `into` $init `[` $indices `]` `at` $at
    `index_maps` $index_maps attr-dict
    `:` type($updates) `,` type($init) `,` type($indices)
  }];
  let hasVerifier = 1;
}

def Nn_CumulativeSumOp
    : Nn_Op<"cumulative_sum", [Pure, SameOperandsAndResultType]> {
  let summary = "Sums of the elements up to each one along an axis";
  let description = [{
    Element k along axis `dim` is the sum of the elements 0 to k, or to k - 1
    with `exclusive`; with `reverse`, of the elements from the end. Added in
    this order.

    ```mlir
    %y = nn.cumulative_sum %x dim(1) exclusive : tensor<5x3xf32>
    ```

    Constraints:
    - **M15**: `dim` is an axis of the operand.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$dim,
                       UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs AnyRankedTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "int64_t":$dim,
                                 "bool":$exclusive, "bool":$reverse), [{
    build($_builder, $_state, input.getType(), input,
          $_builder.getI64IntegerAttr(dim),
          exclusive ? $_builder.getUnitAttr() : ::mlir::UnitAttr(),
          reverse ? $_builder.getUnitAttr() : ::mlir::UnitAttr());
  }]>];
  let assemblyFormat = [{
    $input `dim` `(` $dim `)` (`exclusive` $exclusive^)? (`reverse` $reverse^)?
    attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Nn_TopKOp : Nn_Op<"top_k", [Pure]> {
  let summary = "The positions of the largest elements along an axis";
  let description = [{
    As many as the result has along axis `dim`, the largest first (with
    `smallest`, the smallest). Equal elements are in the order of their
    positions; NaN is larger than any number.

    ```mlir
    %i = nn.top_k %x dim(1) : tensor<5x7xf32> -> tensor<5x2xi64>
    ```

    Constraints:
    - **M15**: `dim` is an axis of the operand.
    - **M16**: the result has the shape of the operand, with at most as many
      elements along `dim`.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$dim,
                       UnitAttr:$smallest);
  let results = (outs RankedTensorOf<[I64]>:$result);
  let assemblyFormat = [{
    $input `dim` `(` $dim `)` (`smallest` $smallest^)? attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_LogSumExpOp : Nn_Op<"log_sum_exp", [Pure]> {
  let summary = "Logarithm of the sum of exponentials";
  let description = [{
    max(x) + log(sum(exp(x - max(x)))) over the axes `dims`, which the result
    does not have: no exponential overflows. The cotangent of x is
    exp(x - y) * dy, without the derivative of the maximum, which cancels.

    ```mlir
    %y = nn.log_sum_exp %x dims [1] : tensor<5x3xf32> -> tensor<5xf32>
    ```

    Constraints:
    - **M15**: every one of `dims` is an axis of the operand.
    - **M17**: `dims` are in ascending order.
    - **M18**: the result has the axes of the operand that `dims` leave.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input,
                       DenseI64ArrayAttr:$dims);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::llvm::ArrayRef<int64_t>":$dims)>];
  let assemblyFormat = [{
    $input `dims` $dims attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // PENSTOCK_DIALECTS_NN_INDEXOPS_TD
