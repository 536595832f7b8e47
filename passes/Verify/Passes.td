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
    - **C28**: a loop of a function asks for the bound once.
    - **C31**: the average of weights that waves are folded into moves by the
      global weights that the fold makes.
    - **C33**: stages are of workers that the method has, each of which holds
      all weights, and takes its own microbatches.
    - **C38**: a message about a variable is of that variable; what is adjusted
      is a weight, along the only state or the momentum of its optimizer, or
      along what a function makes of several.
    - **C41**: a difference of weights, of kind `delta` or `wave`, starts at
      zero; all else that stands for a parameter starts as that.
    - **C42**: the replay has the sources of its program.
    - **C44**: what an op names is an op of the module, of the kind that it
      names.
    - **C45**: what an update task leaves in a gradient is zero.
    - **C46**: where a program runs tasks, it runs those that evaluate.
    - **C47**: a function has `pipeline.rate`, and makes the learning rate that
      the log shows, exactly where `pipeline.training` has a rate; an update
      takes the learning rate through that function, that of its stage
      (`pipeline.rate_of`) and that of the factor of its parameter
      (`pipeline.rate_scale`), a prediction through one of its own.
  }];
  let options = [
    Option<"level", "level", "std::string", "",
           "Level to check; by default the one that the module is at">
  ];
}

#endif // PENSTOCK_PASSES_VERIFY_PASSES_TD
