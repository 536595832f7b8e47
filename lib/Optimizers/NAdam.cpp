//===- NAdam.cpp - Adam with Nesterov's momentum --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dozat, "Incorporating Nesterov momentum into Adam" (2016), as PyTorch defines
// it. The momentum grows over the updates, and its correction divides by the
// product of all that were. That product has a series, so that no number has to
// be carried from update to update.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace penstock;

namespace {

/// With mu(t) = beta1 (1 - r^t / 2), r = 0.96^momentum-decay, and P(t) the
/// product of mu(1) to mu(t), the rates are, times root = sqrt(1 - beta2^t):
///   [lr (1 - mu(t)) / (1 - P(t)), lr mu(t+1) / (1 - P(t+1)), eps]
/// Both corrections of the bias are in the rates, in f64, as those of Adam.
class NAdam : public Optimizer {
public:
  explicit NAdam(const OptimizerSpec &spec)
      : Optimizer(spec), beta1(spec.get("beta1")), beta2(spec.get("beta2")),
        epsilon(spec.get("eps")), weightDecay(spec.get("weight-decay")),
        growth(std::pow(0.96, spec.get("momentum-decay"))) {}

  SmallVector<StringRef> getStates() const override {
    return {"exp_avg", "exp_avg_sq"};
  }
  bool hasRates() const override { return true; }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    Value one = f.constant(1), half = f.constant(0.5);
    Value power = f.pow(f.constant(growth), step);
    auto emitMomentum = [&](Value powerOfStep) {
      return f.mul(f.constant(beta1), f.sub(one, f.mul(half, powerOfStep)));
    };
    Value now = emitMomentum(power);
    Value next = emitMomentum(f.mul(power, f.constant(growth)));
    Value product = emitProduct(f, step, power);
    Value root = f.sqrt(f.sub(one, f.pow(f.constant(beta2), step)));
    Value ofGradient = f.div(f.sub(one, now), f.sub(one, product));
    Value ofMean = f.div(next, f.sub(one, f.mul(product, next)));
    Value scaled = f.mul(rate, root);
    return {f.mul(scaled, ofGradient), f.mul(scaled, ofMean),
            f.mul(f.constant(epsilon), root)};
  }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    gradient = addDecay(f, weightDecay, gradient, weight);
    Value mean = f.add(state[0],
                       f.mul(f.constant(1 - beta1), f.sub(gradient, state[0])));
    Value square = f.mul(f.mul(f.constant(1 - beta2), gradient), gradient);
    return {mean, f.add(f.mul(state[1], f.constant(beta2)), square)};
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    return f.div(f.add(f.mul(rates[0], gradient), f.mul(rates[1], state[0])),
                 f.add(f.sqrt(state[1]), rates[2]));
  }

  bool hasDirection() const override { return false; }

private:
  /// P(step), with `power` = r^step:
  /// log P = step log(beta1) - sum over k of (r^k (1 - power^k) / (1 - r^k)) /
  /// (k 2^k), whose terms are below the precision of f64 from the 53rd on.
  Value emitProduct(Arithmetic f, Value step, Value power) const {
    constexpr double kHalf = 0.5;
    if (growth == 1)
      return f.pow(f.constant(beta1 * kHalf), step);
    Value sum = f.constant(0), powerOfK = f.constant(1), one = f.constant(1);
    double factor = 1, growthOfK = 1;
    for (int k = 1; k <= std::numeric_limits<double>::digits; ++k) {
      powerOfK = f.mul(powerOfK, power);
      factor *= kHalf;
      growthOfK *= growth;
      Value weight = f.constant(factor / k * growthOfK / (1 - growthOfK));
      sum = f.add(sum, f.mul(weight, f.sub(one, powerOfK)));
    }
    Value decay = f.pow(f.constant(std::exp(1.0)), f.sub(f.constant(0), sum));
    return f.mul(f.pow(f.constant(beta1), step), decay);
  }

  double beta1, beta2, epsilon, weightDecay, growth;
};

} // namespace

static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec) {
  return std::make_unique<NAdam>(spec);
}

static constexpr SpecKey kKeys[] = {
    {.name = "lr", .fallback = 2e-3},
    {.name = "weight-decay"},
    {.name = "beta1", .fallback = 0.9, .below = 1},
    {.name = "beta2", .fallback = 0.999, .below = 1},
    {.name = "eps", .fallback = 1e-8},
    {.name = "momentum-decay", .fallback = 4e-3},
    kAverage};

const OptimizerKind penstock::kNAdam = {{"nadam", kKeys}, create};
