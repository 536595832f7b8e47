//===- PipeDream.cpp - Weight stashing ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Harlap et al. 2018, Narayanan et al. 2019: the backward of a microbatch reads
// the version that its forward read. With vertical sync, which is that of the
// first stage, all stages read the same version.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/Method.h"

using namespace penstock;

namespace {

class PipeDream : public Method {
public:
  explicit PipeDream(bool verticalSync) : verticalSync(verticalSync) {}

private:
  VersionStorage storage() const override { return VersionStorage::Stash; }
  Lags lagsOf(const StageFacts &stage) const override {
    int64_t lag = verticalSync ? stage.mostAhead : stage.ahead;
    return {lag, lag};
  }

  bool verticalSync;
};

} // namespace

std::unique_ptr<Method> penstock::createPipeDream(bool verticalSync) {
  return std::make_unique<PipeDream>(verticalSync);
}
