//===- PipelineInterfaces.td - Interfaces of the dialect ---*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What several ops promise alike.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEINTERFACES_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEINTERFACES_TD

include "mlir/IR/OpBase.td"

def VersionStorageOpInterface : OpInterface<"VersionStorageOpInterface"> {
  let cppNamespace = "::penstock::pipeline";
  let description = [{
    An op that gives a variable more than one version. The verifier and the
    memory planner see only this interface, not the method behind it.
  }];
  let methods = [
    InterfaceMethod<"The variable that is stored in several versions.",
                    "::mlir::FlatSymbolRefAttr", "getVariableAttr">,
    InterfaceMethod<"How many versions are kept; at least 2.",
                    "int64_t", "getVersions">
  ];
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEINTERFACES_TD
