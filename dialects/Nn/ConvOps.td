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

include "dialects/Nn/LibraryCallOpInterface.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def Nn_Floats : AnyTypeOf<[RankedTensorOf<[AnyFloat]>, MemRefOf<[AnyFloat]>]>;

// How the runtime computes one; see penstock/abi.h.
def Nn_ConvolutionLayout : I32EnumAttr<"ConvolutionLayout",
    "how a convolution is computed",
    [I32EnumAttrCase<"Plain", 0, "plain">,
     I32EnumAttrCase<"Library", 1, "library">,
     I32EnumAttrCase<"Columns", 2, "columns">,
     I32EnumAttrCase<"Winograd", 3, "winograd">,
     I32EnumAttrCase<"Tiles2x2", 4, "tiles_2x2">,
     I32EnumAttrCase<"Tiles4x4", 5, "tiles_4x4">,
     I32EnumAttrCase<"OutputWindows", 6, "output_windows">,
     I32EnumAttrCase<"CombinedGroups", 7, "combined_groups">,
     I32EnumAttrCase<"Upright", 8, "upright">]> {
  let cppNamespace = "::penstock::nn";
  let genSpecializedAttr = 0;
}
def Nn_ConvolutionLayoutAttr
    : EnumAttr<Nn_Dialect, Nn_ConvolutionLayout, "convolution_layout">;

def Nn_PrepackingAttr : AttrDef<Nn_Dialect, "Prepacking"> {
  let mnemonic = "prepacking";
  let summary = "Which convolution weights are reordered for";
  let description = [{
    Shapes of its input, weights and output; the gradient of its input, which
    wants another order, says `input_grad`. The order itself is the library's.

    ```mlir
    #nn.prepacking<[2, 64, 8, 8] by [128, 64, 3, 3] to [2, 128, 4, 4]
        strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] groups 1
        layout library>
    ```
  }];
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$input_grad,
                        ArrayRefParameter<"int64_t">:$input,
                        ArrayRefParameter<"int64_t">:$weights,
                        ArrayRefParameter<"int64_t">:$output,
                        ArrayRefParameter<"int64_t">:$strides,
                        ArrayRefParameter<"int64_t">:$dilations,
                        ArrayRefParameter<"int64_t">:$pads,
                        "int64_t":$groups,
                        EnumParameter<Nn_ConvolutionLayout>:$layout);
  let assemblyFormat = [{
    `<` (`input_grad` `(` $input_grad^ `)`)? `[` $input `]` `by` `[` $weights
    `]` `to` `[` $output `]` `strides` `[` $strides `]` `dilations` `[`
    $dilations `]` `pads` `[` $pads `]` `groups` $groups `layout` $layout `>`
  }];
}

// `layout` and `scratch` are known once pipeline-share-scratch has asked the
// library.
class Nn_ConvolutionOp<string mnemonic>
    : Nn_Op<mnemonic, [DestinationStyleOpInterface, LibraryCallOpInterface,
                       DeclareOpInterfaceMethods<ConditionallySpeculatable>,
                       DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins Nn_Floats:$first, Nn_Floats:$second, Nn_Floats:$init,
      Optional<MemRefRankOf<[F32], [1]>>:$prepacked,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
      DenseI64ArrayAttr:$pads, ConfinedAttr<I64Attr, [IntPositive]>:$groups,
      OptionalAttr<Nn_ConvolutionLayoutAttr>:$layout,
      OptionalAttr<Nn_ScratchAttr>:$scratch);
  let results = (outs Variadic<RankedTensorOf<[AnyFloat]>>:$results);
  let assemblyFormat = [{
    $first `,` $second `outs` `(` $init `)` (`prepacked` `(`
    $prepacked^ `:` type($prepacked) `)`)? `strides` $strides
    `dilations` $dilations `pads` $pads `groups` `(` $groups `)`
    (`layout` `` $layout^)? (`scratch` $scratch^)? attr-dict
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
    build($_builder, $_state, types, first, second, init,
          /*prepacked=*/::mlir::Value(), strides, dilations, pads, groups,
          /*layout=*/nullptr, /*scratch=*/nullptr);
  }]>];
  let hasVerifier = 1;
}

def Nn_ConvOp : Nn_ConvolutionOp<"conv"> {
  let summary = "Convolution in one to three spatial dimensions";
  let description = [{
    Input (N, C, spatial...) and weights (M, C / groups, kernel...) to output
    (N, M, spatial...), which overwrites `init`. `pads` are those before each
    spatial dimension, then those after. With `prepacked`, the weights are read
    from there, as nn.prepack_weights has reordered them for this convolution.

    ```mlir
    %y = nn.conv %x, %w outs(%e) strides [2, 2] dilations [1, 1]
        pads [1, 1, 1, 1] groups(1)
       : tensor<5x3x11x9xf32>, tensor<7x3x3x3xf32>, tensor<5x7x6x5xf32>
         -> tensor<5x7x6x5xf32>
    ```
  }];
}

def Nn_ConvInputGradOp : Nn_ConvolutionOp<"conv_input_grad"> {
  let summary =
      "Cotangent of the input of nn.conv, or a transposed convolution";
  let description = [{
    Cotangent of the output and weights to that of the input, which overwrites
    `init`. The attributes are those of the convolution.
  }];
}

def Nn_ConvWeightGradOp : Nn_ConvolutionOp<"conv_weight_grad"> {
  let summary = "Adds to the cotangent of the weights of nn.conv";
  let description = [{
    Input and cotangent of the output to the cotangent of the weights, which is
    added to `init`. The attributes are those of the convolution.
  }];
}

def Nn_PrepackWeightsOp : Nn_Op<"prepack_weights"> {
  let summary = "Reorders weights as the library likes them";
  let description = [{
    So that a convolution that reads them often need not do it in each call.
    `pipeline-prepack-weights` decides where that pays.

    ```mlir
    nn.prepack_weights %w to %p as <[2, 64, 8, 8] by [128, 64, 3, 3] to
        [2, 128, 4, 4] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1]
        groups 1 layout library> : memref<128x64x3x3xf32>, memref<73728xf32>
    ```
  }];
  let arguments = (ins Arg<MemRefOf<[F32]>, "", [MemRead]>:$weights,
                       Arg<MemRefRankOf<[F32], [1]>, "", [MemWrite]>:$prepacked,
                       Nn_PrepackingAttr:$prepacking);
  let assemblyFormat = [{
    $weights `to` $prepacked `as` $prepacking attr-dict
    `:` type($weights) `,` type($prepacked)
  }];
  let hasVerifier = 1;
}

#endif // PENSTOCK_DIALECTS_NN_CONVOPS_TD
