//===- CpuDialect.td - The cpu dialect ---------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of CPU devices: what a device is, and how its library (oneDNN,
// with some algorithms of our own) computes products and convolutions.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_CPU_CPUDIALECT_TD
#define PENSTOCK_DIALECTS_CPU_CPUDIALECT_TD

include "dialects/Kernel/KernelInterfaces.td"
include "dialects/Pipeline/PipelineInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Cpu_Dialect : Dialect {
  let name = "cpu";
  let cppNamespace = "::penstock::cpu";
  let summary = "Devices that are threads of a CPU";
  let description = [{
    The target of a CPU device, the configs of its library calls, and the orders
    in which it packs weights. The dialect has no ops.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Cpu_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Cpu_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

// In quotes, as names have dashes.
def Cpu_NameParameter : StringRefParameter<"the name of a processor",
                                           "\"native\"">;

def Cpu_TargetAttr : Cpu_Attr<"Target", "target", [TargetAttrInterface]> {
  let summary = "A device of some threads of a CPU";
  let description = [{
    `threads` work on one kernel together, 1 by default. `march` names the
    processor that the code is for, as LLVM does; "native", the default, is the
    one that compiles.

    ```mlir
    #cpu.target<>
    #cpu.target<threads(4) march("x86-64-v3")>
    ```

    Constraints: there is at least one thread, and a name.
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$threads,
                        Cpu_NameParameter:$march);
  let assemblyFormat = [{
    `<` (`threads` `(` $threads^ `)`)? (`march` `(` $march^ `)`)? `>`
  }];
}

def Cpu_GemmAttr : Cpu_Attr<"Gemm", "gemm", [
    DeclareAttrInterfaceMethods<LibraryConfigAttrInterface>]> {
  let summary = "How the CPU computes a product";
  let description = [{
    The product is divided into parts for at most so many `threads`, 1 by
    default. With `panels`, it reads packed weights in panels of `width`
    columns, whose rows are `stride` elements apart.

    ```mlir
    #cpu.gemm<>
    #cpu.gemm<threads(2) panels(384 by 400)>
    ```

    Constraints: threads are positive; panels have positive width and stride;
    it stands on a `kernel.gemm`, with panels exactly where that reads packed
    weights.
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$threads,
                        DefaultValuedParameter<"int64_t", "0">:$width,
                        DefaultValuedParameter<"int64_t", "0">:$stride);
  let assemblyFormat = [{
    `<` (`threads` `(` $threads^ `)`)?
    (`panels` `(` $width^ `by` $stride `)`)? `>`
  }];
}

def Cpu_ConvolutionAlgorithm : I32EnumAttr<"ConvolutionAlgorithm",
    "how the CPU computes a convolution", [
    // Tensors as they are in memory.
    I32EnumAttrCase<"Plain", 0, "plain">,
    // Reordered in the call into the library's blocked layout, and back.
    I32EnumAttrCase<"Library", 1, "library">,
    // Gathered in the call into matrices, of which the gradient of the weights
    // is the product; large dense windows of one element are not gathered.
    I32EnumAttrCase<"Columns", 2, "columns">,
    // The library's Winograd's algorithm with tiles of 4x4 outputs: a quarter
    // of the multiplications, larger rounding errors. Reordered like Library.
    I32EnumAttrCase<"Winograd", 3, "winograd">,
    // Winograd's algorithm as matrix products, tensors as they are in memory.
    I32EnumAttrCase<"Tiles2x2", 4, "tiles_2x2">,
    I32EnumAttrCase<"Tiles4x4", 5, "tiles_4x4">,
    // The gradient of the weights of groups of one channel as a convolution of
    // every sample with its output as the window. Reordered like Library.
    I32EnumAttrCase<"OutputWindows", 6, "output_windows">,
    // Several groups as one, with zeros between them. Reordered like Library.
    I32EnumAttrCase<"CombinedGroups", 7, "combined_groups">,
    // One spatial dimension as the first of two. Reordered like Library.
    I32EnumAttrCase<"Upright", 8, "upright">]> {
  let cppNamespace = "::penstock::cpu";
  let genSpecializedAttr = 0;
}

def Cpu_ConvAttr : Cpu_Attr<"Conv", "conv", [
    DeclareAttrInterfaceMethods<LibraryConfigAttrInterface>]> {
  let summary = "How the CPU computes a convolution";
  let description = [{
    By this algorithm, prepared for at most so many `threads`, 1 by default.

    ```mlir
    #cpu.conv<tiles_4x4>
    #cpu.conv<library threads(2)>
    ```

    Constraints: threads are positive; it stands on a `kernel.conv`.
  }];
  let parameters = (ins EnumParameter<Cpu_ConvolutionAlgorithm>:$algorithm,
                        DefaultValuedParameter<"int64_t", "1">:$threads);
  let assemblyFormat = "`<` $algorithm (`threads` `(` $threads^ `)`)? `>`";
}

def Cpu_PanelsAttr : Cpu_Attr<"Panels", "panels", [
    DeclareAttrInterfaceMethods<PackingAttrInterface>]> {
  let summary = "Weights of a product in panels of columns";
  let description = [{
    A matrix of so many rows and columns, whose elements have these strides in
    the weights, in panels of `width` columns, one behind the other. The rows of
    a panel are `stride` elements apart. The last panel may have more columns.

    ```mlir
    #cpu.panels<[1024, 4096] strides [1, 1024] width 384 stride 400>
    ```

    Constraints: a matrix has two sizes and strides, all positive, and rows of
    its panels do not overlap.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t">:$strides,
                        "int64_t":$width, "int64_t":$stride);
  let assemblyFormat = [{
    `<` `[` $sizes `]` `strides` `[` $strides `]` `width` $width
    `stride` $stride `>`
  }];
}

def Cpu_BlockedAttr : Cpu_Attr<"Blocked", "blocked", [
    DeclareAttrInterfaceMethods<PackingAttrInterface>]> {
  let summary = "Weights of a convolution in the library's blocked layout";
  let description = [{
    The layout is the library's own. It follows from the convolution that reads
    the weights: shapes of its input, weights and output, and its config. The
    gradient of the input wants another layout and says `input_grad`.

    ```mlir
    #cpu.blocked<[2, 64, 8, 8] by [128, 64, 3, 3] to [2, 128, 4, 4]
        strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] groups 1
        config <library>>
    ```

    Constraint: there are as many strides and dilations, and twice as many pads,
    as the shapes have spatial dimensions.
  }];
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$input_grad,
                        ArrayRefParameter<"int64_t">:$input,
                        ArrayRefParameter<"int64_t">:$weights,
                        ArrayRefParameter<"int64_t">:$output,
                        ArrayRefParameter<"int64_t">:$strides,
                        ArrayRefParameter<"int64_t">:$dilations,
                        ArrayRefParameter<"int64_t">:$pads,
                        "int64_t":$groups,
                        "::penstock::cpu::ConvAttr":$config);
  let assemblyFormat = [{
    `<` (`input_grad` `(` $input_grad^ `)`)? `[` $input `]` `by` `[` $weights
    `]` `to` `[` $output `]` `strides` `[` $strides `]` `dilations` `[`
    $dilations `]` `pads` `[` $pads `]` `groups` $groups `config` $config `>`
  }];
}

#endif // PENSTOCK_DIALECTS_CPU_CPUDIALECT_TD
