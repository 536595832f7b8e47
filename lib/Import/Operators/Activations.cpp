//===- Activations.cpp - Elementwise activation functions -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One scalar body each, written so that it neither overflows nor loses digits
// where its derivative by the table of scalar rules is used.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

static Value relu(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.max(x, emitter.scalar(x.getType(), 0));
}

static Value leakyRelu(NodeBinder &node, Emitter &emitter, Value x) {
  double alpha = 0.01f;
  (void)node.attribute("alpha", alpha);
  Type type = x.getType();
  // At 0 the slope is alpha, as PyTorch has it.
  return emitter.select(emitter.less(emitter.scalar(type, 0), x), x,
                        emitter.mul(emitter.scalar(type, alpha), x));
}

static Value tanh(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.make<math::TanhOp>(x);
}

/// exp(-x) overflows to inf where the result is 0: right as it is.
static Value sigmoid(NodeBinder &, Emitter &emitter, Value x) {
  Value one = emitter.scalar(x.getType(), 1);
  Value negative = emitter.neg(x);
  return emitter.div(one,
                     emitter.add(one, emitter.make<math::ExpOp>(negative)));
}

/// log(1 + exp(x)); from where it rounds to x on, x itself. The exponential is
/// kept finite there, so that the derivative is a number on both sides. At the
/// limit itself the minimum has none, so x is taken there already.
static Value softplus(NodeBinder &, Emitter &emitter, Value x) {
  Type type = x.getType();
  double where = type.isF64() ? 40 : type.isF16() ? 10 : 20;
  Value limit = emitter.scalar(type, where);
  Value power = emitter.make<math::ExpOp>(emitter.min(x, limit));
  return emitter.select(emitter.less(x, limit),
                        emitter.make<math::Log1pOp>(power), x);
}

static Types inferGelu(NodeBinder &node) {
  std::string approximate = "none";
  if (failed(node.attribute("approximate", approximate)))
    return failure();
  if (approximate != "none" && approximate != "tanh")
    return node.badAttribute("approximate", "\"none\" or \"tanh\"");
  return inferFloatUnary(node);
}

/// x/2 (1 + erf(x/sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Value penstock::onnx::emitGelu(Emitter &emitter, Value x, bool approximate) {
  Type type = x.getType();
  Value inner;
  if (!approximate) {
    inner = emitter.make<math::ErfOp>(
        emitter.mul(x, emitter.scalar(type, M_SQRT1_2)));
  } else {
    Value cube = emitter.mul(emitter.mul(x, x), x);
    Value sum =
        emitter.add(x, emitter.mul(emitter.scalar(type, 0.044715), cube));
    inner = emitter.make<math::TanhOp>(
        emitter.mul(emitter.scalar(type, std::sqrt(2.0 / M_PI)), sum));
  }
  return emitter.mul(emitter.mul(emitter.scalar(type, 0.5), x),
                     emitter.add(emitter.scalar(type, 1), inner));
}

static Value gelu(NodeBinder &node, Emitter &emitter, Value x) {
  std::string approximate = "none";
  (void)node.attribute("approximate", approximate);
  return emitGelu(emitter, x, approximate == "tanh");
}

//===--- Exponential and linear pieces ---===//

/// The exponential of what is negative; 1 elsewhere, so that the derivative is
/// a number on both sides.
static Value expm1OfNegative(Emitter &emitter, Value x, Value scale) {
  Type type = x.getType();
  Value zero = emitter.scalar(type, 0);
  Value negative = emitter.select(emitter.less(zero, x), zero, x);
  if (scale)
    negative = emitter.div(negative, scale);
  return emitter.make<math::ExpM1Op>(negative);
}

/// x where it is positive, `other` elsewhere.
static Value positiveOr(Emitter &emitter, Value x, Value other) {
  return emitter.select(emitter.less(emitter.scalar(x.getType(), 0), x), x,
                        other);
}

/// The float attribute `name`, which inference has checked.
static Value factor(NodeBinder &node, Emitter &emitter, StringRef name,
                    double value, Type type) {
  (void)node.attribute(name, value);
  return emitter.scalar(type, value);
}

/// One float operand, float attributes.
template <const char *...names> static Types inferWith(NodeBinder &node) {
  double value = 0;
  if ((failed(node.attribute(names, value)) || ...))
    return failure();
  return inferFloatUnary(node);
}
static constexpr char alpha[] = "alpha", beta[] = "beta", gamma_[] = "gamma";

static Value elu(NodeBinder &node, Emitter &emitter, Value x) {
  Value scale = factor(node, emitter, alpha, 1.0, x.getType());
  return positiveOr(emitter, x,
                    emitter.mul(scale, expm1OfNegative(emitter, x, {})));
}

static Types inferCelu(NodeBinder &node) {
  double value = 1;
  if (failed(node.attribute(alpha, value)))
    return failure();
  if (value == 0)
    return node.badAttribute(alpha, "a number other than 0");
  return inferFloatUnary(node);
}

/// Elu with a derivative that is 1 at 0.
static Value celu(NodeBinder &node, Emitter &emitter, Value x) {
  Value scale = factor(node, emitter, alpha, 1.0, x.getType());
  return positiveOr(emitter, x,
                    emitter.mul(scale, expm1OfNegative(emitter, x, scale)));
}

