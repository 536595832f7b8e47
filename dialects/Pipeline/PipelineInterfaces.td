//===- PipelineInterfaces.td - Interfaces of the dialect ---*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What several ops promise alike.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEINTERFACES_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEINTERFACES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def TargetAttrInterface : AttrInterface<"TargetAttrInterface"> {
  let cppNamespace = "::penstock::pipeline";
  let description = [{
    What a device is: its kind, which is the dialect of the attribute, and what
    the compiler has to know of it. The dialect registers an implementation of
    `Target` (penstock/Target/Target.h), which plans the library calls of such
    devices and makes their code.
  }];
  let methods = [
    InterfaceMethod<"Returns how many threads work on one kernel at a time. "
                    "With one, loops run in the order in which they are "
                    "written.",
                    "int64_t", "getThreads">
  ];
}

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

def ScheduleEntryOpInterface : OpInterface<"ScheduleEntryOpInterface"> {
  let cppNamespace = "::penstock::pipeline";
  let description = [{
    What a schedule lists: the run of a task, or a transfer. An entry that runs
    ahead by a in a loop of c iterations runs in iteration j exactly when
    0 <= j + a < c; a period of m keeps those with (j + a + 1) mod m = 0.
  }];
  let methods = [
    InterfaceMethod<"The task, channel or group whose next microbatch, message "
                    "or sum it handles.",
                    "::mlir::FlatSymbolRefAttr", "getSubjectAttr">,
    InterfaceMethod<"How many iterations of its loop it runs ahead.",
                    "int64_t", "getAheadOr0">,
    InterfaceMethod<"It runs once in so many iterations; none if in all.",
                    "::std::optional<uint64_t>", "getPeriod", (ins), "",
                    [{ return ::std::nullopt; }]>
  ];
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEINTERFACES_TD
