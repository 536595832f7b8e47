//===- TwoBW.cpp - Double-buffered weights ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Narayanan et al. 2021: the microbatches of an update read the version before
// the newest that they could all read, on every stage. So the delay is one
// update everywhere, and two versions suffice if M is at least the depth.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/Method.h"

using namespace penstock;

namespace {

class TwoBW : public Method {
  VersionStorage storage() const override {
    return VersionStorage::DoubleBuffer;
  }
  Lags lagsOf(const StageFacts &stage) const override {
    return {stage.microbatches, stage.microbatches};
  }
};

} // namespace

std::unique_ptr<Method> penstock::createTwoBW() {
  return std::make_unique<TwoBW>();
}
