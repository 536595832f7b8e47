//===- SpecTrain.cpp - Forward and backward at predicted weights ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chen et al. 2018. Everything that one microbatch reads is moved along the
// momentum to the moment when its backward leaves the first stage: p - 1 - i
// updates of stage i between its forward and its backward there, and floor(i/2)
// more until then.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Methods/AdjustedReads.h"

using namespace mlir;
using namespace penstock;

namespace {

class SpecTrain : public Method {
public:
  SpecTrain(const OptimizerSpec &optimizer, const RateSchedule &rates)
      : optimizer(Optimizer::create(optimizer)), rates(rates) {}

private:
  Lags lagsOf(const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }

  LogicalResult adjust(ModuleOp module,
                       const StageTasks &stage) const override {
    int64_t backward = stage.facts.position / 2;
    int64_t forward = backward + stage.facts.depth - 1 - stage.facts.position;
    StageAdjuster adjuster(module, stage);
    if (forward == backward) {
      SmallVector<pipeline::TaskOp> tasks = {stage.forward};
      llvm::append_range(tasks, stage.backward);
      return adjuster.predict(tasks, static_cast<double>(forward), *optimizer,
                              rates, "predicted");
    }
    if (failed(adjuster.predict(stage.forward, static_cast<double>(forward),
                                *optimizer, rates, "forward")))
      return failure();
    return adjuster.predict(stage.backward, static_cast<double>(backward),
                            *optimizer, rates, "backward");
  }

  std::unique_ptr<Optimizer> optimizer;
  RateSchedule rates;
};

} // namespace

std::unique_ptr<Method>
penstock::createSpecTrain(const OptimizerSpec &optimizer,
                          const RateSchedule &rates) {
  return std::make_unique<SpecTrain>(optimizer, rates);
}
