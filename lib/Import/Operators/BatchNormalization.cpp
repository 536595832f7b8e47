//===- BatchNormalization.cpp - BatchNormalization ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stays one op until tasks are derived: whether the model trains decides what
// it means, not the node's training_mode, which exporters leave at 0.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"
#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct BatchNorm {
  double epsilon = 1e-5, momentum = 0.9;
  bool training = false;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult BatchNorm::bind(NodeBinder &node) {
  if (failed(
          node.operands({"X", "scale", "B", "input_mean", "input_var"}, 5)) ||
      failed(node.requireFloat(0)))
    return failure();
  if (node.rank(0) < 2)
    return node.error() << "normalizes " << node.type(0)
                        << ", which has no channel axis";
  for (unsigned i = 1; i < 5; ++i) {
    if (failed(node.requireSameElementType(0, i)))
      return failure();
    if (node.rank(i) != 1 || node.shape(i)[0] != node.shape(0)[1])
      return node.error() << "operand '" << node.operandName(i) << "' has type "
                          << node.type(i) << ", but there are "
                          << node.shape(0)[1] << " channels";
  }
  int64_t spatial = 1;
  if (failed(node.attribute("spatial", spatial)))
    return failure();
  if (spatial != 1)
    return node.error() << "attribute 'spatial' is 0: statistics per element "
                           "are not supported; newer opsets have none";
  return success();
}

static Types inferBatchNorm(BatchNorm &, NodeBinder &node) {
  SmallVector<Type> types = {node.type(0)};
  // Running statistics; before version 14 saved ones, too.
  for (unsigned i = 1; i < node.node.getNumResults(); ++i)
    types.push_back(node.type(i % 2 ? 3 : 4));
  return types;
}

static Values lowerBatchNorm(BatchNorm &norm, NodeBinder &node,
                             Emitter &emitter) {
  if (failed(node.attribute("epsilon", norm.epsilon)) ||
      failed(node.attribute("momentum", norm.momentum)) ||
      failed(node.attribute("training_mode", norm.training)))
    return failure();
  if (!(norm.epsilon >= 0))
    return node.badAttribute("epsilon", "a number that is not negative");
  for (unsigned i = 3; i < node.node.getNumResults(); ++i)
    if (!node.node.getResult(i).use_empty())
      return node.error() << "has a use of its saved statistics, which no "
                             "version since 14 has";
  auto op = nn::BatchNormOp::create(
      emitter.builder, emitter.loc, node.type(0), node.type(3), node.type(4),
      node.operand(0), node.operand(1), node.operand(2), node.operand(3),
      node.operand(4), APFloat(norm.momentum), APFloat(norm.epsilon),
      norm.training);
  SmallVector<Value> results = {op.getResult()};
  for (unsigned i = 1; i < node.node.getNumResults(); ++i)
    results.push_back(i % 2 ? op.getNextMean() : op.getNextVariance());
  return results;
}

void penstock::onnx::addBatchNormalization(OperatorTable &table) {
  table.add("BatchNormalization", {7, 9, 14, 15}, bound<inferBatchNorm>,
            nullptr, bound<lowerBatchNorm>);
  table.markOperands("BatchNormalization", &Operator::statistics, {3, 4});
}
