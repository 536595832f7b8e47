//===- FusedForms.cpp - Activations of com.microsoft ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What optimized files carry: an activation with the addition before it. Both
// are one elementwise op here; which others join them is decided later.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

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

template <unsigned required> static Types inferBiased(NodeBinder &node) {
  if (failed(bindBiased(node, required)))
    return failure();
  return node.type(0);
}

template <bool approximate>
static Value gelu(NodeBinder &, Emitter &emitter, Value x) {
  return emitGelu(emitter, x, approximate);
}

static Types inferQuickGelu(NodeBinder &node) {
  double alpha = 1.702;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  return inferFloatUnary(node);
}

/// x / (1 + exp(-alpha x))
static Value quickGelu(NodeBinder &node, Emitter &e, Value x) {
  double alpha = 1.702f;
  (void)node.attribute("alpha", alpha);
  Type type = x.getType();
  Value scaled = e.mul(e.scalar(type, alpha), x);
  Value negative = e.neg(scaled);
  Value power = e.make<math::ExpOp>(negative);
  Value one = e.scalar(type, 1);
  return e.mul(x, e.div(one, e.add(one, power)));
}

template <Value (*activation)(NodeBinder &, Emitter &, Value)>
static Values lowerBiased(NodeBinder &node, Emitter &emitter) {
  Value sum = node.operand(0);
  // In an op of its own, so that the sum is a value of the forward wherever a
  // derivative reads it: a backward may have another bias.
  if (node.has(1))
    sum = emitter.elementwise(node.type(0), {sum, node.operand(1)},
                              &Emitter::add);
  return emitter.elementwise(node.type(0), sum,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return activation(node, inside, scalars[0]);
                             });
}

void penstock::onnx::addFusedForms(OperatorTable &table) {
  table.addMicrosoft("Gelu", inferFloatUnary, lowerUnary<gelu<false>>);
  table.addMicrosoft("QuickGelu", inferQuickGelu, lowerUnary<quickGelu>);
  table.addMicrosoft("FastGelu", inferBiased<1>, lowerBiased<gelu<true>>);
  table.addMicrosoft("BiasGelu", inferBiased<2>, lowerBiased<gelu<false>>);
}
