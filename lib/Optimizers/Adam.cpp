//===- Adam.cpp - Adam and AdamW ------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kingma and Ba, "Adam: a method for stochastic optimization" (2015);
// Loshchilov and Hutter, "Decoupled weight decay regularization" (2019), as
// PyTorch defines them.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Rates: [lr * root / (1 - beta1^step), eps * root] with
/// root = sqrt(1 - beta2^step), AdamW also [1 - lr * weight-decay].
///
/// That is the order of section 2 of Kingma and Ba, "Adam: a method for
/// stochastic optimization" (2015): both corrections of the bias are in the
/// rates, in f64, and an element takes one division instead of two.
class Adam : public Optimizer {
public:
  Adam(const OptimizerSpec &spec, bool isW)
      : Optimizer(spec), beta1(spec.get("beta1")), beta2(spec.get("beta2")),
        epsilon(spec.get("eps")), weightDecay(spec.get("weight-decay")),
        isW(isW) {}

  SmallVector<StringRef> getStates() const override { return {"m", "v"}; }
  bool hasRates() const override { return true; }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    Value one = f.constant(1);
    Value first = f.sub(one, f.pow(f.constant(beta1), step));
    Value root = f.sqrt(f.sub(one, f.pow(f.constant(beta2), step)));
    SmallVector<Value> rates = {f.div(f.mul(rate, root), first),
                                f.mul(f.constant(epsilon), root)};
    if (isDecoupled())
      rates.push_back(f.sub(one, f.mul(rate, f.constant(weightDecay))));
    return rates;
  }

  Value emitDecay(Arithmetic f, Value weight, ValueRange rates) const override {
    return isDecoupled() ? f.mul(weight, rates[2]) : weight;
  }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    if (!isW)
      gradient = addDecay(f, weightDecay, gradient, weight);
    Value mean = f.lerp(state[0], gradient, 1 - beta1);
    Value square = f.mul(f.mul(f.constant(1 - beta2), gradient), gradient);
    Value variance = f.add(f.mul(state[1], f.constant(beta2)), square);
    return {mean, variance};
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    return f.div(f.mul(rates[0], state[0]), f.add(f.sqrt(state[1]), rates[1]));
  }

  bool hasDirection() const override { return true; }

  SmallVector<Value> emitDirectionRates(Arithmetic f,
                                        Value step) const override {
    // Those of an update with a rate of 1.
    SmallVector<Value> rates = emitRates(f, f.constant(1), step);
    rates.truncate(2);
    return rates;
  }

  /// m^ / (sqrt(v^) + eps), of AdamW and weight-decay * w.
  Value emitDirection(Arithmetic f, Value weight, ValueRange state,
                      ValueRange rates) const override {
    Value direction = emitStep(f, Value(), state, rates);
    if (isDecoupled())
      direction = f.add(direction, f.mul(f.constant(weightDecay), weight));
    return direction;
  }

private:
  bool isDecoupled() const { return isW && weightDecay != 0; }

  double beta1, beta2, epsilon, weightDecay;
  /// The decay of the weights is apart from the gradient.
  bool isW;
};

} // namespace

static std::unique_ptr<Optimizer> createAdam(const OptimizerSpec &spec) {
  return std::make_unique<Adam>(spec, /*isW=*/false);
}

static std::unique_ptr<Optimizer> createAdamW(const OptimizerSpec &spec) {
  return std::make_unique<Adam>(spec, /*isW=*/true);
}

static constexpr SpecKey kRate = {.name = "lr", .fallback = 1e-3};
static constexpr SpecKey kBeta1 = {
    .name = "beta1", .fallback = 0.9, .below = 1};
static constexpr SpecKey kBeta2 = {
    .name = "beta2", .fallback = 0.999, .below = 1};
static constexpr SpecKey kEpsilon = {.name = "eps", .fallback = 1e-8};

static constexpr SpecKey kAdamKeys[] = {
    kRate, {.name = "weight-decay"}, kBeta1, kBeta2, kEpsilon, kAverage};
static constexpr SpecKey kAdamWKeys[] = {
    kRate,    {.name = "weight-decay", .fallback = 1e-2},
    kBeta1,   kBeta2,
    kEpsilon, kAverage};

const OptimizerKind penstock::kAdam = {{"adam", kAdamKeys}, createAdam};
const OptimizerKind penstock::kAdamW = {{"adamw", kAdamWKeys}, createAdamW};
