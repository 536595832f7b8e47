//===- FusedForms.cpp - Activations of com.microsoft ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What optimised files carry: an activation with the addition before it. Both
// are one elementwise op here; which others join them is decided later.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

static LogicalResult bindBiased(NodeBinder &node, unsigned required) {
  if (failed(node.operands({"X", "bias"}, required)) ||
      failed(node.requireFloat(0)))
    return failure();
  if (!node.has(1))
    return success();
  SmallVector<int64_t> shape(node.shape(0));
  if (failed(node.requireSameElementType(0, 1)) ||
      failed(node.broadcast(1, shape)))
    return failure();
  if (ArrayRef<int64_t>(shape) != node.shape(0))
    return node.error() << "operand 'bias' is " << node.type(1)
                        << ", which does not broadcast to " << node.type(0);
  return success();
}

template <unsigned required>
static LogicalResult inferBiased(NodeBinder &node, Types &types) {
  if (failed(bindBiased(node, required)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

/// x/2 (1 + erf(x / sqrt 2))
static Value exactGelu(NodeBinder &, Emitter &e, Value x) {
  Type type = x.getType();
  Value inner = math::ErfOp::create(e.builder, e.loc,
                                    e.mul(x, e.scalar(type, M_SQRT1_2)));
  return e.mul(e.mul(e.scalar(type, 0.5), x), e.add(e.scalar(type, 1), inner));
}

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
static Value tanhGelu(NodeBinder &, Emitter &e, Value x) {
  Type type = x.getType();
  Value cube = e.mul(e.mul(x, x), x);
  Value sum = e.add(x, e.mul(e.scalar(type, 0.044715), cube));
  Value inner = math::TanhOp::create(
      e.builder, e.loc, e.mul(e.scalar(type, std::sqrt(2.0 / M_PI)), sum));
  return e.mul(e.mul(e.scalar(type, 0.5), x), e.add(e.scalar(type, 1), inner));
}

static LogicalResult inferQuickGelu(NodeBinder &node, Types &types) {
  double alpha = 1.702;
  return success(succeeded(node.attribute("alpha", alpha)) &&
                 succeeded(inferFloatUnary(node, types)));
}

/// x / (1 + exp(-alpha x))
static Value quickGelu(NodeBinder &node, Emitter &e, Value x) {
  double alpha = 1.702f;
  (void)node.attribute("alpha", alpha);
  Type type = x.getType();
  Value scaled = e.mul(e.scalar(type, alpha), x);
  Value negative = arith::NegFOp::create(e.builder, e.loc, scaled);
  Value power = math::ExpOp::create(e.builder, e.loc, negative);
  Value one = e.scalar(type, 1);
  return e.mul(x, e.div(one, e.add(one, power)));
}

template <Value (*activation)(NodeBinder &, Emitter &, Value)>
static LogicalResult lowerBiased(NodeBinder &node, OpBuilder &builder,
                                 Values &results) {
  Emitter emitter(builder, node.getLoc());
  Value sum = node.operand(0);
  // In an op of its own, so that the sum is a value of the forward wherever a
  // derivative reads it: a backward may have another bias.
  if (node.has(1))
    sum = emitter.elementwise(node.type(0), {sum, node.operand(1)},
                              [](Emitter &inside, ArrayRef<Value> scalars) {
                                return inside.add(scalars[0], scalars[1]);
                              });
  results.push_back(emitter.elementwise(
      node.type(0), sum, [&](Emitter &inside, ArrayRef<Value> scalars) {
        return activation(node, inside, scalars[0]);
      }));
  return success();
}

void penstock::onnx::addFusedForms(OperatorTable &table) {
  table.addMicrosoft("Gelu", inferFloatUnary, lowerUnary<exactGelu>);
  table.addMicrosoft("QuickGelu", inferQuickGelu, lowerUnary<quickGelu>);
  table.addMicrosoft("FastGelu", inferBiased<1>, lowerBiased<tanhGelu>);
  table.addMicrosoft("BiasGelu", inferBiased<2>, lowerBiased<exactGelu>);
}
