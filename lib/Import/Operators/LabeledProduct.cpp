//===- LabeledProduct.cpp - Products with axes by name --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One linalg.contract per product, with the axes as they lie. Only where a
// matrix product could not address them by strides are they put in order first.
//===----------------------------------------------------------------------===//

#include "LabeledProduct.h"

using namespace mlir;
using namespace penstock::onnx;

int64_t Labeled::sizeOf(int64_t label) const {
  return Emitter::getShape(value)[llvm::find(labels, label) - labels.begin()];
}

static Value addition(Emitter &emitter, ArrayRef<Value> scalars) {
  return emitter.add(scalars[0], scalars[1]);
}

Labeled penstock::onnx::takeDiagonals(Emitter &emitter, Labeled operand) {
  int64_t rank = operand.labels.size();
  Labeled result;
  SmallVector<int64_t> dims, shape;
  SmallVector<std::pair<int64_t, int64_t>> equal;
  SmallVector<utils::IteratorType> iterators;
  for (auto [axis, label] : llvm::enumerate(operand.labels)) {
    int64_t first = llvm::find(operand.labels, label) - operand.labels.begin();
    bool isFirst = first == static_cast<int64_t>(axis);
    iterators.push_back(isFirst ? utils::IteratorType::parallel
                                : utils::IteratorType::reduction);
    if (!isFirst) {
      equal.emplace_back(first, axis);
      continue;
    }
    dims.push_back(axis);
    shape.push_back(Emitter::getShape(operand.value)[axis]);
    result.labels.push_back(label);
  }
  if (equal.empty())
    return operand;
  // The only term of the sum over the other axes that is not zero. So the maps
  // stay projections, and the derivative a product with the same condition.
  Type element = Emitter::getType(operand.value).getElementType();
  Value zeros = emitter.filled(RankedTensorType::get(shape, element),
                               emitter.scalar(element, 0));
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  result.value = emitter.generic(
      operand.value, zeros, {emitter.map(rank, all), emitter.map(rank, dims)},
      iterators, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value term = scalars[0];
        for (auto [a, b] : equal) {
          Value i = inside.make<linalg::IndexOp>(a);
          Value j = inside.make<linalg::IndexOp>(b);
          term = inside.select(inside.equal(i, j), term,
                               inside.scalar(element, 0));
        }
        return inside.add(scalars[1], term);
      });
  return result;
}

Labeled penstock::onnx::sumOthers(Emitter &emitter, Labeled operand,
                                  ArrayRef<int64_t> kept) {
  SmallVector<int64_t> axes, labels;
  for (auto [axis, label] : llvm::enumerate(operand.labels))
    if (llvm::is_contained(kept, label))
      labels.push_back(label);
    else
      axes.push_back(axis);
  if (axes.empty())
    return operand;
  Type element = Emitter::getType(operand.value).getElementType();
  return {
      emitter.reduce(operand.value, axes, emitter.scalar(element, 0), addition),
      labels};
}

Labeled penstock::onnx::reorder(Emitter &emitter, Labeled operand,
                                ArrayRef<int64_t> labels) {
  SmallVector<int64_t> order;
  for (int64_t label : labels)
    order.push_back(llvm::find(operand.labels, label) - operand.labels.begin());
  return {emitter.transpose(operand.value, order),
          SmallVector<int64_t>(labels)};
}

namespace {
/// The labels of a product by their role: in both operands and the result, in
/// one and the result, or summed over.
struct Roles {
  SmallVector<int64_t> batch, m, n, k;

  Roles(const Labeled &a, const Labeled &b, ArrayRef<int64_t> result) {
    for (int64_t label : result)
      (a.has(label) ? (b.has(label) ? batch : m) : n).push_back(label);
    for (int64_t label : a.labels)
      if (!llvm::is_contained(result, label))
        k.push_back(label);
  }
};
} // namespace

/// Returns true if `group` are neighbors in `labels`, in the same order: one
/// dimension for a matrix product.
static bool isOneDimension(ArrayRef<int64_t> group, ArrayRef<int64_t> labels) {
  if (group.size() < 2)
    return true;
  const auto *begin = llvm::find(labels, group.front());
  return static_cast<size_t>(labels.end() - begin) >= group.size() &&
         ArrayRef(begin, group.size()) == group;
}

static SmallVector<int64_t> joined(ArrayRef<int64_t> a, ArrayRef<int64_t> b,
                                   ArrayRef<int64_t> c) {
  SmallVector<int64_t> all(a);
  llvm::append_range(all, b);
  llvm::append_range(all, c);
  return all;
}

/// Drops the axes of size 1 that the other operand has larger.
static Labeled dropRepeated(Emitter &emitter, Labeled operand,
                            const Labeled &other) {
  Labeled result;
  SmallVector<int64_t> shape;
  for (auto [label, size] :
       llvm::zip(operand.labels, Emitter::getShape(operand.value))) {
    if (size == 1 && other.has(label) && other.sizeOf(label) != 1)
      continue;
    result.labels.push_back(label);
    shape.push_back(size);
  }
  result.value = emitter.reshape(operand.value, shape);
  return result;
}

Labeled penstock::onnx::multiply(Emitter &emitter, Labeled a, Labeled b,
                                 ArrayRef<int64_t> result) {
  Labeled fullB = b;
  b = dropRepeated(emitter, b, a);
  a = dropRepeated(emitter, a, fullB);
  // What one operand alone has and the result has not is summed first.
  auto withOther = [&](const Labeled &other) {
    return joined(result, other.labels, {});
  };
  SmallVector<int64_t> keptA = withOther(b), keptB = withOther(a);
  a = sumOthers(emitter, a, keptA);
  b = sumOthers(emitter, b, keptB);

  Roles roles(a, b, result);
  SmallVector<int64_t> order(result);
  bool ordered =
      isOneDimension(roles.m, a.labels) && isOneDimension(roles.m, result) &&
      isOneDimension(roles.n, b.labels) && isOneDimension(roles.n, result) &&
      isOneDimension(roles.k, a.labels) && isOneDimension(roles.k, b.labels);
  if (!ordered) {
    a = reorder(emitter, a, joined(roles.batch, roles.m, roles.k));
    b = reorder(emitter, b, joined(roles.batch, roles.k, roles.n));
    order = joined(roles.batch, roles.m, roles.n);
  }
  SmallVector<int64_t> loops = joined(order, roles.k, {});
  SmallVector<int64_t> shape;
  for (int64_t label : order)
    shape.push_back(a.has(label) ? a.sizeOf(label) : b.sizeOf(label));
  int64_t rank = loops.size();
  auto getMap = [&](ArrayRef<int64_t> labels) {
    SmallVector<int64_t> dims;
    for (int64_t label : labels)
      dims.push_back(llvm::find(loops, label) - loops.begin());
    return emitter.map(rank, dims);
  };
  auto type =
      RankedTensorType::get(shape, Emitter::getType(a.value).getElementType());
  Labeled product{{}, order};
  if (!roles.k.empty()) {
    product.value =
        emitter.contract(a.value, b.value, type,
                         {getMap(a.labels), getMap(b.labels), getMap(order)});
  } else {
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    product.value =
        emitter.generic({a.value, b.value}, emitter.empty(type),
                        {getMap(a.labels), getMap(b.labels), getMap(order)},
                        iterators, &Emitter::mul);
  }
  return reorder(emitter, product, result);
}
