//===- PipeDream.cpp - Weight stashing ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Harlap et al. 2018, Narayanan et al. 2019: the backward of a microbatch reads
// the version that its forward read. With vertical sync, which is that of the
// first stage, all stages read the same version.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"

using namespace penstock;

namespace {

constexpr SpecKey kKeys[] = {{.name = "vertical-sync", .type = SpecKey::Flag}};

class PipeDream : public Method {
public:
  constexpr PipeDream() : Method("pipedream", kKeys) {}

  VersionStorage getStorage() const override { return VersionStorage::Stash; }
  Lags getLags(const MethodSpec &spec, const StageFacts &stage) const override {
    int64_t lag = spec.has("vertical-sync") ? stage.mostAhead : stage.ahead;
    return {lag, lag};
  }
};

} // namespace

const Method &penstock::getPipeDream() {
  static constexpr PipeDream kMethod;
  return kMethod;
}
