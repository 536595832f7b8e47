//===- ConvOps.td - Convolutions ---------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution and its two gradients, on tensors and on buffers: padding,
// groups and direction stay visible down to the library call. Upstream's
// convolutions lose them under differentiation.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_CONVOPS_TD
#define PENSTOCK_DIALECTS_NN_CONVOPS_TD

include "mlir/Interfaces/DestinationStyleOpInterface.td"

def Nn_Floats : AnyTypeOf<[RankedTensorOf<[AnyFloat]>, MemRefOf<[AnyFloat]>]>;

class Nn_ConvolutionOp<string mnemonic>
    : Nn_Op<mnemonic, [DestinationStyleOpInterface,
                       DeclareOpInterfaceMethods<ConditionallySpeculatable>,
                       DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins Nn_Floats:$first, Nn_Floats:$second, Nn_Floats:$init,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
      DenseI64ArrayAttr:$pads, ConfinedAttr<I64Attr, [IntPositive]>:$groups);
  let results = (outs Variadic<RankedTensorOf<[AnyFloat]>>:$results);
  let assemblyFormat = [{
    $first `,` $second `outs` `(` $init `)` `strides` $strides
    `dilations` $dilations `pads` $pads `groups` `(` $groups `)` attr-dict
    `:` type($first) `,` type($second) `,` type($init) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getInitMutable();
    }
  }];
  let builders = [OpBuilder<
      (ins "::mlir::Value":$first, "::mlir::Value":$second,
          "::mlir::Value":$init, "::llvm::ArrayRef<int64_t>":$strides,
          "::llvm::ArrayRef<int64_t>":$dilations,
          "::llvm::ArrayRef<int64_t>":$pads, "int64_t":$groups),
      [{
    ::llvm::SmallVector<::mlir::Type> types;
    if (::llvm::isa<::mlir::RankedTensorType>(init.getType()))
      types.push_back(init.getType());
    build($_builder, $_state, types, first, second, init, strides, dilations,
          pads, groups);
  }]>];
  let hasVerifier = 1;
}

defvar convolutionRules = [{
    Constraints:
    - **M1**: there are a stride and a dilation, and two pads, for each spatial
      dimension of every tensor.
    - **M2**: all tensors have one element type.
    - **M3**: batch, channels and groups are those of one convolution.
    - **M4**: strides and dilations are positive.
    - **M5**: the output has as many elements along each spatial dimension as
      there are positions of the kernel.
}];

def Nn_ConvOp : Nn_ConvolutionOp<"conv"> {
  let summary = "Convolution in one to three spatial dimensions";
  let description = !strconcat([{
    Input (N, C, spatial...) and weights (M, C / groups, kernel...) to output
    (N, M, spatial...), which overwrites `init`. `pads` are those before each
    spatial dimension, then those after.

    ```mlir
    %y = nn.conv %x, %w outs(%e) strides [2, 2] dilations [1, 1]
        pads [1, 1, 1, 1] groups(1)
       : tensor<5x3x11x9xf32>, tensor<7x3x3x3xf32>, tensor<5x7x6x5xf32>
         -> tensor<5x7x6x5xf32>
    ```
  }], convolutionRules);
}

def Nn_ConvInputGradOp : Nn_ConvolutionOp<"conv_input_grad"> {
  let summary =
      "Cotangent of the input of nn.conv, or a transposed convolution";
  let description = !strconcat([{
    Cotangent of the output and weights to that of the input, which overwrites
    `init`. The attributes are those of the convolution.

    ```mlir
    %dx = nn.conv_input_grad %dy, %w outs(%e) strides [2, 2] dilations [1, 1]
        pads [1, 1, 1, 1] groups(1)
       : tensor<5x7x6x5xf32>, tensor<7x3x3x3xf32>, tensor<5x3x11x9xf32>
         -> tensor<5x3x11x9xf32>
    ```
  }], convolutionRules);
}

def Nn_ConvWeightGradOp : Nn_ConvolutionOp<"conv_weight_grad"> {
  let summary = "Adds to the cotangent of the weights of nn.conv";
  let description = !strconcat([{
    Input and cotangent of the output to the cotangent of the weights, which is
    added to `init`. The attributes are those of the convolution.

    ```mlir
    %dw = nn.conv_weight_grad %x, %dy outs(%sum) strides [2, 2]
        dilations [1, 1] pads [1, 1, 1, 1] groups(1)
       : tensor<5x3x11x9xf32>, tensor<5x7x6x5xf32>, tensor<7x3x3x3xf32>
         -> tensor<7x3x3x3xf32>
    ```
  }], convolutionRules);
}

#endif // PENSTOCK_DIALECTS_NN_CONVOPS_TD
