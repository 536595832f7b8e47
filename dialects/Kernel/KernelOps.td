//===- KernelOps.td - Calls of a vendor library ------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products, convolutions and the packing of weights, on buffers and in kernel
// functions. pipeline-select-library makes them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_KERNEL_KERNELOPS_TD
#define PENSTOCK_DIALECTS_KERNEL_KERNELOPS_TD

include "dialects/Kernel/KernelInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kernel_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

class Kernel_LibraryCall<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic,
                [DeclareOpInterfaceMethods<LibraryCallOpInterface,
                                           ["getPackableWeights"]>] #
                    traits>;

def Kernel_Packed : MemRefRankOf<[AnyFloat], [1]>;

def Kernel_GemmOp : Kernel_LibraryCall<"gemm",
    [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "A batched matrix product by the vendor library";
  let description = [{
    C = A.B, or C += A.B with `accumulate`, for every index of the batch
    dimensions. `sizes` is [batch..., m, n, k]. Strides are in elements, as
    [batch..., row, column]: of A (m, k), of B (k, n), of C (m, n). With
    `packed`, B is read from there, as `kernel.pack` wrote it in the order that
    `config` says; there are no batch dimensions then.

    With an epilogue, the call may also add `bias`, an element per column, and
    then bound C below by zero with `relu`. It does so only where the bits are
    those of ops that follow it. Where `pending` is true, it has not: C is the
    product, and the ops are still to be done.

    ```mlir
    kernel.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1]
      accumulate config(#cpu.gemm<>) scratch <4096 at 64>
      : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
    %pending = kernel.gemm %a, %b, %c bias(%bias : memref<11xf32>) relu
      sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1] config(#cuda.gemm<>)
      : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32> -> i1
    ```

    Constraints:
    - **K1**: `sizes` are positive and at least m, n and k.
    - **K2**: every operand has a stride per batch dimension and two more.
    - **K3**: A and B have one element type; C has that, or f32 where it is
      bf16.
    - **K4**: with packed weights there are no batch dimensions.
    - **K5**: `config` is one for products, as its own dialect checks.
    - **K17**: `pending` stands exactly where there is a bias or `relu`. Then the
      elements are f32, C is overwritten by rows, and a bias has `n` elements.
  }];
  let arguments = (ins AnyMemRef:$a, AnyMemRef:$b, AnyMemRef:$c,
                       Optional<Kernel_Packed>:$packed,
                       Optional<AnyStaticShapeMemRef>:$bias,
                       UnitAttr:$relu,
                       DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides_a,
                       DenseI64ArrayAttr:$strides_b,
                       DenseI64ArrayAttr:$strides_c,
                       UnitAttr:$accumulate,
                       OptionalAttr<LibraryConfigAttrInterface>:$config,
                       OptionalAttr<Kernel_ScratchAttr>:$scratch);
  let results = (outs Optional<I1>:$pending);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`packed` `(` $packed^ `:` type($packed) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)? (`relu` $relu^)?
    `sizes` $sizes `strides` $strides_a $strides_b $strides_c
    (`accumulate` $accumulate^)? (`config` `(` $config^ `)`)?
    (`scratch` $scratch^)? attr-dict `:` type($a) `,` type($b) `,` type($c)
    (`->` type($pending)^)?
  }];
  let extraClassDeclaration = [{
    bool hasEpilogue() { return getBias() || getRelu(); }
  }];
}

def Kernel_ConvolutionKind : I32EnumAttr<"ConvolutionKind",
    "which tensor a convolution computes",
    [I32EnumAttrCase<"Forward", 0, "forward">,
     I32EnumAttrCase<"InputGrad", 1, "input_grad">,
     I32EnumAttrCase<"WeightGrad", 2, "weight_grad">]> {
  let cppNamespace = "::penstock::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_ConvolutionKindAttr
    : EnumAttr<Kernel_Dialect, Kernel_ConvolutionKind, "convolution_kind">;

def Kernel_ConvOp : Kernel_LibraryCall<"conv",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A convolution or one of its gradients by the vendor library";
  let description = [{
    Input (N, C, spatial...), weights (M, C / groups, kernel...) and output (N,
    M, spatial...), all dense. The kind says which of the three is computed:
    `forward` overwrites the output, `input_grad` the input, and `weight_grad`
    adds to the weights. `pads` are those before each spatial dimension, then
    those after. With `packed`, the weights are read from there, as `kernel.pack`
    wrote them for this convolution.

    ```mlir
    kernel.conv forward %x, %w, %y strides [2, 2] dilations [1, 1]
      pads [1, 1, 1, 1] groups(1) config(#cpu.conv<library>)
      scratch <4096 at 64>
      : memref<5x3x11x9xf32>, memref<7x3x3x3xf32>, memref<5x7x6x5xf32>
    ```

    Constraints:
    - **K6**: there are a stride and a dilation, and two pads, for each spatial
      dimension of every buffer.
    - **K7**: buffers are dense and of one element type.
    - **K8**: shapes, strides, dilations, pads and groups are those of one
      convolution.
    - **K9**: `weight_grad` reads no packed weights.
    - **K5**: `config` is one for convolutions, as its own dialect checks.
  }];
  let arguments = (ins Kernel_ConvolutionKindAttr:$kind,
                       MemRefOf<[AnyFloat]>:$input,
                       MemRefOf<[AnyFloat]>:$weights,
                       MemRefOf<[AnyFloat]>:$output,
                       Optional<Kernel_Packed>:$packed,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads,
                       ConfinedAttr<I64Attr, [IntPositive]>:$groups,
                       OptionalAttr<LibraryConfigAttrInterface>:$config,
                       OptionalAttr<Kernel_ScratchAttr>:$scratch);
  let assemblyFormat = [{
    `` $kind $input `,` $weights `,` $output
    (`packed` `(` $packed^ `:` type($packed) `)`)? `strides` $strides
    `dilations` $dilations `pads` $pads `groups` `(` $groups `)`
    (`config` `(` $config^ `)`)? (`scratch` $scratch^)? attr-dict
    `:` type($input) `,` type($weights) `,` type($output)
  }];
}

