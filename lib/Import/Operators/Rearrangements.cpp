//===- Rearrangements.cpp - Tile, DepthToSpace and their kin --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators whose every element is at a place that the shapes say: reshapes,
// broadcasts and transpositions. Trilu and EyeLike compare indices.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- Tile ---===//

static LogicalResult bindTile(NodeBinder &node, SmallVector<int64_t> &repeats) {
  if (failed(node.operands({"input", "repeats"}, 2)) ||
      failed(node.constantIntegers(1, repeats)))
    return failure();
  if (static_cast<int64_t>(repeats.size()) != node.rank(0))
    return node.error() << "operand 'repeats' has " << repeats.size()
                        << " elements, it must have one for each axis of "
                        << node.type(0);
  for (int64_t count : repeats)
    if (count < 0)
      return node.error() << "operand 'repeats' has the number " << count;
  return success();
}

static LogicalResult inferTile(NodeBinder &node, Types &types) {
  SmallVector<int64_t> repeats;
  if (failed(bindTile(node, repeats)))
    return failure();
  SmallVector<int64_t> shape(node.shape(0));
  for (auto [size, count] : llvm::zip_equal(shape, repeats))
    size *= count;
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

/// What of an element is at `source(index)` of a constant.
static LogicalResult foldTile(NodeBinder &node, Constants &results) {
  SmallVector<int64_t> repeats;
  if (!node.constant(0))
    return success();
  if (failed(bindTile(node, repeats)))
    return failure();
  ConstantTensor tensor(node.constant(0));
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from;
    for (auto [i, size] : llvm::zip_equal(index, tensor.shape()))
      from.push_back(i % size);
    return linearize(from, tensor.shape());
  };
  results.push_back(tensor.gather(resultType(node).getShape(), source).pack());
  return success();
}

