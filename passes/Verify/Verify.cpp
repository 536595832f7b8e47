//===- Verify.cpp - Check a level -----------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls the groups of rules on the module and on the modules in it.
//===----------------------------------------------------------------------===//

#include "passes/Verify/Passes.h"

#include "Rules.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVERIFY
#include "passes/Verify/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {
class VerifyPass : public penstock::impl::PipelineVerifyBase<VerifyPass> {
public:
  using PipelineVerifyBase::PipelineVerifyBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Level> wanted =
        level.empty() ? detectLevel(module) : parseLevel(level);
    if (!wanted || *wanted == Level::Llvm) {
      module.emitError() << "pipeline-verify: unknown level '" << level
                         << "'; levels are onnx, graph, stages, training, "
                            "schedule, program";
      return signalPassFailure();
    }
    if (failed(verify(module, *wanted)))
      return signalPassFailure();
    for (ModuleOp nested : module.getOps<ModuleOp>())
      if (failed(verify(nested, *wanted)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static LogicalResult verify(ModuleOp module, Level level) {
    Subject subject(module, level);
    return success(
        succeeded(verifyTasks(subject)) &&
        succeeded(verifySchedules(subject)) &&
        succeeded(verifyProgramOps(subject)) &&
        succeeded(verifyLevel(subject)) && succeeded(verifyTraining(subject)) &&
        succeeded(verifyCalls(subject)) && succeeded(verifySums(subject)) &&
        succeeded(verifyFacts(subject)) && succeeded(verifyRates(subject)) &&
        succeeded(verifyZeros(subject)));
  }
};
} // namespace
