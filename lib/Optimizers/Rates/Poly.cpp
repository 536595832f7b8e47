//===- Poly.cpp - A rate that falls along a power -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// E + (1 - E) (1 - x) ^ power.
//===----------------------------------------------------------------------===//

#include "RateTable.h"

using namespace mlir;
using namespace penstock;

static Value emit(Arithmetic f, const RateSchedule &rate, Value since,
                  Value one) {
  return emitFall(f, rate,
                  f.pow(f.sub(one, emitProgress(f, rate, since, one)),
                        f.constant(rate.get("power"))));
}

static constexpr SpecKey kKeys[] = {
    kWarmupSteps,
    kTotalSteps,
    kEndFactor,
    {.name = "power", .fallback = 1, .example = "0.5"},
};

const RateKind penstock::kPolyRate = {{"poly", kKeys, checkFall}, emit};
