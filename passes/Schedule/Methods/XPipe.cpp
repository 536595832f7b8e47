//===- XPipe.cpp - One prediction per minibatch ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guan et al. 2019. The first microbatch of an update, the bellwether, predicts
// when its forward comes to a stage, and again when its backward does; the
// others of the update read what it read.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Methods/AdjustedReads.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

namespace {

class XPipe : public Method {
public:
  XPipe(const OptimizerSpec &optimizer, const RateSchedule &rates)
      : optimizer(Optimizer::create(optimizer)), rates(rates) {}

private:
  VersionStorage storage() const override { return VersionStorage::Stash; }

  /// The newest version that the bellwether finds is ceil(ahead / M) updates
  /// old. A lag of whole updates lets all microbatches of an update read it.
  Lags lagsOf(const StageFacts &stage) const override {
    int64_t m = stage.microbatches;
    return {(stage.ahead + m - 1) / m * m, 0};
  }

  LogicalResult adjust(ModuleOp module,
                       const StageTasks &stage) const override {
    auto m = static_cast<double>(stage.facts.microbatches);
    auto p = static_cast<double>(stage.facts.depth);
    int64_t i = stage.facts.position;
    // Halves to even, as in the published code.
    double forward =
        std::nearbyint((p + m - static_cast<double>(i) / 2 - 2) / m);
    double backward = std::nearbyint((m + static_cast<double>(i / 2) - 1) / m);
    StageAdjuster adjuster(module, stage);
    if (failed(adjuster.predict(stage.forward, forward, *optimizer, rates,
                                "forward", /*keeps=*/stage.lags.forward > 0)))
      return failure();
    return adjuster.predict(stage.backward, backward, *optimizer, rates,
                            "backward");
  }

  std::unique_ptr<Optimizer> optimizer;
  RateSchedule rates;
};

} // namespace

std::unique_ptr<Method> penstock::createXPipe(const OptimizerSpec &optimizer,
                                              const RateSchedule &rates) {
  return std::make_unique<XPipe>(optimizer, rates);
}
