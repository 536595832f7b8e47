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

#include "Predicting.h"

using namespace penstock;

namespace {

class SpecTrain : public PredictingMethod {
  using PredictingMethod::PredictingMethod;

  Horizon horizonOf(const StageFacts &stage) const override {
    auto further = static_cast<double>(stage.position / 2);
    return {further + static_cast<double>(stage.depth - 1 - stage.position),
            further};
  }
};

} // namespace

std::unique_ptr<Method>
penstock::createSpecTrain(const OptimizerSpec &optimizer,
                          const RateSchedule &rates) {
  return std::make_unique<SpecTrain>(optimizer, rates);
}
