//===- SetTraining.cpp - Says how the program trains ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The typed form of flags, for pipelines that are run by hand. Each option that
// is given replaces that fact; the others stay as they are.
//===----------------------------------------------------------------------===//

#include "passes/Training/Passes.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESETTRAINING
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

struct SetTrainingPass
    : penstock::impl::PipelineSetTrainingBase<SetTrainingPass> {
  using PipelineSetTrainingBase::PipelineSetTrainingBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    TrainingOp training = getTraining(module);
    if (training && (infer || training.getInfers())) {
      training.erase();
      training = {};
    }
    bool isNew = !training;
    if (isNew)
      training = addTraining(module, infer ? OptimizerAttr()
                                           : optimizer.toAttr(context));
    if (precision.hasValue())
      training.setPrecision(precision.getValue());
    if (infer)
      return;
    if (isNew || microbatches.hasValue())
      training.setMicrobatches(microbatches);
    if (optimizer.hasValue())
      training.setOptimizerAttr(optimizer.toAttr(context));
    if (rates.hasValue())
      training.setRateAttr(rates.toAttr(context));
    if (clipGradNorm.hasValue() || clipScope.hasValue()) {
      Builder builder(context);
      auto clipping = training.getClippingAttr();
      FloatAttr norm = clipGradNorm.hasValue() || !clipping
                           ? builder.getF64FloatAttr(clipGradNorm.getValue())
                           : clipping.getNorm();
      clipping = ClippingAttr::getChecked([&] { return module.emitError(); },
                                          context, norm, clipScope.getValue());
      if (!clipping)
        return signalPassFailure();
      training.setClippingAttr(clipping);
    }
    if (batchNorm.hasValue())
      training.setBatchNorm(batchNorm.getValue());
    if (method.hasValue())
      training.setMethodAttr(method.toAttr(context));
  }
};

} // namespace
