//===- Sync.cpp - The pipe drains at every update -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every microbatch of an update sees the weights before it, so it is one step
// of ordinary mini-batch training.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/Method.h"

using namespace penstock;

namespace {

class Sync : public Method {
  bool drains() const override { return true; }
  Lags lagsOf(const StageFacts &) const override { return {}; }
};

} // namespace

std::unique_ptr<Method> penstock::createSync() {
  return std::make_unique<Sync>();
}
