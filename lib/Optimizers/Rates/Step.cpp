//===- Step.cpp - A rate that falls in steps ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gamma ^ floor((t - W) / step-size).
//===----------------------------------------------------------------------===//

#include "RateTable.h"

using namespace mlir;
using namespace penstock;

static Value emit(Arithmetic f, const RateSchedule &rate, Value since,
                  Value one) {
  return f.pow(f.constant(rate.get("gamma")),
               f.floor(f.div(since, f.constant(rate.get("step-size")))));
}

static std::string check(const Spec &spec) {
  return spec.get("step-size") == 0
             ? describeMissing(spec, "step-size",
                               "the updates between two steps")
             : "";
}

static constexpr SpecKey kKeys[] = {
    kWarmupSteps,
    {.name = "step-size",
     .type = SpecKey::Whole,
     .least = 1,
     .counts = "updates",
     .example = "100"},
    {.name = "gamma", .fallback = 0.1, .example = "0.5"},
};

const RateKind penstock::kStepRate = {{"step", kKeys, check}, emit};
