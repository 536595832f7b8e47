//===- NormalizeOps.td - Normalizations --------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// To mean zero and variance one, with the derivative of the whole. Scale and
// bias are elementwise ops of their own: what the backward keeps is the
// normalized x, which holds no weight. And batch normalization, which does so
// in training only.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_NORMALIZEOPS_TD
#define PENSTOCK_DIALECTS_NN_NORMALIZEOPS_TD

include "dialects/Nn/ModeDependentOpInterface.td"

defvar normalizeRules = [{
    Constraints:
    - **M17**: `dims` are axes of the operand, in ascending order.
    - **M24**: every statistic has the element type of the operand and the axes
      that `dims` leave.
    - **M25**: `epsilon` is finite and not negative.
}];

def Nn_NormalizeOp : Nn_Op<"normalize",
    [Pure, AllTypesMatch<["input", "result"]>,
     AllTypesMatch<["mean", "variance"]>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) over some dimensions";
  let description = !strconcat([{
    `mean` and `variance` (of the population, from squared differences) are over
    `dims`, and have the other dimensions of `x`. Layer, group, instance and
    batch normalization share it; their scales and biases are ops of their own.

    ```mlir
    %y, %mean, %variance = nn.normalize %x dims [0, 2] epsilon(1.0e-5)
       : tensor<5x7x11xf32> -> tensor<7xf32>
    ```
  }], normalizeRules);
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input,
                       DenseI64ArrayAttr:$dims, F64Attr:$epsilon);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result,
                      RankedTensorOf<[AnyFloat]>:$mean,
                      RankedTensorOf<[AnyFloat]>:$variance);
  let assemblyFormat = [{
    $input `dims` $dims `epsilon` `(` $epsilon `)` attr-dict
    `:` type($input) `->` type($mean)
  }];
  let extraClassDeclaration = [{
    /// The type of the statistics of a tensor.
    static ::mlir::RankedTensorType
    getStatisticType(::mlir::RankedTensorType input,
                     ::llvm::ArrayRef<int64_t> dims);
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::llvm::ArrayRef<int64_t>":$dims,
                                 "double":$epsilon)>];
  let hasVerifier = 1;
}

def Nn_RmsNormalizeOp : Nn_Op<"rms_normalize",
    [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "x / sqrt(mean(x * x) + epsilon) over some dimensions";
  let description = !strconcat([{
    `mean_square` is over `dims`, and has the other dimensions of `x`.

    ```mlir
    %y, %square = nn.rms_normalize %x dims [1] epsilon(1.0e-5)
       : tensor<5x7xf32> -> tensor<5xf32>
    ```
  }], normalizeRules);
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input,
                       DenseI64ArrayAttr:$dims, F64Attr:$epsilon);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result,
                      RankedTensorOf<[AnyFloat]>:$mean_square);
  let assemblyFormat = [{
    $input `dims` $dims `epsilon` `(` $epsilon `)` attr-dict
    `:` type($input) `->` type($mean_square)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::llvm::ArrayRef<int64_t>":$dims,
                                 "double":$epsilon)>];
  let hasVerifier = 1;
}

def Nn_StandardizeOp : Nn_Op<"standardize",
    [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon), with known statistics";
  let description = !strconcat([{
    What nn.normalize makes of `x`, bit for bit, from the statistics that it
    found: a backward that has both keeps no normalized values. Without a mean
    that of nn.rms_normalize, whose mean square is the variance.

    ```mlir
    %y = nn.standardize %x mean(%mean) variance(%variance) dims [0, 2]
         epsilon(1.0e-5) : (tensor<5x7x11xf32>, tensor<7xf32>, tensor<7xf32>)
         -> tensor<5x7x11xf32>
    ```
  }], normalizeRules);
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input,
                       Optional<RankedTensorOf<[AnyFloat]>>:$mean,
                       RankedTensorOf<[AnyFloat]>:$variance,
                       DenseI64ArrayAttr:$dims, F64Attr:$epsilon);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $input (`mean` `(` $mean^ `)`)? `variance` `(` $variance `)` `dims` $dims
    `epsilon` `(` $epsilon `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_NormalizeGradOp : Nn_Op<"normalize_grad",
    [Pure, AllTypesMatch<["cotangent", "normalized", "result"]>]> {
  let summary = "Cotangent of the operand of nn.normalize";
  let description = !strconcat([{
    (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + epsilon), with y the
    normalized values and the means over `dims`. That of nn.rms_normalize is
    `uncentered`: without mean(dy), and its mean square is the variance.

    ```mlir
    %dx = nn.normalize_grad %dy, %y, %variance dims [0, 2] epsilon(1.0e-5)
        : tensor<5x7x11xf32>, tensor<7xf32>
    ```
  }], normalizeRules);
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$cotangent,
                       RankedTensorOf<[AnyFloat]>:$normalized,
                       RankedTensorOf<[AnyFloat]>:$variance,
                       DenseI64ArrayAttr:$dims, F64Attr:$epsilon,
                       UnitAttr:$uncentered);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $cotangent `,` $normalized `,` $variance `dims` $dims
    `epsilon` `(` $epsilon `)` (`uncentered` $uncentered^)? attr-dict
    `:` type($cotangent) `,` type($variance)
  }];
  let hasVerifier = 1;
}

def Nn_BatchNormOp : Nn_Op<"batch_norm",
    [Pure, AllTypesMatch<["input", "result"]>,
     AllTypesMatch<["scale", "bias", "mean", "variance", "next_mean",
                    "next_variance"]>,
     DeclareOpInterfaceMethods<ModeDependentOpInterface,
                               ["trainsByItself"]>]> {
  let summary = "Batch normalization over all dimensions but the second";
  let description = [{
    In training, `result` is `input` normalized by the statistics of the
    microbatch, scaled and shifted; the running statistics become
    momentum * old + (1 - momentum) * those of the microbatch. In evaluation it
    is normalized by `mean` and `variance`, which stay. `training` is what the
    model says for itself; it counts where no tasks are derived.

    ```mlir
    %y, %m, %v = nn.batch_norm %x, %scale, %bias, %mean, %variance
        momentum(0.9) epsilon(1.0e-5) : tensor<5x7x11xf32>, tensor<7xf32>
    ```

    Constraints:
    - **M25**: `epsilon` is finite and not negative.
    - **M26**: the second axis of the operand is that of channels; scale, bias
      and statistics have an element per channel, of the type of the operand.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input,
                       RankedTensorOf<[AnyFloat]>:$scale,
                       RankedTensorOf<[AnyFloat]>:$bias,
                       RankedTensorOf<[AnyFloat]>:$mean,
                       RankedTensorOf<[AnyFloat]>:$variance,
                       F64Attr:$momentum, F64Attr:$epsilon,
                       UnitAttr:$training);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result,
                      RankedTensorOf<[AnyFloat]>:$next_mean,
                      RankedTensorOf<[AnyFloat]>:$next_variance);
  let assemblyFormat = [{
    $input `,` $scale `,` $bias `,` $mean `,` $variance
    `momentum` `(` $momentum `)` `epsilon` `(` $epsilon `)` attr-dict
    `:` type($input) `,` type($scale)
  }];
  let hasVerifier = 1;
}

#endif // PENSTOCK_DIALECTS_NN_NORMALIZEOPS_TD
