//===- Adagrad.cpp - Steps by the sum of squares --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning
// and stochastic optimization" (2011), as PyTorch defines it.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Rates: [lr / (1 + (step - 1) * lr-decay)].
class Adagrad : public Optimizer {
public:
  explicit Adagrad(const OptimizerSpec &spec)
      : Optimizer(spec), rateDecay(spec.get("lr-decay")),
        epsilon(spec.get("eps")), weightDecay(spec.get("weight-decay")) {}

  SmallVector<StringRef> getStates() const override { return {"sum"}; }
  bool hasRates() const override { return rateDecay != 0; }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    if (rateDecay == 0)
      return {rate};
    Value one = f.constant(1);
    Value before = f.mul(f.sub(step, one), f.constant(rateDecay));
    return {f.div(rate, f.add(one, before))};
  }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    gradient = addDecay(f, weightDecay, gradient, weight);
    return {f.add(state[0], f.mul(gradient, gradient))};
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    return f.div(f.mul(rates[0], gradient),
                 f.add(f.sqrt(state[0]), f.constant(epsilon)));
  }

  bool hasDirection() const override { return false; }

private:
  double rateDecay, epsilon, weightDecay;
};

} // namespace

static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec) {
  return std::make_unique<Adagrad>(spec);
}

static constexpr SpecKey kKeys[] = {{.name = "lr", .fallback = 1e-2},
                                    {.name = "lr-decay"},
                                    {.name = "weight-decay"},
                                    {.name = "eps", .fallback = 1e-10},
                                    kAverage};

const OptimizerKind penstock::kAdagrad = {{"adagrad", kKeys}, create};
