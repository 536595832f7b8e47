//===- PipeOptim.cpp - One prediction, at the forward ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guan et al. 2023. The forward reads the weights moved along the optimizer's
// direction by the updates that come before its own backward, p - 1 - i of them
// if each microbatch makes one; the backward reads the newest ones as they are.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"
#include "Predicting.h"

using namespace penstock;

namespace {

class PipeOptim : public PredictingMethod {
public:
  constexpr PipeOptim() : PredictingMethod("pipeoptim") {}

  Horizon getHorizon(const StageFacts &stage) const override {
    return {static_cast<double>(stage.ahead) /
                static_cast<double>(stage.microbatches),
            0};
  }
};

} // namespace

const Method &penstock::getPipeOptim() {
  static constexpr PipeOptim kMethod;
  return kMethod;
}