def Kernel_PackOp : Kernel_Op<"pack"> {
  let summary = "Brings weights into the order that library calls read fastest";
  let description = [{
    A call that reads weights often need not reorder them every time.
    `pipeline-prepack-weights` decides where that pays. The order is an
    attribute of the target.

    ```mlir
    kernel.pack %w to %p
      order(#cpu.panels<[1024, 4096] strides [1, 1024] width 384 stride 400>)
      : memref<4096x1024xf32>, memref<4505600xf32>
    ```

    Constraints:
    - **K10**: `order` is one for weights and packed weights of these types.
  }];
  let arguments = (ins Arg<MemRefOf<[AnyFloat]>, "", [MemRead]>:$weights,
                       Arg<Kernel_Packed, "", [MemWrite]>:$packed,
                       PackingAttrInterface:$order);
  let assemblyFormat = [{
    $weights `to` $packed `order` `(` $order `)` attr-dict
    `:` type($weights) `,` type($packed)
  }];
}

def Kernel_LaunchOp : Kernel_Op<"launch",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts a kernel on a device whose code the host does not run";
  let description = [{
    `grid` blocks of `block` threads run the kernel. It may still run when the
    host goes on; what is launched on a device runs in the order of launches. A
    buffer is passed as the address of its first element, a number as it is.

    ```mlir
    kernel.launch @cuda_kernels::@s0_forward grid [7, 1, 1] block [128, 1, 1]
      (%x, %rate) : memref<11x79xf32, strided<[79, 1], offset: ?>>, f32
    ```

    Constraints:
    - **K11**: grid and block have three positive sizes.
    - **K12**: a block has at most 1024 threads, a grid less than 2^31 blocks,
      and less than 2^16 along its second and third dimension.
    - **K13**: parameters are buffers of static shape and strides, indices, and
      numbers of at most 64 bits.
  }];
  let arguments = (ins SymbolRefAttr:$kernel, DenseI64ArrayAttr:$grid,
                       DenseI64ArrayAttr:$block,
                       Variadic<AnyTypeOf<[AnyStridedMemRef, Index,
                                           AnySignlessInteger, AnyFloat]>>:
                           $parameters);
  let assemblyFormat = [{
    $kernel `grid` $grid `block` $block
    (`(` $parameters^ `)` `:` type($parameters))? attr-dict
  }];
}

def Kernel_ConstantOp : Kernel_Op<"constant", [Pure]> {
  let summary = "A constant in the memory of a device";
  let description = [{
    The copy of a `memref.global` that the device has since it was opened, for
    library calls.

    ```mlir
    %ones = kernel.constant @__constant_5x7xf32 : memref<5x7xf32>
    ```

    Constraints:
    - **K14**: the result is dense.
  }];
  let arguments = (ins FlatSymbolRefAttr:$name);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Kernel_ActionOp : Kernel_Op<"action", [
    SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "Calls that a device may run as one graph";
  let description = [{
    The calls of a device function between two transfers. Their operands depend
    on `key` alone, which is below `keys`: a device may record what they issue
    once for each key, and issue that from then on without the calls. With 0
    keys it never does. Numbers that change from run to run are in `scalars`
    words of the device's memory (`kernel.scalar`), which are written before the
    action. Names are unique within a program and its replay.

    ```mlir
    kernel.action "s0.F" key(%turn of 3) {
      func.call @s0.forward(%x, %w, %y) : (...) -> ()
    }
    kernel.action "s0.U" key(%zero of 1) scalars(1) {
      func.call @sgd.7x11(%w, %gradient, %rate) : (...) -> ()
    }
    ```

    Constraints:
    - **K15**: the body has calls without results, and nothing else.
  }];
  let arguments = (ins StrAttr:$name, Index:$key,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$keys,
                       DefaultValuedAttr<
                           ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:
                           $scalars);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `key` `(` $key `of` $keys `)` (`scalars` `(` $scalars^ `)`)? $body
    attr-dict
  }];
}

def Kernel_ScalarOp : Kernel_Op<"scalar", [Pure]> {
  let summary = "A number in the memory of a device that an action reads";
  let description = [{
    Word `index` of the scalars of an action. It is the device's for as long as
    it is open.

    ```mlir
    %rate = kernel.scalar "s0.U"[0] : memref<f32>
    ```

    Constraints:
    - **K16**: the result holds one number of at most 64 bits.
  }];
  let arguments = (ins StrAttr:$action,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$index);
  let results = (outs MemRefRankOf<[Index, AnySignlessInteger, AnyFloat], [0]>:
                     $result);
  let assemblyFormat = [{
    $action `[` $index `]` attr-dict `:` type($result)
  }];
}

#endif // PENSTOCK_DIALECTS_KERNEL_KERNELOPS_TD
