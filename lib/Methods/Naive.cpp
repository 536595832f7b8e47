//===- Naive.cpp - Always the newest weights ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and backward of a microbatch see different weights, and the gradient
// is that of no point at all. The baseline that the other methods improve on.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/Method.h"

using namespace penstock;

namespace {

class Naive : public Method {
  /// When F of microbatch k runs, `ahead` microbatches are between it and the
  /// last B; when B of k runs, none is.
  Lags lagsOf(const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }
};

} // namespace

std::unique_ptr<Method> penstock::createNaive() {
  return std::make_unique<Naive>();
}
