//===- Reductions.cpp - ReduceSum and its kin -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The axes are an attribute up to since-version 11 (ReduceSum) or 13 (the
// others), and an operand after. One linalg.generic reduces, one finishes.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

namespace {
enum class Kind { Sum, Mean, SumSquare, L1, L2, Max, Min };

struct Reduction {
  SmallVector<int64_t> axes;
  bool keepDims = true;
  SmallVector<int64_t> result;

  LogicalResult bind(NodeBinder &node, int64_t inputSince);
};
} // namespace

LogicalResult Reduction::bind(NodeBinder &node, int64_t inputSince) {
  bool axesAreOperand = node.getSince() >= inputSince;
  bool noop = false;
  std::optional<SmallVector<int64_t>> given;
  if (failed(axesAreOperand ? node.operands({"data", "axes"}, 1)
                            : node.operands({"data"}, 1)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.attribute("keepdims", keepDims)) ||
      failed(node.attribute("noop_with_empty_axes", noop)) ||
      failed(node.axes(inputSince, 1, given)))
    return failure();
  if (given && !given->empty()) {
    axes = *given;
    if (failed(node.normalizeAxes(axesAreOperand ? "operand 'axes'"
                                                 : "attribute 'axes'",
                                  axes, node.rank(0))))
      return failure();
  } else if (!noop) {
    llvm::append_range(axes, llvm::seq<int64_t>(0, node.rank(0)));
  }
  for (auto [d, size] : llvm::enumerate(node.shape(0))) {
    bool reduced = llvm::is_contained(axes, d);
    if (!reduced || keepDims)
      result.push_back(reduced ? 1 : size);
  }
  return success();
}

template <int64_t inputSince>
static LogicalResult inferReduction(NodeBinder &node, Types &types) {
  Reduction reduction;
  if (failed(reduction.bind(node, inputSince)))
    return failure();
  types.push_back(RankedTensorType::get(reduction.result, node.elementType(0)));
  return success();
}

/// What of an element is summed.
static Value prepare(Kind kind, Emitter &emitter, Value x) {
  switch (kind) {
  case Kind::SumSquare:
  case Kind::L2:
    return emitter.mul(x, x);
  case Kind::L1:
    if (isa<FloatType>(x.getType()))
      return math::AbsFOp::create(emitter.builder, emitter.loc, x);
    return math::AbsIOp::create(emitter.builder, emitter.loc, x);
  default:
    return x;
  }
}

static Value combine(Kind kind, Emitter &emitter, Value sum, Value x) {
  if (kind == Kind::Max)
    return emitter.max(sum, x);
  if (kind == Kind::Min)
    return emitter.min(sum, x);
  return emitter.add(sum, prepare(kind, emitter, x));
}

template <Kind kind, int64_t inputSince>
static LogicalResult lowerReduction(NodeBinder &node, OpBuilder &builder,
                                    Values &results) {
  Reduction reduction;
  if (failed(reduction.bind(node, inputSince)))
    return failure();
  if (kind == Kind::L2 && failed(node.requireFloat(0)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  RankedTensorType from = node.type(0);
  Type element = from.getElementType();
  Value value = node.operand(0);
  int64_t count = 1;
  for (int64_t axis : reduction.axes)
    count *= from.getDimSize(axis);

  // No axes leave the elements as they are, but for what is done to each.
  bool perElement =
      kind == Kind::SumSquare || kind == Kind::L1 || kind == Kind::L2;
  if (reduction.axes.empty()) {
    if (perElement)
      value = emitter.elementwise(from, value,
                                  [](Emitter &inside, ArrayRef<Value> scalars) {
                                    return prepare(kind, inside, scalars[0]);
                                  });
  } else {
    if ((kind == Kind::Max || kind == Kind::Min) && count == 0)
      return node.error() << "operand 'data' is " << from
                          << ": a maximum or minimum of no elements";
    Value neutral = kind == Kind::Max   ? emitter.lowest(element)
                    : kind == Kind::Min ? emitter.highest(element)
                                        : emitter.scalar(element, 0);
    value =
        emitter.reduce(value, reduction.axes, neutral,
                       [](Emitter &inside, ArrayRef<Value> scalars) {
                         return combine(kind, inside, scalars[0], scalars[1]);
                       });
  }
  bool isMean = kind == Kind::Mean && !reduction.axes.empty();
  if (isMean && count == 0 && !isa<FloatType>(element))
    return node.error() << "operand 'data' is " << from
                        << ": a mean of no integers";
  if (isMean || kind == Kind::L2)
    value = emitter.elementwise(
        Emitter::typeOf(value), value,
        [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
          if (kind == Kind::L2)
            return math::SqrtOp::create(inside.builder, inside.loc, scalars[0]);
          return inside.div(scalars[0], inside.scalar(element, count));
        });
  results.push_back(emitter.reshape(value, reduction.result));
  return success();
}

void penstock::onnx::addReductions(OperatorTable &table) {
  table.add("ReduceSum", {1, 11, 13}, inferReduction<13>, nullptr,
            lowerReduction<Kind::Sum, 13>);
  table.add("ReduceMean", {1, 11, 13, 18}, inferReduction<18>, nullptr,
            lowerReduction<Kind::Mean, 18>);
  table.add("ReduceSumSquare", {1, 11, 13, 18}, inferReduction<18>, nullptr,
            lowerReduction<Kind::SumSquare, 18>);
  table.add("ReduceL1", {1, 11, 13, 18}, inferReduction<18>, nullptr,
            lowerReduction<Kind::L1, 18>);
  table.add("ReduceL2", {1, 11, 13, 18}, inferReduction<18>, nullptr,
            lowerReduction<Kind::L2, 18>);
  table.add("ReduceMax", {1, 11, 12, 13, 18, 20}, inferReduction<18>, nullptr,
            lowerReduction<Kind::Max, 18>);
  table.add("ReduceMin", {1, 11, 12, 13, 18, 20}, inferReduction<18>, nullptr,
            lowerReduction<Kind::Min, 18>);
}
