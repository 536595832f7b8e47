//===- LibraryCallOpInterface.td - Calls of the library ----*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops have in common that the vendor library computes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_LIBRARYCALLOPINTERFACE_TD
#define PENSTOCK_DIALECTS_NN_LIBRARYCALLOPINTERFACE_TD

include "dialects/Nn/NnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Nn_ScratchAttr : AttrDef<Nn_Dialect, "Scratch"> {
  let mnemonic = "scratch";
  let summary = "Where a library call has its scratch";
  let description = [{
    So many bytes, from a byte on of the temporary memory of its kernel.

    ```mlir
    #nn.scratch<4096 at 64>
    ```
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$offset);
  let assemblyFormat = "`<` $bytes `at` $offset `>`";
  let genVerifyDecl = 1;
}

def LibraryCallOpInterface : OpInterface<"LibraryCallOpInterface"> {
  let cppNamespace = "::penstock::nn";
  let description = [{
    An op that the vendor library computes, with scratch in the temporary memory
    of its kernel. `pipeline-share-scratch` asks the library for the bytes and
    places them; what comes later reads them off the op.
  }];
  let methods = [
    InterfaceMethod<"Its scratch; null where it takes none, or before it is "
                    "placed.",
                    "::penstock::nn::ScratchAttr", "getScratchAttr">,
    InterfaceMethod<"Places its scratch.", "void", "setScratchAttr",
                    (ins "::penstock::nn::ScratchAttr":$scratch)>
  ];
}

#endif // PENSTOCK_DIALECTS_NN_LIBRARYCALLOPINTERFACE_TD
