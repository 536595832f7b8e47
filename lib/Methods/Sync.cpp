//===- Sync.cpp - The pipe drains at every update -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every microbatch of an update sees the weights before it, so it is one step
// of ordinary mini-batch training.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"

using namespace penstock;

namespace {

class Sync : public Method {
public:
  constexpr Sync() : Method("sync") {}

  bool flushes() const override { return true; }
  Lags getLags(const MethodSpec &, const StageFacts &) const override {
    return {};
  }
};

} // namespace

const Method &penstock::getSync() {
  static constexpr Sync kMethod;
  return kMethod;
}
