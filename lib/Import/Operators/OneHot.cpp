//===- OneHot.cpp - A vector per index ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One value at the index, another one everywhere else.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct OneHot {
  int64_t axis = -1, depth;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult OneHot::bind(NodeBinder &node) {
  if (failed(node.operands({"indices", "depth", "values"}, 3)) ||
      failed(node.requireNumber(0)) || failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0) + 1)))
    return failure();
  DenseElementsAttr constant = node.constant(1);
  if (!constant || constant.getNumElements() != 1)
    return node.error() << "operand 'depth' must be a constant scalar, it says "
                           "the size of the result";
  ConstantTensor tensor(constant);
  depth = tensor.isFloat() ? static_cast<int64_t>(tensor.floats[0])
                           : tensor.integers[0];
  if (depth < 0)
    return node.error() << "operand 'depth' is " << depth;
  if (node.shape(2) != ArrayRef<int64_t>({2}))
    return node.error() << "operand 'values' is " << node.type(2)
                        << ", it must have 2 elements: off and on";
  return success();
}

static Types inferOneHot(OneHot &hot, NodeBinder &node) {
  SmallVector<int64_t> shape(node.shape(0));
  shape.insert(shape.begin() + hot.axis, hot.depth);
  return node.makeType(shape, 2);
}

/// Counts of repetitions are written so: a one where an axis is repeated, and
/// the number there.
static Constants foldOneHot(OneHot &hot, NodeBinder &node) {
  if (!node.constant(0) || !node.constant(1) || !node.constant(2))
    return {};
  ConstantTensor indices(node.constant(0)), values(node.constant(2));
  if (indices.isFloat())
    return {};
  auto source = [&](ArrayRef<int64_t> index) -> int64_t {
    SmallVector<int64_t> from(index);
    from.erase(from.begin() + hot.axis);
    int64_t at = indices.integers[linearize(from, indices.shape())];
    return index[hot.axis] == (at < 0 ? at + hot.depth : at);
  };
  return values.gather(resultType(node).getShape(), source).pack();
}

static Values lowerOneHot(OneHot &hot, NodeBinder &node, Emitter &emitter) {
  SmallVector<int64_t> shape(node.shape(0));
  shape.insert(shape.begin() + hot.axis, 1);
  SmallVector<Value> operands = {emitter.reshape(node.operand(0), shape)};
  for (int64_t i : {0, 1})
    operands.push_back(
        emitter.reshape(emitter.slice(node.operand(2), {i}, {1}), {}));
  // An index out of range is hot nowhere.
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    OpBuilder &b = inside.builder;
    Type i64 = b.getI64Type();
    Value index = inside.cast(scalars[0], i64), zero = inside.scalar(i64, 0);
    Value wrapped = inside.add(index, inside.scalar(i64, hot.depth));
    index = inside.select(inside.less(index, zero), wrapped, index);
    Value here = linalg::IndexOp::create(b, inside.loc, hot.axis);
    here = arith::IndexCastOp::create(b, inside.loc, i64, here);
    return inside.select(inside.equal(here, index), scalars[2], scalars[1]);
  };
  return emitter.elementwise(resultType(node), operands, body);
}

void penstock::onnx::addOneHot(OperatorTable &table) {
  table.add("OneHot", {9, 11}, bound<inferOneHot>, bound<foldOneHot>,
            bound<lowerOneHot>);
}
