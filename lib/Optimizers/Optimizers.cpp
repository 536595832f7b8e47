//===- Optimizers.cpp - Optimizers as code that is emitted ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD, Adam and AdamW as PyTorch defines them.
//===----------------------------------------------------------------------===//

#include "penstock/Optimizers/Optimizers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace penstock;

namespace {

/// gradient + weight-decay * weight
Value addDecay(Arithmetic f, const OptimizerSpec &spec, Value gradient,
               Value weight) {
  if (spec.weightDecay == 0)
    return gradient;
  return f.add(gradient, f.mul(f.constant(spec.weightDecay), weight));
}

/// Rates: [lr], and with dampening the factor of the gradient in the momentum,
/// which is 1 in the first update: the buffer starts as the gradient.
class SGD : public Optimizer {
public:
  using Optimizer::Optimizer;

  SmallVector<StringRef> getStates() const override {
    if (spec.momentum == 0)
      return {};
    return {"momentum"};
  }
  bool hasRates() const override { return isDampened(); }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    if (!isDampened())
      return {rate};
    Value isFirst = arith::CmpFOp::create(
        f.builder, f.loc, arith::CmpFPredicate::OEQ, step, f.constant(1));
    Value factor =
        arith::SelectOp::create(f.builder, f.loc, isFirst, f.constant(1),
                                f.constant(1 - spec.dampening));
    return {rate, factor};
  }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    gradient = addDecay(f, spec, gradient, weight);
    if (state.empty())
      return {};
    Value added = isDampened() ? f.mul(rates[1], gradient) : gradient;
    return {f.add(f.mul(f.constant(spec.momentum), state[0]), added)};
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    Value direction = gradient;
    if (!state.empty())
      direction =
          spec.nesterov
              ? f.add(gradient, f.mul(f.constant(spec.momentum), state[0]))
              : state[0];
    return f.mul(rates[0], direction);
  }

  bool hasDirection() const override { return spec.momentum != 0; }

  /// The momentum itself.
  std::optional<unsigned> getDirectionState() const override {
    return hasDirection() ? std::optional<unsigned>(0) : std::nullopt;
  }

private:
  bool isDampened() const { return spec.momentum != 0 && spec.dampening != 0; }
};

/// Rates: [lr * root / (1 - beta1^step), eps * root] with
/// root = sqrt(1 - beta2^step), AdamW also [1 - lr * weight-decay].
///
/// That is the order of section 2 of Kingma and Ba, "Adam: a method for
/// stochastic optimization" (2015): both corrections of the bias are in the
/// rates, in f64, and an element takes one division instead of two.
class Adam : public Optimizer {
public:
  using Optimizer::Optimizer;

  SmallVector<StringRef> getStates() const override {
    return {"exp_avg", "exp_avg_sq"};
  }
  bool hasRates() const override { return true; }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    Value one = f.constant(1);
    Value first = f.sub(one, f.pow(f.constant(spec.beta1), step));
    Value root = f.sqrt(f.sub(one, f.pow(f.constant(spec.beta2), step)));
    SmallVector<Value> rates = {f.div(f.mul(rate, root), first),
                                f.mul(f.constant(spec.epsilon), root)};
    if (isDecoupled())
      rates.push_back(f.sub(one, f.mul(rate, f.constant(spec.weightDecay))));
    return rates;
  }

  Value emitDecay(Arithmetic f, Value weight, ValueRange rates) const override {
    return isDecoupled() ? f.mul(weight, rates[2]) : weight;
  }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    if (spec.kind == OptimizerKind::Adam)
      gradient = addDecay(f, spec, gradient, weight);
    // PyTorch's lerp changes form at one half, for the sake of its ends.
    double weightOfNew = 1 - spec.beta1;
    Value difference = f.sub(gradient, state[0]);
    Value mean =
        weightOfNew < 0.5
            ? f.add(state[0], f.mul(f.constant(weightOfNew), difference))
            : f.sub(gradient, f.mul(difference, f.constant(1 - weightOfNew)));
    Value square = f.mul(f.mul(f.constant(1 - spec.beta2), gradient), gradient);
    Value variance = f.add(f.mul(state[1], f.constant(spec.beta2)), square);
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
      direction = f.add(direction, f.mul(f.constant(spec.weightDecay), weight));
    return direction;
  }

private:
  bool isDecoupled() const {
    return spec.kind == OptimizerKind::AdamW && spec.weightDecay != 0;
  }
};

} // namespace

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec &spec) {
  if (spec.kind == OptimizerKind::SGD)
    return std::make_unique<SGD>(spec);
  return std::make_unique<Adam>(spec);
}
