//===- SGD.cpp - Stochastic gradient descent ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD with momentum, dampening, Nesterov's step and weight decay, as PyTorch
// defines it.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Rates: [lr], and with dampening the factor of the gradient in the momentum,
/// which is 1 in the first update: the buffer starts as the gradient.
class SGD : public Optimizer {
public:
  explicit SGD(const OptimizerSpec &spec)
      : Optimizer(spec), momentum(spec.get("momentum")),
        dampening(spec.get("dampening")), weightDecay(spec.get("weight-decay")),
        nesterov(spec.has("nesterov")) {}

  SmallVector<StringRef> getStates() const override {
    if (momentum == 0)
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
    Value factor = arith::SelectOp::create(
        f.builder, f.loc, isFirst, f.constant(1), f.constant(1 - dampening));
    return {rate, factor};
  }

  SmallVector<Value> emitState(Arithmetic f, Value weight, Value &gradient,
                               ValueRange state,
                               ValueRange rates) const override {
    gradient = addDecay(f, weightDecay, gradient, weight);
    if (state.empty())
      return {};
    Value added = isDampened() ? f.mul(rates[1], gradient) : gradient;
    return {f.add(f.mul(f.constant(momentum), state[0]), added)};
  }

  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    Value direction = gradient;
    if (!state.empty())
      direction = nesterov
                      ? f.add(gradient, f.mul(f.constant(momentum), state[0]))
                      : state[0];
    return f.mul(rates[0], direction);
  }

  bool hasDirection() const override { return momentum != 0; }

  /// The momentum itself.
  std::optional<unsigned> getDirectionState() const override {
    return hasDirection() ? std::optional<unsigned>(0) : std::nullopt;
  }

private:
  bool isDampened() const { return momentum != 0 && dampening != 0; }

  double momentum, dampening, weightDecay;
  bool nesterov;
};

} // namespace

static std::string check(const Spec &spec) {
  if (spec.has("nesterov") &&
      (spec.get("momentum") == 0 || spec.get("dampening") != 0))
    return "sgd: nesterov needs momentum > 0 and dampening = 0, as in "
           "sgd:momentum=0.9,nesterov";
  return "";
}

static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec) {
  return std::make_unique<SGD>(spec);
}

static constexpr SpecKey kKeys[] = {
    {.name = "lr", .fallback = 1e-2},
    {.name = "momentum"},
    {.name = "dampening", .least = -SpecKey::kNoLimit, .sameAs = "momentum"},
    {.name = "weight-decay"},
    {.name = "nesterov", .type = SpecKey::Flag},
    kAverage};

const OptimizerKind penstock::kSGD = {{"sgd", kKeys, check}, create};
