//===- Lion.cpp - Steps of one size ---------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chen and others, "Symbolic discovery of optimization algorithms" (2023),
// algorithm 2.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Rates: [lr], and with weight decay [1 - lr * weight-decay].
class Lion : public Optimizer {
public:
  explicit Lion(const OptimizerSpec &spec)
      : Optimizer(spec), beta1(spec.get("beta1")), beta2(spec.get("beta2")),
        weightDecay(spec.get("weight-decay")) {}

  SmallVector<StringRef> getStates() const override { return {"exp_avg"}; }
  bool hasRates() const override { return weightDecay != 0; }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    if (weightDecay == 0)
      return {rate};
    return {rate, f.sub(f.constant(1), f.mul(rate, f.constant(weightDecay)))};
  }

  Value emitDecay(Arithmetic f, Value weight, ValueRange rates) const override {
    return weightDecay == 0 ? weight : f.mul(weight, rates[1]);
  }

  /// The step goes by the sign of a mean of the old state and the gradient,
  /// which takes the place of the gradient.
  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    Value next = emitMean(f, beta2, state[0], gradient);
    gradient = emitMean(f, beta1, state[0], gradient);
    return {next};
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    Value zero = f.constant(0), down = f.sub(zero, rates[0]);
    Value notPositive = f.selectLess(gradient, zero, down, zero);
    return f.selectLess(zero, gradient, rates[0], notPositive);
  }

  bool hasDirection() const override { return false; }

private:
  static Value emitMean(Arithmetic f, double beta, Value state,
                        Value gradient) {
    return f.add(f.mul(f.constant(beta), state),
                 f.mul(f.constant(1 - beta), gradient));
  }

  double beta1, beta2, weightDecay;
};

} // namespace

static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec) {
  return std::make_unique<Lion>(spec);
}

static constexpr SpecKey kKeys[] = {
    {.name = "lr", .fallback = 1e-4},
    {.name = "weight-decay"},
    {.name = "beta1", .fallback = 0.9, .below = 1},
    {.name = "beta2", .fallback = 0.99, .below = 1},
    kAverage};

const OptimizerKind penstock::kLion = {{"lion", kKeys}, create};
