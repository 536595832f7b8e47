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

/// As in "a, b or c".
static std::string list(const SpecTable &table) {
  std::vector<std::string> names = table.getNames();
  std::string last = names.back();
  names.pop_back();
  return llvm::join(names, ", ") + " or " + last;
}

std::string penstock::listOptimizers() { return list(kOptimizers); }

std::string penstock::listRateSchedules() { return list(kRates); }

pipeline::OptimizerAttr OptimizerSpec::toAttr(MLIRContext *context) const {
  return pipeline::OptimizerAttr::get(context, getName(),
                                      pipeline::getParameters(*this, context));
}

OptimizerSpec OptimizerSpec::fromAttr(pipeline::OptimizerAttr attr) {
  return OptimizerSpec(pipeline::getSpec(kOptimizers, attr));
}

pipeline::RateAttr RateSchedule::toAttr(MLIRContext *context) const {
  return pipeline::RateAttr::get(context, getName(),
                                 pipeline::getParameters(*this, context));
}

RateSchedule RateSchedule::fromAttr(pipeline::RateAttr attr) {
  return attr ? RateSchedule(pipeline::getSpec(kRates, attr)) : RateSchedule();
}

void penstock::registerOptimizers(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, pipeline::PipelineDialect *dialect) {
    dialect->addTable(pipeline::OptimizerAttr::getMnemonic(), kOptimizers);
    dialect->addTable(pipeline::RateAttr::getMnemonic(), kRates);
  });
}

SmallVector<OptimizerState> Optimizer::listStates(RankedTensorType type) const {
  SmallVector<OptimizerState> states;
  for (StringRef name : getStates())
    states.push_back({name, type});
  return states;
}

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec &spec) {
  return spec.getKind().create(spec);
}
