//===- KernelDialect.td - The kernel dialect ---------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect alone, for files that define less than all of its ops.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_KERNEL_KERNELDIALECT_TD
#define PENSTOCK_DIALECTS_KERNEL_KERNELDIALECT_TD

include "mlir/IR/OpBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::penstock::kernel";
  let summary = "Calls of a target's vendor library";
  let description = [{
    A matrix product, a convolution and the packing of weights on buffers, as
    every target's vendor library computes them; the launch of a kernel on a
    device whose code the host does not run; and calls that such a device may
    record. The ops say what is computed.
    How is in their `config`: an attribute of the target's own dialect, which
    the target chooses when compiling and its devices read.

    The discardable attribute `kernel.packing` stands on a `pipeline.variable`
    of role `prepacked` and says in which order it holds the weights.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

#endif // PENSTOCK_DIALECTS_KERNEL_KERNELDIALECT_TD
