//===- KernelInterfaces.td - Library calls and configs -----*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes know of a library call, and the attributes that a target adds.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_KERNEL_KERNELINTERFACES_TD
#define PENSTOCK_DIALECTS_KERNEL_KERNELINTERFACES_TD

include "dialects/Kernel/KernelDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def LibraryConfigAttrInterface : AttrInterface<"LibraryConfigAttrInterface"> {
  let cppNamespace = "::penstock::kernel";
  let description = [{
    How the vendor library of one target computes a call: an algorithm, a
    division over threads, an order of packed weights. It belongs to the dialect
    of the target. Shared passes carry it from the choice to the runtime and
    never look inside.
  }];
  let methods = [
    InterfaceMethod<"Checks that the config fits the call that carries it; "
                    "emits an error at `call` if it does not.",
                    "::llvm::LogicalResult", "verifyCall",
                    (ins "::mlir::Operation *":$call)>
  ];
}

def PackingAttrInterface : AttrInterface<"PackingAttrInterface"> {
  let cppNamespace = "::penstock::kernel";
  let description = [{
    The order in which packed weights lie in memory, and what the library has to
    know to bring weights into it.
  }];
  let methods = [
    InterfaceMethod<"Returns whether weights of this type can be packed into a "
                    "buffer of that type.",
                    "bool", "fits",
                    (ins "::mlir::MemRefType":$weights,
                         "::mlir::MemRefType":$packed)>,
    InterfaceMethod<"Returns what is appended to the name of the weights to "
                    "name the variable that holds them packed. Orders that "
                    "calls may want of the same weights have distinct suffixes.",
                    "::llvm::StringRef", "getVariableSuffix">
  ];
}

def Kernel_ScratchAttr : AttrDef<Kernel_Dialect, "Scratch"> {
  let mnemonic = "scratch";
  let summary = "Where a library call has its scratch memory";
  let description = [{
    So many bytes, from a byte on of the temporary memory of its kernel.

    ```mlir
    #kernel.scratch<4096 at 64>
    ```
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$offset);
  let assemblyFormat = "`<` $bytes `at` $offset `>`";
  let genVerifyDecl = 1;
}

def LibraryCallOpInterface : OpInterface<"LibraryCallOpInterface"> {
  let cppNamespace = "::penstock::kernel";
  let description = [{
    An op that a vendor library computes. `pipeline-select-library` sets its
    config, `pipeline-prepack-weights` lets it read packed weights, and
    `pipeline-share-scratch` gives it scratch in the temporary memory of its
    kernel. What comes later reads all three off the op.
  }];
  let methods = [
    InterfaceMethod<"Returns how the call is computed; null before a target "
                    "has chosen.",
                    "::penstock::kernel::LibraryConfigAttrInterface",
                    "getConfigAttr">,
    InterfaceMethod<"Sets how the call is computed.", "void", "setConfigAttr",
                    (ins "::penstock::kernel::LibraryConfigAttrInterface":
                             $config)>,
    InterfaceMethod<"Returns its scratch; null where it takes none, or before "
                    "it is placed.",
                    "::penstock::kernel::ScratchAttr", "getScratchAttr">,
    InterfaceMethod<"Places its scratch.", "void", "setScratchAttr",
                    (ins "::penstock::kernel::ScratchAttr":$scratch)>,
    InterfaceMethod<"Returns the operand that may be read packed; null where "
                    "there is none.",
                    "::mlir::Value", "getPackableWeights">,
    InterfaceMethod<"Returns the packed weights that it reads; null where it "
                    "reads them as they are.",
                    "::mlir::Value", "getPacked">,
    InterfaceMethod<"Returns the operand with the packed weights, to be set.",
                    "::mlir::MutableOperandRange", "getPackedMutable">
  ];
}

#endif // PENSTOCK_DIALECTS_KERNEL_KERNELINTERFACES_TD
