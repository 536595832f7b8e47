//===- Selection.cpp - Compress, Unique and ReverseSequence ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements that are chosen or put in another order. Where the choice says the
// size of the result it must be constant; lengths of sequences may be data.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Indexing.h"
#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

#include <map>

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

static LogicalResult readAxis(NodeBinder &node, std::optional<int64_t> &axis) {
  if (failed(node.attribute("axis", axis)))
    return failure();
  return axis ? node.normalizeAxis("attribute 'axis'", *axis, node.rank(0))
              : success();
}

//===--- Compress ---===//

namespace {
struct Compress {
  std::optional<int64_t> axis;
  SmallVector<int64_t> positions;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Compress::bind(NodeBinder &node) {
  if (failed(node.operands({"input", "condition"}, 2)) ||
      failed(node.requireBool(1)) || failed(readAxis(node, axis)))
    return failure();
  DenseElementsAttr condition = node.constant(1);
  if (!condition)
    return node.error() << "operand 'condition' must be constant when the "
                           "model is compiled, as it says the size of the "
                           "result; mask with Where or a product instead";
  int64_t size = axis ? node.shape(0)[*axis] : node.type(0).getNumElements();
  if (node.rank(1) != 1 || node.shape(1)[0] > size)
    return node.error() << "operand 'condition' is " << node.type(1)
                        << ", it must be a list for at most " << size
                        << " elements";
  for (auto [i, isTaken] : llvm::enumerate(ConstantTensor(condition).integers))
    if (isTaken)
      positions.push_back(static_cast<int64_t>(i));
  return success();
}

static Types inferCompress(Compress &compress, NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (compress.axis)
    shape.assign(node.shape(0).begin(), node.shape(0).end());
  else
    shape.push_back(0);
  shape[compress.axis.value_or(0)] =
      static_cast<int64_t>(compress.positions.size());
  return node.makeType(shape);
}

static Values lowerCompress(Compress &compress, NodeBinder &node,
                            Emitter &emitter) {
  if (resultType(node).getNumElements() == 0)
    return emitter.empty(resultType(node));
  Value data = node.operand(0);
  if (!compress.axis)
    data = emitter.reshape(data, {node.type(0).getNumElements()});
  return emitTake(emitter, data, compress.axis.value_or(0), compress.positions);
}

//===--- Unique ---===//

namespace {
/// Slices along an axis, or elements: which are the first of their kind.
struct Unique {
  std::optional<int64_t> axis;
  bool isSorted = true;
  /// The first slice of each kind, in the order of the result; the kind that
  /// every slice equals; and the number of slices of each kind.
  SmallVector<int64_t> first, inverse, counts;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Unique::bind(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(readAxis(node, axis)) ||
      failed(node.attribute("sorted", isSorted)))
    return failure();
  DenseElementsAttr constant = node.constant(0);
  if (!constant)
    return node.error() << "operand 'X' must be constant when the model is "
                           "compiled, as it says the size of the result";
  ConstantTensor tensor(constant);
  SmallVector<int64_t> shape = {node.type(0).getNumElements()};
  if (axis)
    shape.assign(node.shape(0).begin(), node.shape(0).end());
  int64_t at = axis.value_or(0);
  // Doubles hold the floats, and the integers that differ below 2^53.
  std::map<std::vector<std::pair<double, int64_t>>, int64_t> kinds;
  for (int64_t i = 0; i < shape[at]; ++i) {
    SmallVector<int64_t> rest(shape);
    rest[at] = 1;
    std::vector<std::pair<double, int64_t>> slice;
    forEachIndex(rest, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from(index);
      from[at] = i;
      int64_t position = linearize(from, shape);
      slice.emplace_back(tensor.isFloat() ? tensor.floats[position] : 0,
                         tensor.isFloat() ? 0 : tensor.integers[position]);
    });
    for (auto [number, integer] : slice)
      if (number != number)
        return node.error() << "operand 'X' holds NaN, which equals nothing";
    auto [kind, isNew] =
        kinds.try_emplace(slice, static_cast<int64_t>(first.size()));
    if (isNew) {
      first.push_back(i);
      counts.push_back(0);
    }
    inverse.push_back(kind->second);
    ++counts[kind->second];
  }
  if (!isSorted)
    return success();
  SmallVector<int64_t> order(first.size()), oldFirst(first), oldCounts(counts);
  int64_t next = 0;
  for (const auto &[slice, kind] : kinds) {
    order[kind] = next;
    first[next] = oldFirst[kind];
    counts[next++] = oldCounts[kind];
  }
  for (int64_t &kind : inverse)
    kind = order[kind];
  return success();
}

static Types inferUnique(Unique &unique, NodeBinder &node) {
  auto count = static_cast<int64_t>(unique.first.size());
  SmallVector<int64_t> shape = {count};
  if (unique.axis) {
    shape.assign(node.shape(0).begin(), node.shape(0).end());
    shape[*unique.axis] = count;
  }
  Type i64 = IntegerType::get(node.getContext(), 64);
  SmallVector<Type> types = {node.makeType(shape)};
  const int64_t sizes[] = {count, static_cast<int64_t>(unique.inverse.size()),
                           count};
  for (unsigned i = 1; i < node.node.getNumResults() && i < 4; ++i)
    types.push_back(RankedTensorType::get({sizes[i - 1]}, i64));
  return types;
}

static Constants foldUnique(Unique &unique, NodeBinder &node) {
  ConstantTensor data(node.constant(0));
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index);
    int64_t &at = from[unique.axis.value_or(0)];
    at = unique.first[at];
    return unique.axis ? linearize(from, data.shape()) : at;
  };
  SmallVector<DenseElementsAttr> results = {
      data.gather(resultType(node).getShape(), source).pack()};
  const SmallVector<int64_t> *lists[] = {&unique.first, &unique.inverse,
                                         &unique.counts};
  for (unsigned i = 1; i < node.node.getNumResults(); ++i)
    results.push_back(DenseElementsAttr::get(resultType(node, i),
                                             ArrayRef<int64_t>(*lists[i - 1])));
  return results;
}

