//===- Reductions.cpp - ReduceSum and its kin -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The axes are an attribute up to since-version 11 (ReduceSum) or 13 (the
// others), and an operand after. One linalg.generic reduces, one finishes.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
enum class Kind { Sum, Mean, SumSquare, L1, L2, LogSum, Prod, Max, Min };

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

/// Since 20, the extrema of truth values are theirs by "and" and "or".
static bool isOfBool(Kind kind, NodeBinder &node) {
  return (kind == Kind::Max || kind == Kind::Min) && node.getSince() >= 20 &&
         node.elementType(0).isInteger(1);
}

template <Kind kind, int64_t inputSince>
static LogicalResult inferReduction(NodeBinder &node, Types &types) {
  Reduction reduction;
  if (failed(reduction.bind(node, inputSince)))
    return failure();
  bool needsFloat = kind == Kind::L2 || kind == Kind::LogSum;
  if (!isOfBool(kind, node) &&
      failed(needsFloat ? node.requireFloat(0) : node.requireArithmetic(0)))
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
  if (x.getType().isInteger(1)) {
    if (kind == Kind::Max)
      return arith::OrIOp::create(emitter.builder, emitter.loc, sum, x);
    return arith::AndIOp::create(emitter.builder, emitter.loc, sum, x);
  }
  if (kind == Kind::Max)
    return emitter.max(sum, x);
  if (kind == Kind::Min)
    return emitter.min(sum, x);
  if (kind == Kind::Prod)
    return emitter.mul(sum, x);
  return emitter.add(sum, prepare(kind, emitter, x));
}

/// What a reduction of no elements gives.
static Value neutral(Kind kind, Emitter &emitter, Type element) {
  if (element.isInteger(1))
    return emitter.scalar(element, kind == Kind::Min);
  if (kind == Kind::Max)
    return emitter.lowest(element);
  if (kind == Kind::Min)
    return emitter.highest(element);
  return emitter.scalar(element, kind == Kind::Prod);
}

/// What is done to the sum of a row of `count` elements.
static Value finish(Kind kind, Emitter &emitter, Value sum, int64_t count) {
  Type type = sum.getType();
  if (kind == Kind::Mean)
    return emitter.div(sum, emitter.scalar(type, count));
  if (kind == Kind::LogSum)
    return math::LogOp::create(emitter.builder, emitter.loc, sum);
  // At the zero vector, the derivative of a norm is zero by convention; that of
  // the root alone is infinite.
  Value zero = emitter.scalar(type, 0);
  Value isZero = emitter.equal(sum, zero);
  Value other = emitter.select(isZero, emitter.scalar(type, 1), sum);
  Value root = math::SqrtOp::create(emitter.builder, emitter.loc, other);
  return emitter.select(isZero, zero, root);
}

template <Kind kind, int64_t inputSince>
static LogicalResult lowerReduction(NodeBinder &node, OpBuilder &builder,
                                    Values &results) {
  Reduction reduction;
  if (failed(reduction.bind(node, inputSince)))
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
  if (!reduction.axes.empty())
    value =
        emitter.reduce(value, reduction.axes, neutral(kind, emitter, element),
                       [](Emitter &inside, ArrayRef<Value> scalars) {
                         return combine(kind, inside, scalars[0], scalars[1]);
                       });
  else if (perElement)
    value = emitter.elementwise(from, value,
                                [](Emitter &inside, ArrayRef<Value> scalars) {
                                  return prepare(kind, inside, scalars[0]);
                                });
  bool isMean = kind == Kind::Mean && !reduction.axes.empty();
  if (isMean && count == 0 && !isa<FloatType>(element))
    return node.error() << "operand 'data' is " << from
                        << ": a mean of no integers";
  if (isMean || kind == Kind::L2 || kind == Kind::LogSum)
    value =
        emitter.elementwise(Emitter::typeOf(value), value,
                            [&](Emitter &inside, ArrayRef<Value> scalars) {
                              return finish(kind, inside, scalars[0], count);
                            });
  results.push_back(emitter.reshape(value, reduction.result));
  return success();
}

