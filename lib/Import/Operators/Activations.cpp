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

template <typename MathOp> static Value math1(Emitter &emitter, Value x) {
  return MathOp::create(emitter.builder, emitter.loc, x);
}

static Value relu(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.max(x, emitter.scalar(x.getType(), 0));
}

static LogicalResult inferLeakyRelu(NodeBinder &node, Types &types) {
  double alpha = 0.01;
  return success(succeeded(node.attribute("alpha", alpha)) &&
                 succeeded(inferFloatUnary(node, types)));
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
  return math1<math::TanhOp>(emitter, x);
}

/// exp(-x) overflows to inf where the result is 0: right as it is.
static Value sigmoid(NodeBinder &, Emitter &emitter, Value x) {
  Value one = emitter.scalar(x.getType(), 1);
  Value negative = arith::NegFOp::create(emitter.builder, emitter.loc, x);
  return emitter.div(one,
                     emitter.add(one, math1<math::ExpOp>(emitter, negative)));
}

/// log(1 + exp(x)); from where it rounds to x on, x itself. The exponential is
/// kept finite there, so that the derivative is a number on both sides.
static Value softplus(NodeBinder &, Emitter &emitter, Value x) {
  Type type = x.getType();
  double where = type.isF64() ? 40 : type.isF16() ? 10 : 20;
  Value limit = emitter.scalar(type, where);
  Value power = math1<math::ExpOp>(emitter, emitter.min(x, limit));
  return emitter.select(emitter.less(limit, x), x,
                        math1<math::Log1pOp>(emitter, power));
}

static LogicalResult inferGelu(NodeBinder &node, Types &types) {
  std::string approximate = "none";
  if (failed(node.attribute("approximate", approximate)))
    return failure();
  if (approximate != "none" && approximate != "tanh")
    return node.badAttribute("approximate", "\"none\" or \"tanh\"");
  return inferFloatUnary(node, types);
}

/// x/2 (1 + erf(x/sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
static Value gelu(NodeBinder &node, Emitter &emitter, Value x) {
  std::string approximate = "none";
  (void)node.attribute("approximate", approximate);
  Type type = x.getType();
  Value inner;
  if (approximate == "none") {
    inner = math1<math::ErfOp>(emitter,
                               emitter.mul(x, emitter.scalar(type, M_SQRT1_2)));
  } else {
    Value cube = emitter.mul(emitter.mul(x, x), x);
    Value sum =
        emitter.add(x, emitter.mul(emitter.scalar(type, 0.044715), cube));
    inner = math1<math::TanhOp>(
        emitter, emitter.mul(emitter.scalar(type, std::sqrt(2.0 / M_PI)), sum));
  }
  return emitter.mul(emitter.mul(emitter.scalar(type, 0.5), x),
                     emitter.add(emitter.scalar(type, 1), inner));
}

void penstock::onnx::addActivations(OperatorTable &table) {
  table.add("Relu", {6, 13, 14}, inferArithmeticUnary, nullptr,
            lowerUnary<relu>);
  table.add("LeakyRelu", {6, 16}, inferLeakyRelu, nullptr,
            lowerUnary<leakyRelu>);
  table.add("Tanh", {6, 13}, inferFloatUnary, nullptr, lowerUnary<tanh>);
  table.add("Sigmoid", {6, 13}, inferFloatUnary, nullptr, lowerUnary<sigmoid>);
  table.add("Softplus", {1, 22}, inferFloatUnary, nullptr,
            lowerUnary<softplus>);
  table.add("Gelu", {20}, inferGelu, nullptr, lowerUnary<gelu>);
}