static Value selu(NodeBinder &node, Emitter &emitter, Value x) {
  Type type = x.getType();
  Value scale = factor(node, emitter, alpha, 1.67326319217681884765625, type);
  Value whole = factor(node, emitter, gamma_, 1.05070102214813232421875, type);
  Value inner = positiveOr(emitter, x,
                           emitter.mul(scale, expm1OfNegative(emitter, x, {})));
  return emitter.mul(whole, inner);
}

static Value clampedLine(Emitter &emitter, Value x, Value slope, Value offset) {
  Type type = x.getType();
  Value line = emitter.add(emitter.mul(slope, x), offset);
  return emitter.max(emitter.scalar(type, 0),
                     emitter.min(emitter.scalar(type, 1), line));
}

static Value hardSigmoid(NodeBinder &node, Emitter &emitter, Value x) {
  Type type = x.getType();
  return clampedLine(emitter, x, factor(node, emitter, alpha, 0.2f, type),
                     factor(node, emitter, beta, 0.5, type));
}

static Value hardSwish(NodeBinder &, Emitter &emitter, Value x) {
  Type type = x.getType();
  return emitter.mul(x, clampedLine(emitter, x, emitter.scalar(type, 1.0 / 6.0),
                                    emitter.scalar(type, 0.5)));
}

static Value mish(NodeBinder &node, Emitter &emitter, Value x) {
  return emitter.mul(x, emitter.make<math::TanhOp>(softplus(node, emitter, x)));
}

static Value softsign(NodeBinder &, Emitter &emitter, Value x) {
  Value size = emitter.add(emitter.scalar(x.getType(), 1),
                           emitter.make<math::AbsFOp>(x));
  return emitter.div(x, size);
}

static Value thresholdedRelu(NodeBinder &node, Emitter &emitter, Value x) {
  Type type = x.getType();
  Value limit = factor(node, emitter, alpha, 1.0, type);
  return emitter.select(emitter.less(limit, x), x, emitter.scalar(type, 0));
}

//===--- Shrink ---===//

static Types inferShrink(NodeBinder &node) {
  double value = 0;
  if (failed(node.attribute("lambd", value)) ||
      failed(node.attribute("bias", value)) ||
      failed(node.operands({"input"}, 1)) || failed(node.requireNumber(0)))
    return failure();
  return node.type(0);
}

/// Integers are compared as floats: lambd and bias need not be whole.
static Value shrink(NodeBinder &node, Emitter &emitter, Value x) {
  Type type = x.getType();
  Type computed = isa<FloatType>(type) ? type : emitter.builder.getF64Type();
  x = emitter.cast(x, computed);
  double lambda = 0.5;
  (void)node.attribute("lambd", lambda);
  Value bias = factor(node, emitter, "bias", 0.0, computed);
  Value low = emitter.scalar(computed, -lambda);
  Value high = emitter.scalar(computed, lambda);
  Value result = emitter.select(emitter.less(high, x), emitter.sub(x, bias),
                                emitter.scalar(computed, 0));
  result = emitter.select(emitter.less(x, low), emitter.add(x, bias), result);
  return emitter.cast(result, type);
}

//===--- PRelu ---===//

/// The slope broadcasts to the operand, never the other way round.
static Types inferPRelu(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"X", "slope"}, 2)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  if (ArrayRef<int64_t>(shape) != node.shape(0))
    return node.error() << "operand 'slope' is " << node.type(1)
                        << ", it must broadcast to operand 'X', "
                        << node.type(0);
  return node.type(0);
}

static Values lowerPRelu(NodeBinder &node, Emitter &emitter) {
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) {
    return positiveOr(inside, scalars[0], inside.mul(scalars[1], scalars[0]));
  };
  return emitter.elementwise(node.type(0), {node.operand(0), node.operand(1)},
                             body);
}

void penstock::onnx::addActivations(OperatorTable &table) {
  table.add("Relu", {6, 13, 14}, inferArithmeticUnary, nullptr,
            lowerUnary<relu>);
  table.add("LeakyRelu", {6, 16}, inferWith<alpha>, nullptr,
            lowerUnary<leakyRelu>);
  table.add("Tanh", {6, 13}, inferFloatUnary, nullptr, lowerUnary<tanh>);
  table.add("Sigmoid", {6, 13}, inferFloatUnary, nullptr, lowerUnary<sigmoid>);
  table.add("Softplus", {1, 22}, inferFloatUnary, nullptr,
            lowerUnary<softplus>);
  table.add("Gelu", {20}, inferGelu, nullptr, lowerUnary<gelu>);
  table.add("Elu", {6, 22}, inferWith<alpha>, nullptr, lowerUnary<elu>);
  table.add("Celu", {12}, inferCelu, nullptr, lowerUnary<celu>);
  table.add("Selu", {6, 22}, inferWith<alpha, gamma_>, nullptr,
            lowerUnary<selu>);
  table.add("HardSigmoid", {6, 22}, inferWith<alpha, beta>, nullptr,
            lowerUnary<hardSigmoid>);
  table.add("HardSwish", {14, 22}, inferFloatUnary, nullptr,
            lowerUnary<hardSwish>);
  table.add("Mish", {18, 22}, inferFloatUnary, nullptr, lowerUnary<mish>);
  table.add("Softsign", {1, 22}, inferFloatUnary, nullptr,
            lowerUnary<softsign>);
  table.add("ThresholdedRelu", {10, 22}, inferWith<alpha>, nullptr,
            lowerUnary<thresholdedRelu>);
  table.add("Shrink", {9}, inferShrink, nullptr, lowerUnary<shrink>);
  table.add("PRelu", {7, 9, 16}, inferPRelu, nullptr, lowerPRelu);
}