/// The reductions of integers that sizes are computed with.
template <Kind kind, int64_t inputSince>
static LogicalResult foldReduction(NodeBinder &node, Constants &results) {
  Reduction reduction;
  if (!node.constant(0) || !node.elementType(0).isSignlessInteger() ||
      node.elementType(0).isInteger(1))
    return success();
  if (failed(reduction.bind(node, inputSince)))
    return failure();
  ConstantTensor from(node.constant(0));
  SmallVector<int64_t> kept(from.shape());
  for (int64_t axis : reduction.axes)
    kept[axis] = 1;
  Type element = node.elementType(0);
  ConstantTensor to(RankedTensorType::get(kept, element));
  unsigned width = element.getIntOrFloatBitWidth();
  int64_t start = kind == Kind::Prod  ? 1
                  : kind == Kind::Max ? llvm::minIntN(width)
                  : kind == Kind::Min ? llvm::maxIntN(width)
                                      : 0;
  llvm::fill(to.integers, start);
  int64_t position = 0;
  forEachIndex(from.shape(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> where(index);
    for (int64_t axis : reduction.axes)
      where[axis] = 0;
    int64_t &sum = to.integers[linearize(where, kept)];
    int64_t next = from.integers[position++];
    auto a = static_cast<uint64_t>(sum), b = static_cast<uint64_t>(next);
    sum = kind == Kind::Prod  ? static_cast<int64_t>(a * b)
          : kind == Kind::Max ? std::max(sum, next)
          : kind == Kind::Min ? std::min(sum, next)
                              : static_cast<int64_t>(a + b);
  });
  results.push_back(
      to.pack().reshape(RankedTensorType::get(reduction.result, element)));
  return success();
}

//===--- ReduceLogSumExp ---===//

static LogicalResult inferLogSumExp(NodeBinder &node, Types &types) {
  Reduction reduction;
  if (failed(reduction.bind(node, 18)) || failed(node.requireFloat(0)))
    return failure();
  types.push_back(RankedTensorType::get(reduction.result, node.elementType(0)));
  return success();
}

static LogicalResult lowerLogSumExp(Reduction &reduction, NodeBinder &node,
                                    OpBuilder &builder, Values &results) {
  Emitter emitter(builder, node.getLoc());
  Value value = node.operand(0);
  // Of one element, it is that element; of none, the logarithm of 0.
  if (node.type(0).getNumElements() == 0)
    value = emitter.filled(
        RankedTensorType::get(reduction.result, node.elementType(0)),
        emitter.lowest(node.elementType(0)));
  else if (!reduction.axes.empty())
    value =
        nn::LogSumExpOp::create(builder, node.getLoc(), value, reduction.axes);
  results.push_back(emitter.reshape(value, reduction.result));
  return success();
}

template <Kind kind>
static void addReduction(OperatorTable &table, StringRef name) {
  table.add(name, {1, 11, 13, 18}, inferReduction<kind, 18>, nullptr,
            lowerReduction<kind, 18>);
}

void penstock::onnx::addReductions(OperatorTable &table) {
  table.add("ReduceSum", {1, 11, 13}, inferReduction<Kind::Sum, 13>,
            foldReduction<Kind::Sum, 13>, lowerReduction<Kind::Sum, 13>);
  addReduction<Kind::Mean>(table, "ReduceMean");
  addReduction<Kind::SumSquare>(table, "ReduceSumSquare");
  addReduction<Kind::L1>(table, "ReduceL1");
  addReduction<Kind::L2>(table, "ReduceL2");
  addReduction<Kind::LogSum>(table, "ReduceLogSum");
  table.add("ReduceProd", {1, 11, 13, 18}, inferReduction<Kind::Prod, 18>,
            foldReduction<Kind::Prod, 18>, lowerReduction<Kind::Prod, 18>);
  table.add("ReduceLogSumExp", {1, 11, 13, 18}, inferLogSumExp, nullptr,
            bound<lowerLogSumExp, 18>);
  table.add("ReduceMax", {1, 11, 12, 13, 18, 20}, inferReduction<Kind::Max, 18>,
            foldReduction<Kind::Max, 18>, lowerReduction<Kind::Max, 18>);
  table.add("ReduceMin", {1, 11, 12, 13, 18, 20}, inferReduction<Kind::Min, 18>,
            foldReduction<Kind::Min, 18>, lowerReduction<Kind::Min, 18>);
}
