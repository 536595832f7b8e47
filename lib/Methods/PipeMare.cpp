//===- PipeMare.cpp - Newest weights, and what makes up for it ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Yang et al. 2021. Both passes read the newest weights. T1 divides the
// learning rate of a stage by its delay tau, less and less; T2 lets the
// backward see about what the forward saw, w - tau * delta, where delta
// averages the steps of the weights. T3: at first every update is a segment of
// its own, which makes it synchronous; rates are undivided then, and nothing is
// compensated.
//===----------------------------------------------------------------------===//

#include "AdjustedReads.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

namespace {

class PipeMare : public Method {
public:
  explicit PipeMare(const MethodSpec &spec) : spec(spec) {}

private:
  Lags lagsOf(const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }

  LogicalResult adjust(ModuleOp module,
                       const StageTasks &stage) const override {
    double tau = static_cast<double>(stage.lags.forward - stage.lags.backward) /
                 static_cast<double>(stage.facts.microbatches);
    if (tau <= 0 || !stage.update)
      return success();
    StageAdjuster adjuster(module, stage);
    // Where tau is below 1, dividing by it would raise the rate.
    if (spec.annealSteps > 0 && tau > 1)
      adjuster.annealRate(tau, spec.annealSteps, spec.warmupSteps);
    if (spec.decay > 0)
      return adjuster.compensate(
          stage.backward, tau, std::pow(spec.decay, 1 / tau), spec.warmupSteps);
    return success();
  }

  MethodSpec spec;
};

} // namespace

std::unique_ptr<Method> penstock::createPipeMare(const MethodSpec &spec) {
  return std::make_unique<PipeMare>(spec);
}
