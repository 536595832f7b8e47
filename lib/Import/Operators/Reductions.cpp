//===- Reductions.cpp - ReduceSum and variants ----------------------------===//
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

template <Kind kind>
static Types inferReduction(Reduction &reduction, NodeBinder &node) {
  bool needsFloat = kind == Kind::L2 || kind == Kind::LogSum;
  if (!isOfBool(kind, node) &&
      failed(needsFloat ? node.requireFloat(0) : node.requireArithmetic(0)))
    return failure();
  return node.makeType(reduction.result);
}

/// Emits the function of an element that is summed.
static Value prepare(Kind kind, Emitter &emitter, Value x) {
  switch (kind) {
  case Kind::SumSquare:
  case Kind::L2:
    return emitter.mul(x, x);
  case Kind::L1:
    if (isa<FloatType>(x.getType()))
      return emitter.make<math::AbsFOp>(x);
    return emitter.make<math::AbsIOp>(x);
  default:
    return x;
  }
}

static Value combine(Kind kind, Emitter &emitter, Value sum, Value x) {
  if (x.getType().isInteger(1)) {
    if (kind == Kind::Max)
      return emitter.any(sum, x);
    return emitter.both(sum, x);
  }
  if (kind == Kind::Max)
    return emitter.max(sum, x);
  if (kind == Kind::Min)
    return emitter.min(sum, x);
  if (kind == Kind::Prod)
    return emitter.mul(sum, x);
  return emitter.add(sum, prepare(kind, emitter, x));
}

/// Returns the result of a reduction of no elements.
static Value neutral(Kind kind, Emitter &emitter, Type element) {
  if (element.isInteger(1))
    return emitter.scalar(element, kind == Kind::Min);
  if (kind == Kind::Max)
    return emitter.lowest(element);
  if (kind == Kind::Min)
    return emitter.highest(element);
  return emitter.scalar(element, kind == Kind::Prod);
}

/// Emits the function of the sum of a row of `count` elements.
static Value finish(Kind kind, Emitter &emitter, Value sum, int64_t count) {
  Type type = sum.getType();
  if (kind == Kind::Mean)
    return emitter.div(sum, emitter.scalar(type, count));
  if (kind == Kind::LogSum)
    return emitter.make<math::LogOp>(sum);
  // At the zero vector, the derivative of a norm is zero by convention; that of
  // the root alone is infinite.
  Value zero = emitter.scalar(type, 0);
  Value isZero = emitter.equal(sum, zero);
  Value other = emitter.select(isZero, emitter.scalar(type, 1), sum);
  Value root = emitter.make<math::SqrtOp>(other);
  return emitter.select(isZero, zero, root);
}

template <Kind kind>
static Values lowerReduction(Reduction &reduction, NodeBinder &node,
                             Emitter &emitter) {
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
        emitter.elementwise(Emitter::getType(value), value,
                            [&](Emitter &inside, ArrayRef<Value> scalars) {
                              return finish(kind, inside, scalars[0], count);
                            });
  return emitter.reshape(value, reduction.result);
}

/// The reductions of integers that sizes are computed with.
template <Kind kind>
static Constants foldReduction(Reduction &reduction, NodeBinder &node) {
  if (!node.constant(0) || !node.elementType(0).isSignlessInteger() ||
      node.elementType(0).isInteger(1))
    return {};
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
  return to.pack().reshape(RankedTensorType::get(reduction.result, element));
}

//===--- ReduceLogSumExp ---===//

static Types inferLogSumExp(Reduction &reduction, NodeBinder &node) {
  if (failed(node.requireFloat(0)))
    return failure();
  return node.makeType(reduction.result);
}

static Values lowerLogSumExp(Reduction &reduction, NodeBinder &node,
                             Emitter &emitter) {
  Value value = node.operand(0);
  // Of one element, it is that element; of none, the logarithm of 0.
  if (node.type(0).getNumElements() == 0)
    value = emitter.filled(node.makeType(reduction.result),
                           emitter.lowest(node.elementType(0)));
  else if (!reduction.axes.empty())
    value = emitter.make<nn::LogSumExpOp>(value, reduction.axes);
  return emitter.reshape(value, reduction.result);
}

template <Kind kind, int64_t inputSince = 18>
static void addReduction(OperatorTable &table, StringRef name,
                         std::initializer_list<int64_t> sinces,
                         Operator::FoldFn fold = nullptr) {
  table.add(name, sinces, bound<inferReduction<kind>, inputSince>, fold,
            bound<lowerReduction<kind>, inputSince>);
}

void penstock::onnx::addReductions(OperatorTable &table) {
  addReduction<Kind::Sum, 13>(table, "ReduceSum", {1, 11, 13},
                              bound<foldReduction<Kind::Sum>, 13>);
  addReduction<Kind::Mean>(table, "ReduceMean", {1, 11, 13, 18});
  addReduction<Kind::SumSquare>(table, "ReduceSumSquare", {1, 11, 13, 18});
  addReduction<Kind::L1>(table, "ReduceL1", {1, 11, 13, 18});
  addReduction<Kind::L2>(table, "ReduceL2", {1, 11, 13, 18});
  addReduction<Kind::LogSum>(table, "ReduceLogSum", {1, 11, 13, 18});
  addReduction<Kind::Prod>(table, "ReduceProd", {1, 11, 13, 18},
                           bound<foldReduction<Kind::Prod>, 18>);
  table.add("ReduceLogSumExp", {1, 11, 13, 18}, bound<inferLogSumExp, 18>,
            nullptr, bound<lowerLogSumExp, 18>);
  addReduction<Kind::Max>(table, "ReduceMax", {1, 11, 12, 13, 18, 20},
                          bound<foldReduction<Kind::Max>, 18>);
  addReduction<Kind::Min>(table, "ReduceMin", {1, 11, 12, 13, 18, 20},
                          bound<foldReduction<Kind::Min>, 18>);
}
