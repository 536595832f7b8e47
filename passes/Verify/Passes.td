//===- Passes.td - Verifier passes -------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers that stand at the level changes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_VERIFY_PASSES_TD
#define PENSTOCK_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelineVerify : Pass<"pipeline-verify", "::mlir::ModuleOp"> {
  let summary = "Check the rules of a level that need more than one op";
  let description = [{
    The rules C1 to C42 that an op cannot check by itself, and the invariant of
    the level: onnx, graph, stages, training, schedule or program. Nested
    modules (the replay) are checked alike.
  }];
  let options = [
    Option<"level", "level", "std::string", "",
           "Level to check; by default the one that the module is at">
  ];
}

#endif // PENSTOCK_PASSES_VERIFY_PASSES_TD
