//===- CudaDialect.td - The cuda dialect -------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of CUDA devices: what a device is, and how its libraries
// (cuBLASLt and cuDNN) compute products and convolutions.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_CUDA_CUDADIALECT_TD
#define PENSTOCK_DIALECTS_CUDA_CUDADIALECT_TD

include "dialects/Kernel/KernelInterfaces.td"
include "dialects/Pipeline/PipelineInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Cuda_Dialect : Dialect {
  let name = "cuda";
  let cppNamespace = "::penstock::cuda";
  let summary = "Devices that are NVIDIA GPUs";
  let description = [{
    The target of a CUDA device, and the configs of its library calls. Kernels
    are those of upstream's `gpu` dialect. The dialect has no ops.

    The discardable attribute `cuda.target` stands on the `gpu.module` of all
    kernels and says which target they and the library calls beside them are
    for. `cuda.plain` stands on a kernel that keeps a thread per element.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

class Cuda_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Cuda_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

def Cuda_TargetAttr : Cuda_Attr<"Target", "target", [TargetAttrInterface]> {
  let summary = "A device that is a GPU, or a part of one";
  let description = [{
    Kernels are compiled for each of the architectures `archs`, separated by
    commas. "emulated" is no GPU: the same code, run by the host. A library call
    takes at most `workspace` bytes of scratch, 32 MiB by default. `tf32`: it may
    round the operands of f32 products and convolutions to 10 bits of mantissa,
    as tensor cores do. `plain`: every element of a result has a thread of its
    own, which does all that the element needs in the order of the program.

    ```mlir
    #cuda.target<"sm_90">
    #cuda.target<"sm_80,sm_90a" tf32(true) workspace(1048576)>
    #cuda.target<"emulated" plain(true)>
    ```

    Constraints: architectures are distinct and known; "emulated" stands alone;
    the workspace is not negative.
  }];
  let parameters = (ins StringRefParameter<"the architectures">:$archs,
                        DefaultValuedParameter<"bool", "false">:$tf32,
                        DefaultValuedParameter<"int64_t", "33554432">:
                            $workspace,
                        DefaultValuedParameter<"bool", "false">:$plain);
  let assemblyFormat = [{
    `<` $archs (`tf32` `(` $tf32^ `)`)? (`workspace` `(` $workspace^ `)`)?
    (`plain` `(` $plain^ `)`)? `>`
  }];
  let extraClassDeclaration = [{
    /// Returns the architectures one by one.
    ::llvm::SmallVector<::llvm::StringRef> getArchList() const;
    bool isEmulated() const { return getArchs() == "emulated"; }
    /// One kernel runs at a time, and its parts in any order.
    int64_t getThreads() const { return 1; }
  }];
}

def Cuda_GemmAttr : Cuda_Attr<"Gemm", "gemm", [
    DeclareAttrInterfaceMethods<LibraryConfigAttrInterface>]> {
  let summary = "How cuBLASLt computes a product";
  let description = [{
    With at most `workspace` bytes of scratch; with operands rounded to `tf32`,
    or as they are.

    ```mlir
    #cuda.gemm<workspace(33554432)>
    #cuda.gemm<tf32(true)>
    ```

    Constraints: the workspace is not negative; it stands on a `kernel.gemm`
    that reads no packed weights.
  }];
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$tf32,
                        DefaultValuedParameter<"int64_t", "0">:$workspace);
  let assemblyFormat = [{
    `<` (`tf32` `(` $tf32^ `)`)? (`workspace` `(` $workspace^ `)`)? `>`
  }];
}

def Cuda_ConvAttr : Cuda_Attr<"Conv", "conv", [
    DeclareAttrInterfaceMethods<LibraryConfigAttrInterface>]> {
  let summary = "How cuDNN computes a convolution";
  let description = [{
    With at most `workspace` bytes of scratch; by this `engine` of version
    `cudnn` with these `knobs`, types and values in turn, where one was planned.
    Otherwise the runtime chooses one when the program opens. `direct`: one that
    adds up the products of the definition. `tf32`: one that may round operands.

    ```mlir
    #cuda.conv<workspace(33554432)>
    #cuda.conv<direct(true) engine(70) knobs(2, 12, 18, 0) cudnn(91900)>
    ```

    Constraints: the workspace is not negative; an engine has a version, and
    each of its knobs a value; it stands on a `kernel.conv` that reads no packed
    weights.
  }];
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$direct,
                        DefaultValuedParameter<"bool", "false">:$tf32,
                        DefaultValuedParameter<"int64_t", "-1">:$engine,
                        OptionalArrayRefParameter<"int64_t">:$knobs,
                        DefaultValuedParameter<"int64_t", "0">:$cudnn,
                        DefaultValuedParameter<"int64_t", "0">:$workspace);
  let assemblyFormat = [{
    `<` (`direct` `(` $direct^ `)`)? (`tf32` `(` $tf32^ `)`)? (`engine` `(` $engine^ `)`)?
    (`knobs` `(` $knobs^ `)`)? (`cudnn` `(` $cudnn^ `)`)?
    (`workspace` `(` $workspace^ `)`)? `>`
  }];
}

#endif // PENSTOCK_DIALECTS_CUDA_CUDADIALECT_TD
