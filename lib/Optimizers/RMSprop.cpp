//===- RMSprop.cpp - Steps by the mean of squares -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning"
// (2012), with momentum, and centered as in Graves, "Generating sequences with
// recurrent neural networks" (2013), as PyTorch defines it.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Rates: [lr]. States: the mean of squares, that of the gradient if centered,
/// and the momentum.
class RMSprop : public Optimizer {
public:
  explicit RMSprop(const OptimizerSpec &spec)
      : Optimizer(spec), alpha(spec.get("alpha")), epsilon(spec.get("eps")),
        weightDecay(spec.get("weight-decay")), momentum(spec.get("momentum")),
        isCentered(spec.has("centered")) {}

  SmallVector<StringRef> getStates() const override {
    SmallVector<StringRef> states = {"square_avg"};
    if (isCentered)
      states.push_back("grad_avg");
    if (momentum != 0)
      states.push_back("momentum");
    return states;
  }
  bool hasRates() const override { return false; }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    gradient = addDecay(f, weightDecay, gradient, weight);
    Value square = f.mul(f.mul(f.constant(1 - alpha), gradient), gradient);
    SmallVector<Value> next = {
        f.add(f.mul(state[0], f.constant(alpha)), square)};
    if (isCentered)
      next.push_back(f.add(
          state[1], f.mul(f.constant(1 - alpha), f.sub(gradient, state[1]))));
    if (momentum != 0)
      next.push_back(f.add(f.mul(f.constant(momentum), state.back()),
                           f.div(gradient, emitRoot(f, next))));
    return next;
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    if (momentum != 0)
      return f.mul(rates[0], state.back());
    return f.div(f.mul(rates[0], gradient), emitRoot(f, state));
  }

  bool hasDirection() const override { return momentum != 0; }

  /// The momentum itself.
  std::optional<unsigned> getDirectionState() const override {
    return hasDirection() ? std::optional<unsigned>(isCentered ? 2 : 1)
                          : std::nullopt;
  }

private:
  /// Emits the root that the gradient is divided by.
  Value emitRoot(Arithmetic f, ValueRange state) const {
    Value square = state[0];
    if (isCentered)
      square = f.sub(square, f.mul(state[1], state[1]));
    return f.add(f.sqrt(square), f.constant(epsilon));
  }

  double alpha, epsilon, weightDecay, momentum;
  bool isCentered;
};

} // namespace

static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec) {
  return std::make_unique<RMSprop>(spec);
}

static constexpr SpecKey kKeys[] = {
    {.name = "lr", .fallback = 1e-2},
    {.name = "alpha", .fallback = 0.99, .below = 1},
    {.name = "weight-decay"},
    {.name = "momentum"},
    {.name = "centered", .type = SpecKey::Flag},
    {.name = "eps", .fallback = 1e-8},
    kAverage};

const OptimizerKind penstock::kRMSprop = {{"rmsprop", kKeys}, create};
