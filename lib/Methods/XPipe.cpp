//===- XPipe.cpp - One prediction per minibatch ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guan et al. 2019. The first microbatch of an update, the bellwether, predicts
// when its forward comes to a stage, and again when its backward does; the
// others of the update read what it read.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"
#include "Predicting.h"

#include <cmath>

using namespace penstock;

namespace {

class XPipe : public PredictingMethod {
public:
  constexpr XPipe() : PredictingMethod("xpipe") {}

  VersionStorage getStorage() const override { return VersionStorage::Stash; }

  /// The newest version that the bellwether finds is ceil(ahead / M) updates
  /// old. A lag of whole updates lets all microbatches of an update read it.
  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    int64_t m = stage.microbatches;
    return {(stage.ahead + m - 1) / m * m, 0};
  }

  /// Halves to even, as in the published code. A replica sees its share of the
  /// microbatches, and a pipe as deep as it has some in flight.
  Horizon getHorizon(const StageFacts &stage) const override {
    auto m = static_cast<double>(stage.microbatches / stage.replicas);
    int64_t i = stage.position;
    auto p = static_cast<double>(stage.ahead / stage.replicas + 1 + i);
    return {std::nearbyint((p + m - static_cast<double>(i) / 2 - 2) / m),
            std::nearbyint((m + static_cast<double>(i / 2) - 1) / m)};
  }
};

} // namespace

const Method &penstock::getXPipe() {
  static constexpr XPipe kMethod;
  return kMethod;
}
