//===- GroupNormalization.cpp - GroupNormalization and InstanceNormalization
//===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a sample's channels in groups, or of each. The rows that are normalized
// are consecutive in memory.
//===----------------------------------------------------------------------===//

#include "Normalizations.h"
#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
/// x is [N, C, ...]; rows are the elements of a sample's group of channels.
struct ChannelNorm {
  double epsilon = 1e-5;
  int64_t groups, channels, points;
  /// The sizes that scale and bias have: one per group, or per channel.
  int64_t affine;
  Type stash;

  LogicalResult bind(NodeBinder &node, bool isInstance);
};
} // namespace

LogicalResult ChannelNorm::bind(NodeBinder &node, bool isInstance) {
  if (failed(isInstance ? node.operands({"input", "scale", "B"}, 3)
                        : node.operands({"X", "scale", "bias"}, 3)) ||
      failed(node.requireFloat(0)) || failed(bindEpsilon(node, epsilon)))
    return failure();
  if (node.rank(0) < 2)
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0)
                        << ", it must have the samples at axis 0 and the "
                           "channels at axis 1";
  channels = node.shape(0)[1];
  points = ShapedType::getNumElements(node.shape(0).drop_front(2));
  groups = affine = channels;
  stash = node.elementType(0);
  if (!isInstance) {
    if (!node.hasAttribute("num_groups"))
      return node.error() << "attribute 'num_groups' is missing";
    if (failed(node.attribute("num_groups", groups)))
      return failure();
    if (groups < 1 || channels % groups != 0)
      return node.badAttribute("num_groups", "a divisor of the " +
                                                 Twine(channels) + " channels");
    // Scale and bias became per channel at 21.
    if (node.getSince() < 21)
      affine = groups;
    else if (failed(bindStashType(node, stash)))
      return failure();
  }
  if (channels * points == 0)
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0) << ", and has nothing to normalize";
  for (unsigned i : {1u, 2u}) {
    if (failed(node.requireSameElementType(0, i)))
      return failure();
    if (node.shape(i) != ArrayRef<int64_t>({affine}))
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must have one number for "
                          << "each of the " << affine
                          << (affine == channels ? " channels" : " groups");
  }
  return success();
}

static Values lowerChannelNorm(ChannelNorm &norm, NodeBinder &node,
                               Emitter &emitter) {
  Type element = node.elementType(0), compute = widest(element, norm.stash);
  int64_t samples = node.shape(0)[0];
  int64_t rows = samples * norm.groups;
  int64_t size = norm.channels / norm.groups * norm.points;
  Value x =
      castTo(emitter, emitter.reshape(node.operand(0), {rows, size}), compute);
  Value normalized = nn::NormalizeOp::create(emitter.builder, emitter.loc, x,
                                             {1}, norm.epsilon)
                         .getResult();
  // [samples, groups or channels, the rest], scaled along the middle.
  int64_t rest = norm.channels * norm.points / norm.affine;
  Value parts = emitter.reshape(normalized, {samples, norm.affine, rest});
  auto column = [&](unsigned i) {
    return emitter.reshape(node.operand(i), {norm.affine, 1});
  };
  Value result = emitter.elementwise(
      RankedTensorType::get({samples, norm.affine, rest}, element),
      {parts, column(1), column(2)},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value scaled = inside.mul(scalars[0], inside.cast(scalars[1], compute));
        Value sum = inside.add(scaled, inside.cast(scalars[2], compute));
        return inside.cast(sum, element);
      });
  return emitter.reshape(result, node.shape(0));
}

void penstock::onnx::addGroupNormalization(OperatorTable &table) {
  table.add("GroupNormalization", {18, 21},
            bound<inferSame<ChannelNorm>, false>, nullptr,
            bound<lowerChannelNorm, false>);
  table.add("InstanceNormalization", {6, 22},
            bound<inferSame<ChannelNorm>, true>, nullptr,
            bound<lowerChannelNorm, true>);
}