/// Each repeated axis is broadcast along one before it.
static LogicalResult lowerTile(NodeBinder &node, OpBuilder &builder,
                               Values &results) {
  SmallVector<int64_t> repeats;
  if (failed(bindTile(node, repeats)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  SmallVector<int64_t> before, after;
  for (auto [size, count] : llvm::zip_equal(node.shape(0), repeats)) {
    if (count != 1) {
      before.push_back(1);
      after.push_back(count);
    }
    before.push_back(size);
    after.push_back(size);
  }
  Value value = emitter.reshape(node.operand(0), before);
  value = emitter.broadcast(value,
                            RankedTensorType::get(after, node.elementType(0)));
  results.push_back(emitter.reshape(value, resultType(node).getShape()));
  return success();
}

//===--- DepthToSpace, SpaceToDepth ---===//

static LogicalResult bindBlocks(NodeBinder &node, int64_t &block) {
  if (failed(node.operands({"input"}, 1)))
    return failure();
  if (node.rank(0) != 4)
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", it must have 4 axes: N, C, H, W";
  if (!node.hasAttribute("blocksize"))
    return node.error() << "attribute 'blocksize' is missing";
  if (failed(node.attribute("blocksize", block)))
    return failure();
  if (block < 1)
    return node.badAttribute("blocksize", "at least 1");
  return success();
}

static LogicalResult inferDepthToSpace(NodeBinder &node, Types &types) {
  int64_t block = 0;
  std::string mode = "DCR";
  if (failed(bindBlocks(node, block)) || failed(node.attribute("mode", mode)))
    return failure();
  if (mode != "DCR" && mode != "CRD")
    return node.badAttribute("mode", "\"DCR\" or \"CRD\"");
  ArrayRef<int64_t> shape = node.shape(0);
  if (shape[1] % (block * block))
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", its channels do not divide into blocks of "
                        << block * block;
  types.push_back(RankedTensorType::get({shape[0], shape[1] / (block * block),
                                         shape[2] * block, shape[3] * block},
                                        node.elementType(0)));
  return success();
}

static LogicalResult lowerDepthToSpace(NodeBinder &node, OpBuilder &builder,
                                       Values &results) {
  int64_t block = 0;
  std::string mode = "DCR";
  if (failed(bindBlocks(node, block)) || failed(node.attribute("mode", mode)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t n = shape[0], c = shape[1] / (block * block), h = shape[2],
          w = shape[3];
  Value value;
  if (mode == "DCR") {
    value = emitter.reshape(node.operand(0), {n, block, block, c, h, w});
    value = emitter.transpose(value, {0, 3, 4, 1, 5, 2});
  } else {
    value = emitter.reshape(node.operand(0), {n, c, block, block, h, w});
    value = emitter.transpose(value, {0, 1, 4, 2, 5, 3});
  }
  results.push_back(emitter.reshape(value, resultType(node).getShape()));
  return success();
}

static LogicalResult inferSpaceToDepth(NodeBinder &node, Types &types) {
  int64_t block = 0;
  if (failed(bindBlocks(node, block)))
    return failure();
  if (node.hasAttribute("mode"))
    return node.error() << "attribute 'mode' is of a later version; transpose "
                           "instead";
  ArrayRef<int64_t> shape = node.shape(0);
  if (shape[2] % block || shape[3] % block)
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", which does not divide into blocks of " << block
                        << " by " << block;
  types.push_back(RankedTensorType::get(
      {shape[0], shape[1] * block * block, shape[2] / block, shape[3] / block},
      node.elementType(0)));
  return success();
}

static LogicalResult lowerSpaceToDepth(NodeBinder &node, OpBuilder &builder,
                                       Values &results) {
  int64_t block = 0;
  if (failed(bindBlocks(node, block)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  ArrayRef<int64_t> shape = node.shape(0);
  Value value =
      emitter.reshape(node.operand(0), {shape[0], shape[1], shape[2] / block,
                                        block, shape[3] / block, block});
  value = emitter.transpose(value, {0, 3, 5, 1, 2, 4});
  results.push_back(emitter.reshape(value, resultType(node).getShape()));
  return success();
}

//===--- Trilu, EyeLike ---===//

/// Column minus row of the current element of a matrix, the last two axes.
static Value emitDiagonal(Emitter &emitter, int64_t rank) {
  OpBuilder &builder = emitter.builder;
  Value column = linalg::IndexOp::create(builder, emitter.loc, rank - 1);
  Value row = linalg::IndexOp::create(builder, emitter.loc, rank - 2);
  Value diagonal = arith::SubIOp::create(builder, emitter.loc, column, row);
  return arith::IndexCastOp::create(builder, emitter.loc, builder.getI64Type(),
                                    diagonal);
}

static LogicalResult bindTrilu(NodeBinder &node, int64_t &k, bool &upper) {
  SmallVector<int64_t> values;
  upper = true;
  k = 0;
  if (failed(node.operands({"input", "k"}, 1)) ||
      (node.has(1) && failed(node.constantIntegers(1, values))) ||
      failed(node.attribute("upper", upper)))
    return failure();
  if (node.rank(0) < 2)
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", it must have at least 2 axes";
  if (values.size() > 1)
    return node.error() << "operand 'k' is " << node.type(1)
                        << ", it must be one integer";
  if (!values.empty())
    k = values[0];
  return success();
}

static LogicalResult inferTrilu(NodeBinder &node, Types &types) {
  int64_t k;
  bool upper;
  if (failed(bindTrilu(node, k, upper)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

static LogicalResult foldTrilu(NodeBinder &node, Constants &results) {
  int64_t k;
  bool upper;
  if (!node.constant(0))
    return success();
  if (failed(bindTrilu(node, k, upper)))
    return failure();
  ConstantTensor tensor(node.constant(0));
  int64_t position = 0;
  forEachIndex(tensor.shape(), [&](ArrayRef<int64_t> index) {
    int64_t diagonal = index.back() - index[index.size() - 2];
    bool kept = upper ? diagonal >= k : diagonal <= k;
    if (!kept && tensor.isFloat())
      tensor.floats[position] = 0;
    else if (!kept)
      tensor.integers[position] = 0;
    ++position;
  });
  results.push_back(tensor.pack());
  return success();
}

static LogicalResult lowerTrilu(NodeBinder &node, OpBuilder &builder,
                                Values &results) {
  int64_t k;
  bool upper;
  if (failed(bindTrilu(node, k, upper)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    Value diagonal = emitDiagonal(inside, node.rank(0));
    Value limit = arith::ConstantOp::create(
        inside.builder, inside.loc, inside.builder.getI64IntegerAttr(k));
    Value kept = arith::CmpIOp::create(inside.builder, inside.loc,
                                       upper ? arith::CmpIPredicate::sge
                                             : arith::CmpIPredicate::sle,
                                       diagonal, limit);
    return inside.select(kept, scalars[0],
                         inside.scalar(scalars[0].getType(), 0));
  };
  results.push_back(emitter.elementwise(node.type(0), node.operand(0), body));
  return success();
}

static LogicalResult inferEyeLike(NodeBinder &node, Types &types) {
  std::optional<int64_t> dtype;
  int64_t k = 0;
  if (failed(node.operands({"input"}, 1)) ||
      failed(node.attribute("dtype", dtype)) || failed(node.attribute("k", k)))
    return failure();
  if (node.rank(0) != 2)
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", it must be a matrix";
  Type element =
      dtype ? getElementType(node.getContext(), *dtype) : node.elementType(0);
  if (!element)
    return node.error() << "attribute 'dtype' is the element type " << *dtype
                        << ", which is not supported; float, double, float16, "
                           "bfloat16, bool and integers are";
  types.push_back(RankedTensorType::get(node.shape(0), element));
  return success();
}

static LogicalResult lowerEyeLike(NodeBinder &node, OpBuilder &builder,
                                  Values &results) {
  int64_t k = 0;
  (void)node.attribute("k", k);
  Emitter emitter(builder, node.getLoc());
  RankedTensorType type = resultType(node);
  auto body = [&](Emitter &inside, ArrayRef<Value>) -> Value {
    Value here = emitDiagonal(inside, 2);
    Value wanted = arith::ConstantOp::create(
        inside.builder, inside.loc, inside.builder.getI64IntegerAttr(k));
    Type element = Emitter::computedType(type.getElementType());
    return inside.select(inside.equal(here, wanted), inside.scalar(element, 1),
                         inside.scalar(element, 0));
  };
  results.push_back(emitter.elementwise(type, {}, body));
  return success();
}

//===--- NonZero ---===//

/// How many there are depends on the data.
static LogicalResult bindNonZero(NodeBinder &node,
                                 SmallVector<SmallVector<int64_t>> &indices) {
  if (failed(node.operands({"X"}, 1)))
    return failure();
  DenseElementsAttr constant = node.constant(0);
  if (!constant)
    return node.error() << "operand 'X' must be constant when the model is "
                           "compiled, as it says the size of the result; mask "
                           "with Where or a product instead";
  ConstantTensor tensor(constant);
  indices.resize(node.rank(0));
  int64_t position = 0;
  forEachIndex(tensor.shape(), [&](ArrayRef<int64_t> index) {
    bool found = tensor.isFloat() ? tensor.floats[position] != 0
                                  : tensor.integers[position] != 0;
    ++position;
    if (found)
      for (auto [list, i] : llvm::zip_equal(indices, index))
        list.push_back(i);
  });
  return success();
}

static LogicalResult inferNonZero(NodeBinder &node, Types &types) {
  SmallVector<SmallVector<int64_t>> indices;
  if (failed(bindNonZero(node, indices)))
    return failure();
  int64_t count =
      indices.empty() ? 0 : static_cast<int64_t>(indices.front().size());
  types.push_back(RankedTensorType::get(
      {node.rank(0), count}, IntegerType::get(node.getContext(), 64)));
  return success();
}

static LogicalResult foldNonZero(NodeBinder &node, Constants &results) {
  SmallVector<SmallVector<int64_t>> indices;
  if (failed(bindNonZero(node, indices)))
    return failure();
  SmallVector<int64_t> all;
  for (ArrayRef<int64_t> list : indices)
    llvm::append_range(all, list);
  results.push_back(
      DenseElementsAttr::get(resultType(node), ArrayRef<int64_t>(all)));
  return success();
}

static LogicalResult lowerNonZero(NodeBinder &node, OpBuilder &builder,
                                  Values &results) {
  SmallVector<DenseElementsAttr> constants;
  if (failed(foldNonZero(node, constants)))
    return failure();
  results.push_back(Emitter(builder, node.getLoc()).constant(constants[0]));
  return success();
}

void penstock::onnx::addRearrangements(OperatorTable &table) {
  table.add("Tile", {6, 13}, inferTile, foldTile, lowerTile);
  table.add("DepthToSpace", {1, 11, 13}, inferDepthToSpace, nullptr,
            lowerDepthToSpace);
  table.add("SpaceToDepth", {1, 13}, inferSpaceToDepth, nullptr,
            lowerSpaceToDepth);
  table.add("Trilu", {14}, inferTrilu, foldTrilu, lowerTrilu);
  table.add("EyeLike", {9, 22}, inferEyeLike, nullptr, lowerEyeLike,
            Operator::Inactive);
  table.add("NonZero", {9, 13}, inferNonZero, foldNonZero, lowerNonZero,
            Operator::Inactive);
  table.markOperands("NonZero", &Operator::extents, {0});
}
