//===- Cosine.cpp - A rate that falls along half a cosine -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// E + (1 - E) (1 + cos(pi x)) / 2: Loshchilov and Hutter, "SGDR: stochastic
// gradient descent with warm restarts" (2017), without restarts.
//===----------------------------------------------------------------------===//

#include "RateTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

static Value emit(Arithmetic f, const RateSchedule &rate, Value since,
                  Value one) {
  Value angle = f.mul(f.constant(M_PI), emitProgress(f, rate, since, one));
  return emitFall(f, rate, f.mul(f.constant(0.5), f.add(one, f.cos(angle))));
}

static constexpr SpecKey kKeys[] = {kWarmupSteps, kTotalSteps, kEndFactor};

const RateKind penstock::kCosineRate = {{"cosine", kKeys, checkFall}, emit};
