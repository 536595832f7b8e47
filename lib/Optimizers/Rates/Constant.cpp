//===- Constant.cpp - The base rate ---------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The base rate throughout, after the warm-up.
//===----------------------------------------------------------------------===//

#include "RateTable.h"

using namespace mlir;
using namespace penstock;

static Value emit(Arithmetic f, const RateSchedule &rate, Value since,
                  Value one) {
  return one;
}

static constexpr SpecKey kKeys[] = {kWarmupSteps};

const RateKind penstock::kConstantRate = {{"constant", kKeys}, emit};