//===--- ReverseSequence ---===//

namespace {
struct ReverseSequence {
  int64_t time = 0, batch = 1;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult ReverseSequence::bind(NodeBinder &node) {
  if (failed(node.operands({"input", "sequence_lens"}, 2)) ||
      failed(node.requireInteger(1)) ||
      failed(node.attribute("time_axis", time)) ||
      failed(node.attribute("batch_axis", batch)))
    return failure();
  bool fits = node.rank(0) >= 2 && time + batch == 1 && time * batch == 0 &&
              node.shape(1) == ArrayRef<int64_t>({node.shape(0)[batch]});
  if (!fits)
    return node.error() << "has time_axis " << time << " and batch_axis "
                        << batch << ", which must be 0 and 1 or 1 and 0 of "
                        << node.type(0) << ", and lengths in " << node.type(1);
  return success();
}

static Values lowerReverse(ReverseSequence &reverse, NodeBinder &node,
                           Emitter &emitter) {
  auto [time, batch] = reverse;
  MLIRContext *context = node.getContext();
  int64_t rank = node.rank(0);
  // 1. Where each step comes from: the other end of its sequence, or itself.
  auto type = RankedTensorType::get(node.shape(0).take_front(2),
                                    emitter.builder.getI64Type());
  SmallVector<int64_t> column = {1, 1};
  column[batch] = type.getDimSize(batch);
  Value steps = emitter.elementwise(
      type, emitter.reshape(node.operand(1), column),
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        OpBuilder &b = inside.builder;
        Type i64 = b.getI64Type();
        Value step = arith::IndexCastOp::create(
            b, inside.loc, i64, linalg::IndexOp::create(b, inside.loc, time));
        Value length = inside.cast(scalars[0], i64);
        Value last = inside.sub(length, inside.scalar(i64, 1));
        return inside.select(inside.less(step, length), inside.sub(last, step),
                             step);
      });
  // 2. What is there.
  SmallVector<AffineExpr> at;
  for (int64_t d = 0; d < rank; ++d)
    at.push_back(d == time ? getAffineSymbolExpr(0, context)
                           : getAffineDimExpr(d, context));
  Attribute map = AffineMapAttr::get(emitter.map(rank, {0, 1}));
  return emitter.make<nn::GatherOp>(node.type(0), node.operand(0), steps,
                                    AffineMap::get(rank, 1, at, context),
                                    emitter.builder.getArrayAttr(map));
}

void penstock::onnx::addSelection(OperatorTable &table) {
  table.add("Compress", {9, 11}, bound<inferCompress>, nullptr,
            bound<lowerCompress>);
  table.add("Unique", {11}, bound<inferUnique>, bound<foldUnique>,
            lowerFolded<bound<foldUnique>>, Operator::Inactive);
  table.markOperands("Unique", &Operator::extents, {0});
  table.add("ReverseSequence", {10}, bound<inferSame<ReverseSequence>>, nullptr,
            bound<lowerReverse>);
}
