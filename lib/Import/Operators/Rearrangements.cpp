//===- Rearrangements.cpp - Tile, DepthToSpace and variants ---------------===//
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

namespace {
struct Tile {
  SmallVector<int64_t> repeats, result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Tile::bind(NodeBinder &node) {
  if (failed(node.operands({"input", "repeats"}, 2)) ||
      failed(node.constantIntegers(1, repeats)))
    return failure();
  if (static_cast<int64_t>(repeats.size()) != node.rank(0))
    return node.error() << "operand 'repeats' has " << repeats.size()
                        << " elements, it must have one for each axis of "
                        << node.type(0);
  for (auto [size, count] : llvm::zip_equal(node.shape(0), repeats)) {
    if (count < 0)
      return node.error() << "operand 'repeats' has the number " << count;
    result.push_back(size * count);
  }
  return success();
}

static Constants foldTile(Tile &, NodeBinder &node) {
  if (!node.constant(0))
    return {};
  ConstantTensor tensor(node.constant(0));
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from;
    for (auto [i, size] : llvm::zip_equal(index, tensor.shape()))
      from.push_back(i % size);
    return linearize(from, tensor.shape());
  };
  return tensor.gather(resultType(node).getShape(), source).pack();
}

/// Each repeated axis is broadcast along one before it.
static Values lowerTile(Tile &tile, NodeBinder &node, Emitter &emitter) {
  SmallVector<int64_t> before, after;
  for (auto [size, count] : llvm::zip_equal(node.shape(0), tile.repeats)) {
    if (count != 1) {
      before.push_back(1);
      after.push_back(count);
    }
    before.push_back(size);
    after.push_back(size);
  }
  Value value = emitter.reshape(node.operand(0), before);
  value = emitter.broadcast(value, node.makeType(after));
  return emitter.reshape(value, tile.result);
}

//===--- DepthToSpace, SpaceToDepth ---===//

namespace {
struct Blocks {
  int64_t block = 0;
  std::string mode = "DCR";
  SmallVector<int64_t> result;
  LogicalResult bind(NodeBinder &node);
};
struct DepthToSpace : Blocks {
  LogicalResult bind(NodeBinder &node);
};
struct SpaceToDepth : Blocks {
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Blocks::bind(NodeBinder &node) {
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

LogicalResult DepthToSpace::bind(NodeBinder &node) {
  if (failed(Blocks::bind(node)) || failed(node.attribute("mode", mode)))
    return failure();
  if (mode != "DCR" && mode != "CRD")
    return node.badAttribute("mode", "\"DCR\" or \"CRD\"");
  ArrayRef<int64_t> shape = node.shape(0);
  if (shape[1] % (block * block))
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", its channels do not divide into blocks of "
                        << block * block;
  result = {shape[0], shape[1] / (block * block), shape[2] * block,
            shape[3] * block};
  return success();
}

static Values lowerDepthToSpace(DepthToSpace &to, NodeBinder &node,
                                Emitter &emitter) {
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t n = shape[0], c = to.result[1], h = shape[2], w = shape[3];
  Value value;
  if (to.mode == "DCR") {
    value = emitter.reshape(node.operand(0), {n, to.block, to.block, c, h, w});
    value = emitter.transpose(value, {0, 3, 4, 1, 5, 2});
  } else {
    value = emitter.reshape(node.operand(0), {n, c, to.block, to.block, h, w});
    value = emitter.transpose(value, {0, 1, 4, 2, 5, 3});
  }
  return emitter.reshape(value, to.result);
}

LogicalResult SpaceToDepth::bind(NodeBinder &node) {
  if (failed(Blocks::bind(node)))
    return failure();
  if (node.hasAttribute("mode"))
    return node.error() << "attribute 'mode' is of a later version; transpose "
                           "instead";
  ArrayRef<int64_t> shape = node.shape(0);
  if (shape[2] % block || shape[3] % block)
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", which does not divide into blocks of " << block
                        << " by " << block;
  result = {shape[0], shape[1] * block * block, shape[2] / block,
            shape[3] / block};
  return success();
}

static Values lowerSpaceToDepth(SpaceToDepth &to, NodeBinder &node,
                                Emitter &emitter) {
  ArrayRef<int64_t> shape = node.shape(0);
  Value value =
      emitter.reshape(node.operand(0), {shape[0], shape[1], to.result[2],
                                        to.block, to.result[3], to.block});
  value = emitter.transpose(value, {0, 3, 5, 1, 2, 4});
  return emitter.reshape(value, to.result);
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

namespace {
struct Trilu {
  int64_t k = 0;
  bool upper = true;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Trilu::bind(NodeBinder &node) {
  SmallVector<int64_t> values;
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

static Constants foldTrilu(Trilu &trilu, NodeBinder &node) {
  if (!node.constant(0))
    return {};
  ConstantTensor tensor(node.constant(0));
  int64_t position = 0;
  forEachIndex(tensor.shape(), [&](ArrayRef<int64_t> index) {
    int64_t diagonal = index.back() - index[index.size() - 2];
    bool kept = trilu.upper ? diagonal >= trilu.k : diagonal <= trilu.k;
    if (!kept && tensor.isFloat())
      tensor.floats[position] = 0;
    else if (!kept)
      tensor.integers[position] = 0;
    ++position;
  });
  return tensor.pack();
}

static Values lowerTrilu(Trilu &trilu, NodeBinder &node, Emitter &emitter) {
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    Value diagonal = emitDiagonal(inside, node.rank(0));
    Value limit = inside.make<arith::ConstantOp>(
        inside.builder.getI64IntegerAttr(trilu.k));
    Value kept = inside.compare(trilu.upper ? arith::CmpIPredicate::sge
                                            : arith::CmpIPredicate::sle,
                                diagonal, limit);
    return inside.select(kept, scalars[0],
                         inside.scalar(scalars[0].getType(), 0));
  };
  return emitter.elementwise(node.type(0), node.operand(0), body);
}

static Types inferEyeLike(NodeBinder &node) {
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
  return RankedTensorType::get(node.shape(0), element);
}

static Values lowerEyeLike(NodeBinder &node, Emitter &emitter) {
  int64_t k = 0;
  (void)node.attribute("k", k);
  RankedTensorType type = resultType(node);
  auto body = [&](Emitter &inside, ArrayRef<Value>) -> Value {
    Value here = emitDiagonal(inside, 2);
    Value wanted =
        inside.make<arith::ConstantOp>(inside.builder.getI64IntegerAttr(k));
    Type element = Emitter::computedType(type.getElementType());
    return inside.select(inside.equal(here, wanted), inside.scalar(element, 1),
                         inside.scalar(element, 0));
  };
  return emitter.elementwise(type, {}, body);
}

//===--- NonZero ---===//

namespace {
struct NonZero {
  /// For each axis, those of the elements that are not zero.
  SmallVector<SmallVector<int64_t>> indices;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

/// How many there are depends on the data.
LogicalResult NonZero::bind(NodeBinder &node) {
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

static Types inferNonZero(NonZero &nonZero, NodeBinder &node) {
  size_t count = nonZero.indices.empty() ? 0 : nonZero.indices.front().size();
  return RankedTensorType::get({node.rank(0), static_cast<int64_t>(count)},
                               IntegerType::get(node.getContext(), 64));
}

static Constants foldNonZero(NonZero &nonZero, NodeBinder &node) {
  SmallVector<int64_t> all;
  for (ArrayRef<int64_t> list : nonZero.indices)
    llvm::append_range(all, list);
  return DenseElementsAttr::get(resultType(node), ArrayRef<int64_t>(all));
}

void penstock::onnx::addRearrangements(OperatorTable &table) {
  table.add("Tile", {6, 13}, bound<inferShape<Tile>>, bound<foldTile>,
            bound<lowerTile>);
  table.add("DepthToSpace", {1, 11, 13}, bound<inferShape<DepthToSpace>>,
            nullptr, bound<lowerDepthToSpace>);
  table.add("SpaceToDepth", {1, 13}, bound<inferShape<SpaceToDepth>>, nullptr,
            bound<lowerSpaceToDepth>);
  table.add("Trilu", {14}, bound<inferSame<Trilu>>, bound<foldTrilu>,
            bound<lowerTrilu>);
  table.add("EyeLike", {9, 22}, inferEyeLike, nullptr, lowerEyeLike,
            Operator::Inactive);
  table.add("NonZero", {9, 13}, bound<inferNonZero>, bound<foldNonZero>,
            lowerFolded<bound<foldNonZero>>, Operator::Inactive);
  table.markOperands("NonZero", &Operator::extents, {0});
}
