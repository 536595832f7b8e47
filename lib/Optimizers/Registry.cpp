//===- Registry.cpp - The tables of optimizers and rates ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each row has a file; a line in Optimizers.def or Rates.def lists it.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"
#include "Rates/RateTable.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock;

static constexpr const SpecKind *kOptimizerRows[] = {
#define PENSTOCK_OPTIMIZER(NAME) &k##NAME,
#include "Optimizers.def"
#undef PENSTOCK_OPTIMIZER
};

static constexpr const SpecKind *kRateRows[] = {
#define PENSTOCK_RATE(NAME) &k##NAME##Rate,
#include "Rates/Rates.def"
#undef PENSTOCK_RATE
};

static constexpr SpecTable kOptimizers = {"optimizer", kOptimizerRows};
// As --lr-schedule has it.
static constexpr SpecTable kRates = {"schedule", kRateRows};

OptimizerSpec::OptimizerSpec() : Spec(kSGD) {}

RateSchedule::RateSchedule() : Spec(kConstantRate) {}

FailureOr<OptimizerSpec> penstock::parseOptimizerSpec(StringRef text,
                                                      std::string &error) {
  std::optional<Spec> spec = parseSpec(text, kOptimizers, error);
  if (!spec)
    return failure();
  return OptimizerSpec(std::move(*spec));
}

FailureOr<RateSchedule> penstock::parseRateSchedule(StringRef text,
                                                    std::string &error) {
  std::optional<Spec> spec = parseSpec(text, kRates, error);
  if (!spec)
    return failure();
  return RateSchedule(std::move(*spec));
}

std::string penstock::listOptimizers() {
  return llvm::join(kOptimizers.getNames(), ", ");
}

std::string penstock::listRateSchedules() {
  return llvm::join(kRates.getNames(), ", ");
}

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec &spec) {
  return spec.getKind().create(spec);
}
