//===- VectorNormalizations.cpp - Those without parameters ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MeanVarianceNormalization, LpNormalization and LRN: sums over some axes or
// neighboring channels, and a division. They are made of elementwise ops and
// reductions.
//===----------------------------------------------------------------------===//

#include "Normalizations.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- MeanVarianceNormalization ---===//

namespace {
struct MeanVariance {
  SmallVector<int64_t> axes = {0, 2, 3};
  LogicalResult bind(NodeBinder &node) {
    return success(
        succeeded(node.operands({"X"}, 1)) && succeeded(node.requireFloat(0)) &&
        succeeded(node.attribute("axes", axes)) &&
        succeeded(node.normalizeAxes("attribute 'axes'", axes, node.rank(0))));
  }
};
} // namespace

/// (x - mean) / (deviation + 1e-9), the deviation from squared differences.
static Values lowerMeanVariance(MeanVariance &norm, NodeBinder &node,
                                Emitter &emitter) {
  RankedTensorType type = node.type(0);
  Type element = type.getElementType();
  SmallVector<int64_t> kept(type.getShape());
  double count = 1;
  for (int64_t axis : norm.axes) {
    count *= static_cast<double>(kept[axis]);
    kept[axis] = 1;
  }
  auto mean = [&](Value value) {
    Value sum = emitter.reduce(value, norm.axes, emitter.scalar(element, 0),
                               &Emitter::add);
    Value result = emitter.elementwise(
        Emitter::getType(sum), sum,
        [&](Emitter &inside, ArrayRef<Value> scalars) {
          return inside.div(scalars[0], inside.scalar(element, count));
        });
    return emitter.reshape(result, kept);
  };
  Value centered = emitter.elementwise(
      type, {node.operand(0), mean(node.operand(0))}, &Emitter::sub);
  Value variance = mean(emitter.elementwise(
      type, centered, [](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.mul(scalars[0], scalars[0]);
      }));
  return emitter.elementwise(
      type, {centered, variance},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value deviation = inside.make<math::SqrtOp>(scalars[1]);
        return inside.div(scalars[0],
                          inside.add(deviation, inside.scalar(element, 1e-9)));
      });
}

//===--- LpNormalization ---===//

namespace {
struct LpNorm {
  int64_t axis = -1, p = 2;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult LpNorm::bind(NodeBinder &node) {
  if (failed(node.operands({"input"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))) ||
      failed(node.attribute("p", p)))
    return failure();
  if (p != 1 && p != 2)
    return node.badAttribute("p", "1 or 2");
  return success();
}

/// x / norm; a vector of zeros, which has no direction, stays zero.
static Values lowerLpNorm(LpNorm &norm, NodeBinder &node, Emitter &emitter) {
  RankedTensorType type = node.type(0);
  Type element = type.getElementType();
  Value sum =
      emitter.reduce(node.operand(0), norm.axis, emitter.scalar(element, 0),
                     [&](Emitter &inside, ArrayRef<Value> scalars) {
                       Value x = scalars[1];
                       Value term = norm.p == 2 ? inside.mul(x, x)
                                                : inside.make<math::AbsFOp>(x);
                       return inside.add(scalars[0], term);
                     });
  // Where the norm is zero it is replaced before the root and the division, so
  // that the derivative is a number as well.
  Value length = emitter.elementwise(
      Emitter::getType(sum), sum,
      [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
        Value one = inside.scalar(element, 1);
        Value isZero = inside.equal(scalars[0], inside.scalar(element, 0));
        Value safe = inside.select(isZero, one, scalars[0]);
        if (norm.p == 1)
          return safe;
        return inside.make<math::SqrtOp>(safe);
      });
  SmallVector<int64_t> kept(type.getShape());
  kept[norm.axis] = 1;
  return emitter.elementwise(
      type, {node.operand(0), emitter.reshape(length, kept)}, &Emitter::div);
}

//===--- LRN ---===//

namespace {
struct LocalResponse {
  double alpha = 1e-4f, beta = 0.75, bias = 1;
  int64_t size = 0;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult LocalResponse::bind(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("alpha", alpha)) ||
      failed(node.attribute("beta", beta)) ||
      failed(node.attribute("bias", bias)) ||
      failed(node.attribute("size", size)))
    return failure();
  if (size < 1)
    return node.badAttribute("size", "a positive number of channels");
  if (node.rank(0) < 2)
    return node.error() << "operand 'X' is " << node.type(0)
                        << ", it must have the channels at axis 1";
  return success();
}

/// x / (bias + alpha/size * sum of squares over `size` channels around)^beta.
static Values lowerLocalResponse(LocalResponse &norm, NodeBinder &node,
                                 Emitter &emitter) {
  Type element = node.elementType(0);
  int64_t samples = node.shape(0)[0], channels = node.shape(0)[1];
  int64_t points = ShapedType::getNumElements(node.shape(0).drop_front(2));
  auto type = RankedTensorType::get({samples, channels, points}, element);
  Value x = emitter.reshape(node.operand(0), type.getShape());
  Value squares = emitter.elementwise(
      type, x, [](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.mul(scalars[0], scalars[0]);
      });
  // Zeros around the channels, then the window's channels side by side.
  int64_t before = (norm.size - 1) / 2, after = norm.size / 2;
  auto index = [&](int64_t value) -> OpFoldResult {
    return emitter.builder.getIndexAttr(value);
  };
  Value zero = emitter.scalar(element, 0);
  auto padded = RankedTensorType::get(
      {samples, channels + norm.size - 1, points}, element);
  if (norm.size > 1) {
    SmallVector<OpFoldResult> low = {index(0), index(before), index(0)};
    SmallVector<OpFoldResult> high = {index(0), index(after), index(0)};
    squares = emitter.make<tensor::PadOp>(padded, squares, low, high, zero);
  }
  SmallVector<Value> window = {x};
  for (int64_t i = 0; i < norm.size; ++i) {
    SmallVector<OpFoldResult> offsets = {index(0), index(i), index(0)};
    SmallVector<OpFoldResult> sizes = {index(samples), index(channels),
                                       index(points)};
    SmallVector<OpFoldResult> strides(3, index(1));
    window.push_back(emitter.make<tensor::ExtractSliceOp>(
        type, squares, offsets, sizes, strides));
  }
  Value result = emitter.elementwise(
      type, window, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value sum = scalars[1];
        for (Value square : scalars.drop_front(2))
          sum = inside.add(sum, square);
        double factor = norm.alpha / static_cast<double>(norm.size);
        Value base =
            inside.add(inside.scalar(element, norm.bias),
                       inside.mul(inside.scalar(element, factor), sum));
        Value power =
            inside.make<math::PowFOp>(base, inside.scalar(element, norm.beta));
        return inside.div(scalars[0], power);
      });
  return emitter.reshape(result, node.shape(0));
}

void penstock::onnx::addVectorNormalizations(OperatorTable &table) {
  table.add("MeanVarianceNormalization", {9, 13},
            bound<inferSame<MeanVariance>>, nullptr, bound<lowerMeanVariance>);
  table.add("LpNormalization", {1, 22}, bound<inferSame<LpNorm>>, nullptr,
            bound<lowerLpNorm>);
  table.add("LRN", {1, 13}, bound<inferSame<LocalResponse>>, nullptr,
            bound<lowerLocalResponse>);
}
