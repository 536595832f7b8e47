//===- Linear.cpp - A rate that falls along a line ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 1 + (E - 1) x, from the base rate to E times it.
//===----------------------------------------------------------------------===//

#include "RateTable.h"

using namespace mlir;
using namespace penstock;

static Value emit(Arithmetic f, const RateSchedule &rate, Value since,
                  Value one) {
  return f.add(one, f.mul(f.constant(rate.get("end-factor") - 1),
                          emitProgress(f, rate, since, one)));
}

static constexpr SpecKey kKeys[] = {kWarmupSteps, kTotalSteps, kEndFactor};

const RateKind penstock::kLinearRate = {{"linear", kKeys, checkFall}, emit};
