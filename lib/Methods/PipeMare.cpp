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
#include "MethodTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

namespace {

constexpr double kMostUpdates = 1e15;

constexpr SpecKey kKeys[] = {
    {.name = "anneal-steps",
     .type = SpecKey::Whole,
     .below = kMostUpdates,
     .wants = "a number of updates",
     .example = "100"},
    {.name = "decay",
     .fallback = 0.135353,
     .below = 1,
     .wants = "a number from 0 (off) to below 1",
     .example = "0.135353"},
    {.name = "warmup-steps",
     .type = SpecKey::Whole,
     .below = kMostUpdates,
     .wants = "a number of updates",
     .example = "100"},
};

class PipeMare : public Method {
public:
  constexpr PipeMare() : Method("pipemare", kKeys) {}

  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }

  int64_t getFlushedUpdates(const MethodSpec &spec) const override {
    return spec.getWhole("warmup-steps");
  }

  bool extendsUpdates(const MethodSpec &spec) const override {
    return spec.get("decay") > 0;
  }

  double getRateFactor(const MethodSpec &spec, double tau) const override {
    if (spec.get("anneal-steps") == 0 || tau <= 1)
      return 1;
    // While the pipe is flushed, rates are undivided.
    double done = spec.get("warmup-steps") / spec.get("anneal-steps");
    return std::pow(tau, std::min(done, 1.0) - 1);
  }

  llvm::ArrayRef<llvm::StringRef> getStateKinds() const override {
    static constexpr llvm::StringRef kKinds[] = {"delta", "compensated"};
    return kKinds;
  }

  LogicalResult adjust(ModuleOp module, const StageTasks &stage,
                       const MethodUse &use) const override {
    int64_t annealSteps = use.method.getWhole("anneal-steps");
    int64_t warmupSteps = use.method.getWhole("warmup-steps");
    double decay = use.method.get("decay");
    double tau = static_cast<double>(stage.lags.forward - stage.lags.backward) /
                 static_cast<double>(stage.facts.microbatches);
    if (tau <= 0 || !stage.update)
      return success();
    StageAdjuster adjuster(module, stage);
    // Where tau is below 1, dividing by it would raise the rate.
    if (annealSteps > 0 && tau > 1)
      adjuster.annealRate(tau, annealSteps, warmupSteps);
    if (decay > 0)
      return adjuster.compensate(stage.backward, tau, std::pow(decay, 1 / tau),
                                 warmupSteps);
    return success();
  }
};

} // namespace

const Method &penstock::getPipeMare() {
  static constexpr PipeMare kMethod;
  return kMethod;
}
