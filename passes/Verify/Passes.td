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
    The C rules that an op cannot check by itself, as stated with each op, and
    the invariant of the level: onnx, graph, stages, training, schedule or
    program. Nested modules (the replay) are checked alike.

    Rules:
    - **C43**: from level `graph` on no ONNX node is left, from `stages` on no
      boundary; before, there is one stage. Shapes are static. Before `program`
      tasks and schedules have bodies; at it, no op makes a tensor.
    - **C44**: what an op names is an op of the module, of the kind that it
      names.
  }];
  let options = [
    Option<"level", "level", "std::string", "",
           "Level to check; by default the one that the module is at">
  ];
}

#endif // PENSTOCK_PASSES_VERIFY_PASSES_TD
