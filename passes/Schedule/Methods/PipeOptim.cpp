//===- PipeOptim.cpp - One prediction, at the forward ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guan et al. 2023. The forward reads the weights moved along the optimizer's
// direction by the updates that come before its own backward, p - 1 - i of them
// if each microbatch makes one; the backward reads the newest ones as they are.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Methods/AdjustedReads.h"

using namespace mlir;
using namespace penstock;

namespace {

class PipeOptim : public Method {
public:
  PipeOptim(const OptimizerSpec &optimizer, const RateSchedule &rates)
      : optimizer(Optimizer::create(optimizer)), rates(rates) {}

private:
  Lags lagsOf(const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }

  LogicalResult adjust(ModuleOp module,
                       const StageTasks &stage) const override {
    double steps = static_cast<double>(stage.facts.ahead) /
                   static_cast<double>(stage.facts.microbatches);
    return StageAdjuster(module, stage)
        .predict(stage.forward, steps, *optimizer, rates, "forward");
  }

  std::unique_ptr<Optimizer> optimizer;
  RateSchedule rates;
};

} // namespace

std::unique_ptr<Method>
penstock::createPipeOptim(const OptimizerSpec &optimizer,
                          const RateSchedule &rates) {
  return std::make_unique<PipeOptim>(optimizer, rates);
}
