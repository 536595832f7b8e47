//===- OneHot.cpp - A vector per index ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One value at the index, another one everywhere else.
//===----------------------------------------------------------------------===//

#include "Indexing.h"

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

static LogicalResult bindOneHot(NodeBinder &node, int64_t &axis,
                                int64_t &depth) {
  axis = -1;
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

static LogicalResult inferOneHot(NodeBinder &node, Types &types) {
  int64_t axis, depth;
  if (failed(bindOneHot(node, axis, depth)))
    return failure();
  SmallVector<int64_t> shape(node.shape(0));
  shape.insert(shape.begin() + axis, depth);
  types.push_back(RankedTensorType::get(shape, node.elementType(2)));
  return success();
}

/// Counts of repetitions are written so: a one where an axis is repeated, and
/// the number there.
static LogicalResult foldOneHot(NodeBinder &node, Constants &results) {
  if (!node.constant(0) || !node.constant(1) || !node.constant(2))
    return success();
  int64_t axis, depth;
  if (failed(bindOneHot(node, axis, depth)))
    return failure();
  ConstantTensor indices(node.constant(0)), values(node.constant(2));
  if (indices.isFloat())
    return success();
  auto source = [&](ArrayRef<int64_t> index) -> int64_t {
    SmallVector<int64_t> from(index);
    from.erase(from.begin() + axis);
    int64_t hot = indices.integers[linearize(from, indices.shape())];
    return index[axis] == (hot < 0 ? hot + depth : hot);
  };
  results.push_back(values.gather(resultType(node).getShape(), source).pack());
  return success();
}

static LogicalResult lowerOneHot(NodeBinder &node, OpBuilder &builder,
                                 Values &results) {
  int64_t axis, depth;
  if (failed(bindOneHot(node, axis, depth)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  SmallVector<int64_t> shape(node.shape(0));
  shape.insert(shape.begin() + axis, 1);
  SmallVector<Value> operands = {emitter.reshape(node.operand(0), shape)};
  for (int64_t i : {0, 1})
    operands.push_back(emitter.reshape(
        emitSlice(emitter, node.operand(2), {i}, {1}, {1}), {}));
  // An index out of range is hot nowhere.
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    OpBuilder &b = inside.builder;
    Type i64 = b.getI64Type();
    Value index = inside.cast(scalars[0], i64), zero = inside.scalar(i64, 0);
    Value wrapped = inside.add(index, inside.scalar(i64, depth));
    index = inside.select(inside.less(index, zero), wrapped, index);
    Value here = linalg::IndexOp::create(b, inside.loc, axis);
    here = arith::IndexCastOp::create(b, inside.loc, i64, here);
    return inside.select(inside.equal(here, index), scalars[2], scalars[1]);
  };
  results.push_back(emitter.elementwise(resultType(node), operands, body));
  return success();
}

void penstock::onnx::addOneHot(OperatorTable &table) {
  table.add("OneHot", {9, 11}, inferOneHot, foldOneHot, lowerOneHot);
}
