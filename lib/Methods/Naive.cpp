//===- Naive.cpp - Always the newest weights ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and backward of a microbatch see different weights, and the gradient
// is that of no point at all. The baseline that the other methods improve on.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"

using namespace penstock;

namespace {

class Naive : public Method {
public:
  constexpr Naive() : Method("naive") {}

  /// When F of microbatch k runs, `ahead` microbatches are between it and the
  /// last B; when B of k runs, none is.
  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }
};

} // namespace

const Method &penstock::getNaive() {
  static constexpr Naive kMethod;
  return kMethod;
}
