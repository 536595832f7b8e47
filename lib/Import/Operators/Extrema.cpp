//===- Extrema.cpp - ArgMax, ArgMin, Hardmax, TopK, CumSum ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators along one axis that look for positions, or add up to them. Their
// indices have no derivative; the values of TopK are gathered by them, and so
// have the one of a gather.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Indexing.h"
#include "OperatorTable.h"
#include "SoftmaxAxis.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

//===--- ArgMax, ArgMin ---===//

namespace {
struct Argument {
  int64_t axis = 0;
  bool keepDims = true, selectLast = false;
  SmallVector<int64_t> result;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Argument::bind(NodeBinder &node) {
  if (failed(node.operands({"data"}, 1)) || failed(node.requireNumber(0)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.attribute("keepdims", keepDims)) ||
      failed(node.attribute("select_last_index", selectLast)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  if (node.shape(0)[axis] == 0)
    return node.error() << "operand 'data' is " << node.type(0)
                        << ": no element of axis " << axis
                        << " is the largest or smallest";
  for (auto [d, size] : llvm::enumerate(node.shape(0))) {
    bool reduced = static_cast<int64_t>(d) == axis;
    if (!reduced || keepDims)
      result.push_back(reduced ? 1 : size);
  }
  return success();
}

/// The first (or last) position of the extremum along `axis`, as i64. Two
/// passes, both of which vectorize: the extremum, then where it is. NaN is the
/// extremum of anything, as in numpy.
static Value emitPosition(Emitter &emitter, Value value, int64_t axis,
                          bool isMaximum, bool selectLast) {
  RankedTensorType type = Emitter::getType(value);
  // Unsigned integers are compared as wider signed ones.
  Type computed = Emitter::computedType(type.getElementType());
  if (computed != type.getElementType()) {
    type = RankedTensorType::get(type.getShape(), computed);
    // The conversion is elementwise's own.
    value = emitter.elementwise(
        type, value,
        [](Emitter &, ArrayRef<Value> scalars) { return scalars[0]; });
  }
  Value start =
      isMaximum ? emitter.lowest(computed) : emitter.highest(computed);
  Value extremum = emitter.reduce(
      value, axis, start, [&](Emitter &inside, ArrayRef<Value> scalars) {
        return isMaximum ? inside.max(scalars[0], scalars[1])
                         : inside.min(scalars[0], scalars[1]);
      });
  int64_t rank = type.getRank();
  SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  others.erase(others.begin() + axis);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators[axis] = utils::IteratorType::reduction;
  Type i64 = emitter.builder.getI64Type();
  Value none = selectLast ? emitter.lowest(i64) : emitter.highest(i64);
  Value out = emitter.filled(
      RankedTensorType::get(Emitter::getShape(extremum), i64), none);
  AffineMap identity =
      AffineMap::getMultiDimIdentityMap(rank, emitter.getContext());
  AffineMap reduced = emitter.map(rank, others);
  return emitter.generic(
      {value, extremum}, out, {identity, reduced, reduced}, iterators,
      [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
        OpBuilder &b = inside.builder;
        Value found = inside.equal(scalars[0], scalars[1]);
        if (isa<FloatType>(scalars[0].getType())) {
          Value isNaN = arith::CmpFOp::create(
              b, inside.loc, arith::CmpFPredicate::UNO, scalars[0], scalars[0]);
          found = arith::OrIOp::create(b, inside.loc, found, isNaN);
        }
        Value index = linalg::IndexOp::create(b, inside.loc, axis);
        index = arith::IndexCastOp::create(b, inside.loc, i64, index);
        index = inside.select(found, index, none);
        return selectLast ? inside.max(scalars[2], index)
                          : inside.min(scalars[2], index);
      });
}

static Types inferArgument(Argument &argument, NodeBinder &node) {
  return RankedTensorType::get(argument.result,
                               IntegerType::get(node.getContext(), 64));
}

template <bool isMaximum>
static Values lowerArgument(Argument &argument, NodeBinder &node,
                            Emitter &emitter) {
  Value position = emitPosition(emitter, node.operand(0), argument.axis,
                                isMaximum, argument.selectLast);
  return emitter.reshape(position, argument.result);
}

//===--- Hardmax ---===//

/// 1 at the first maximum, 0 elsewhere.
static Values lowerHardmax(SoftmaxAxis &along, NodeBinder &node,
                           Emitter &emitter) {
  Value input = emitter.reshape(node.operand(0), along.shape);
  Value position = emitPosition(emitter, input, along.axis, /*isMaximum=*/true,
                                /*selectLast=*/false);
  SmallVector<int64_t> kept(along.shape);
  kept[along.axis] = 1;
  position = emitter.reshape(position, kept);
  Value result = emitter.elementwise(
      Emitter::getType(input), position,
      [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
        OpBuilder &b = inside.builder;
        Value index = linalg::IndexOp::create(b, inside.loc, along.axis);
        index =
            arith::IndexCastOp::create(b, inside.loc, b.getI64Type(), index);
        Type element = node.elementType(0);
        return inside.select(inside.equal(index, scalars[0]),
                             inside.scalar(element, 1),
                             inside.scalar(element, 0));
      });
  return emitter.reshape(result, node.shape(0));
}

//===--- TopK ---===//

namespace {
struct TopK {
  int64_t axis = -1, k = 0;
  bool largest = true, sorted = true;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

/// The number is an attribute in version 1 and an operand after.
LogicalResult TopK::bind(NodeBinder &node) {
  bool isOperand = node.getSince() >= 10;
  if (failed(isOperand ? node.operands({"X", "K"}, 2)
                       : node.operands({"X"}, 1)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.attribute("largest", largest)) ||
      failed(node.attribute("sorted", sorted)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  if (isOperand) {
    SmallVector<int64_t> values;
    if (failed(node.constantIntegers(1, values)))
      return failure();
    if (values.size() != 1)
      return node.error() << "operand 'K' is " << node.type(1)
                          << ", it must be one integer";
    k = values[0];
  } else {
    if (!node.hasAttribute("k"))
      return node.error() << "attribute 'k' is missing";
    if (failed(node.attribute("k", k)))
      return failure();
  }
  if (k < 0 || k > node.shape(0)[axis])
    return node.error() << "takes " << k << " elements of axis " << axis
                        << ", which has " << node.shape(0)[axis];
  return success();
}

static Types inferTopK(TopK &topK, NodeBinder &node) {
  SmallVector<int64_t> shape(node.shape(0));
  shape[topK.axis] = topK.k;
  if (node.node.getNumResults() < 2)
    return node.makeType(shape);
  return {
      node.makeType(shape),
      RankedTensorType::get(shape, IntegerType::get(node.getContext(), 64))};
}

static Values lowerTopK(TopK &topK, NodeBinder &node, Emitter &emitter) {
  SmallVector<int64_t> shape(node.shape(0));
  shape[topK.axis] = topK.k;
  auto type = RankedTensorType::get(shape, emitter.builder.getI64Type());
  Value indices = emitter.make<nn::TopKOp>(type, node.operand(0), topK.axis,
                                           /*smallest=*/!topK.largest);
  Value values =
      emitGatherElements(emitter, node.operand(0), indices, topK.axis);
  if (node.node.getNumResults() < 2)
    return values;
  return {values, indices};
}

//===--- CumSum ---===//

namespace {
struct CumSum {
  int64_t axis;
  bool exclusive = false, reverse = false;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult CumSum::bind(NodeBinder &node) {
  SmallVector<int64_t> axes;
  if (failed(node.operands({"x", "axis"}, 2)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.constantIntegers(1, axes)) ||
      failed(node.attribute("exclusive", exclusive)) ||
      failed(node.attribute("reverse", reverse)))
    return failure();
  if (axes.size() != 1)
    return node.error() << "operand 'axis' is " << node.type(1)
                        << ", it must be one integer";
  axis = axes[0];
  return node.normalizeAxis("operand 'axis'", axis, node.rank(0));
}

static Values lowerCumSum(CumSum &sum, NodeBinder &node, Emitter &emitter) {
  return emitter.make<nn::CumulativeSumOp>(node.operand(0), sum.axis,
                                           sum.exclusive, sum.reverse);
}

void penstock::onnx::addExtrema(OperatorTable &table) {
  table.add("ArgMax", {1, 11, 12, 13}, bound<inferArgument>, nullptr,
            bound<lowerArgument<true>>, Operator::Inactive);
  table.add("ArgMin", {1, 11, 12, 13}, bound<inferArgument>, nullptr,
            bound<lowerArgument<false>>, Operator::Inactive);
  table.add("Hardmax", {1, 11, 13}, bound<inferSame<SoftmaxAxis>>, nullptr,
            bound<lowerHardmax>, Operator::Inactive);
  table.add("TopK", {1, 10, 11}, bound<inferTopK>, nullptr, bound<lowerTopK>);
  table.add("CumSum", {11, 14}, bound<inferSame<CumSum>>, nullptr,
            bound<lowerCumSum>);
}
