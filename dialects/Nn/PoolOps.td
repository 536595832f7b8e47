//===- PoolOps.td - Pooling --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maxima and sums over windows. Averages and norms are made of sums. How many
// windows there are is in the type of the result.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_POOLOPS_TD
#define PENSTOCK_DIALECTS_NN_POOLOPS_TD

class Nn_PoolOp<string mnemonic, list<Trait> traits = []>
    : Nn_Op<mnemonic, !listconcat([Pure], traits)> {
  dag window = (ins DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let hasVerifier = 1;
}

defvar poolRules = [{
    Constraints:
    - **M2**: all tensors have one element type (`indices` aside).
    - **M6**: there are a stride, a dilation and a pad for each dimension of the
      window, which are the spatial ones of the tensors.
    - **M7**: batch and channels stay.
    - **M8**: windows, strides and dilations are positive, pads are not
      negative.
    - **M9**: every window has an element inside of the tensor.
    - **M10**: `indices`, where there are any, have the shape of the windows.
}];

def Nn_MaxPoolOp : Nn_PoolOp<"max_pool"> {
  let summary = "The largest element of each window, and where it is";
  let description = !strconcat([{
    (N, C, spatial...) to (N, C, windows...). `indices` are positions in the
    plane of sample and channel; of equal elements the first counts, and NaN
    counts as largest. Elements outside are none: `pads` are those before each
    spatial dimension, those after follow from the number of windows.

    ```mlir
    %y, %i = nn.max_pool %x window [3, 2] strides [2, 2] dilations [1, 1]
        pads [1, 0] : tensor<5x7x11x9xf32> -> tensor<5x7x6x4xf32>,
                                              tensor<5x7x6x4xi32>
    ```
  }], poolRules);
  let arguments = !con((ins RankedTensorOf<[AnyFloat]>:$input), window);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result,
      RankedTensorOf<[I32]>:$indices);
  let assemblyFormat = [{
    $input `window` $window `strides` $strides `dilations` $dilations
    `pads` $pads attr-dict `:` type($input) `->` type($result) `,`
    type($indices)
  }];
}

def Nn_MaxPoolGradOp : Nn_PoolOp<"max_pool_grad"> {
  let summary = "Cotangent of the input of nn.max_pool";
  let description = !strconcat([{
    Every window's cotangent goes to the element that its index names; several
    add in the order of the windows. The attributes are those of the pooling.

    ```mlir
    %dx = nn.max_pool_grad %dy, %i window [3, 2] strides [2, 2]
        dilations [1, 1] pads [1, 0]
        : tensor<5x7x6x4xf32>, tensor<5x7x6x4xi32> -> tensor<5x7x11x9xf32>
    ```
  }], poolRules);
  let arguments = !con((ins RankedTensorOf<[AnyFloat]>:$cotangent,
      RankedTensorOf<[I32]>:$indices), window);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $cotangent `,` $indices `window` $window `strides` $strides
    `dilations` $dilations `pads` $pads attr-dict
    `:` type($cotangent) `,` type($indices) `->` type($result)
  }];
}

def Nn_SumPoolOp : Nn_PoolOp<"sum_pool"> {
  let summary = "The sum of each window";
  let description = !strconcat([{
    (N, C, spatial...) to (N, C, windows...). Elements outside count as zero.
    `pads` are those before each spatial dimension, those after follow from the
    number of windows.

    ```mlir
    %y = nn.sum_pool %x window [3, 2] strides [2, 2] dilations [1, 1]
         pads [1, 0] : tensor<5x7x11x9xf32> -> tensor<5x7x6x4xf32>
    ```
  }], poolRules);
  let arguments = !con((ins RankedTensorOf<[AnyFloat]>:$input), window);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $input `window` $window `strides` $strides `dilations` $dilations
    `pads` $pads attr-dict `:` type($input) `->` type($result)
  }];
}

def Nn_SumPoolGradOp : Nn_PoolOp<"sum_pool_grad"> {
  let summary = "Cotangent of the input of nn.sum_pool";
  let description = !strconcat([{
    Every element gets the sum of the cotangents of the windows that it is in.
    The attributes are those of the pooling.

    ```mlir
    %dx = nn.sum_pool_grad %dy window [3, 2] strides [2, 2] dilations [1, 1]
        pads [1, 0] : tensor<5x7x6x4xf32> -> tensor<5x7x11x9xf32>
    ```
  }], poolRules);
  let arguments = !con((ins RankedTensorOf<[AnyFloat]>:$cotangent), window);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $cotangent `window` $window `strides` $strides `dilations` $dilations
    `pads` $pads attr-dict `:` type($cotangent) `->` type($result)
  }];
}

#endif // PENSTOCK_DIALECTS_NN_POOLOPS_TD
