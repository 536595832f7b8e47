//===- Indexing.cpp - Gather, Scatter and their kin -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each names, for every axis of the data, the index of the result or the index
// tensor that says where: that is what nn.gather and nn.scatter take. An index
// out of range gives NaN (or the smallest integer), here as in a label.
//===----------------------------------------------------------------------===//

#include "Indexing.h"

#include "ConstantTensor.h"
#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

//===--- What is emitted ---===//

Value penstock::onnx::emitSlice(Emitter &emitter, Value value,
                                ArrayRef<int64_t> offsets,
                                ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> strides) {
  OpBuilder &builder = emitter.builder;
  return tensor::ExtractSliceOp::create(
      builder, emitter.loc, value,
      getAsIndexOpFoldResult(builder.getContext(), offsets),
      getAsIndexOpFoldResult(builder.getContext(), sizes),
      getAsIndexOpFoldResult(builder.getContext(), strides));
}

namespace {
/// Where in the data an iteration over `rank` indices finds its element.
class Access {
public:
  Access(MLIRContext *context, int64_t rank) : context(context), rank(rank) {}

  void addIndex(int64_t dim) { data.push_back(getAffineDimExpr(dim, context)); }
  /// The next axis is said by a tensor, whose own indices are `map`.
  void addTensor(Value tensor, ArrayRef<AffineExpr> map) {
    data.push_back(getAffineSymbolExpr(tensors.size(), context));
    tensors.push_back(tensor);
    maps.push_back(AffineMapAttr::get(AffineMap::get(rank, 0, map, context)));
  }
  AffineMap dataMap() const {
    return AffineMap::get(rank, tensors.size(), data, context);
  }
  ArrayAttr indexMaps() const { return ArrayAttr::get(context, maps); }

  SmallVector<Value> tensors;

private:
  MLIRContext *context;
  int64_t rank;
  SmallVector<AffineExpr> data;
  SmallVector<Attribute> maps;
};
} // namespace

static SmallVector<AffineExpr> dims(MLIRContext *context, int64_t from,
                                    int64_t to) {
  SmallVector<AffineExpr> result;
  for (int64_t d = from; d < to; ++d)
    result.push_back(getAffineDimExpr(d, context));
  return result;
}

static Value emitGather(OpBuilder &builder, Location loc, RankedTensorType type,
                        Value data, const Access &access) {
  return nn::GatherOp::create(builder, loc, type, data, access.tensors,
                              access.dataMap(), access.indexMaps());
}

/// Indices in the shape of the iteration, which say the position at `axis`.
static Access elementsAccess(MLIRContext *context, Value indices,
                             int64_t axis) {
  int64_t rank = Emitter::typeOf(indices).getRank();
  Access access(context, rank);
  for (int64_t d = 0; d < rank; ++d) {
    if (d == axis)
      access.addTensor(indices, dims(context, 0, rank));
    else
      access.addIndex(d);
  }
  return access;
}

Value penstock::onnx::emitGatherElements(OpBuilder &builder, Location loc,
                                         Value data, Value indices,
                                         int64_t axis) {
  auto type = RankedTensorType::get(Emitter::shapeOf(indices),
                                    Emitter::typeOf(data).getElementType());
  return emitGather(builder, loc, type, data,
                    elementsAccess(builder.getContext(), indices, axis));
}

/// Slices along `axis` at the positions of an index tensor.
static Access sliceAccess(MLIRContext *context, Value indices, int64_t axis,
                          int64_t dataRank) {
  int64_t rank = Emitter::typeOf(indices).getRank();
  Access access(context, dataRank - 1 + rank);
  for (int64_t d = 0; d < axis; ++d)
    access.addIndex(d);
  access.addTensor(indices, dims(context, axis, axis + rank));
  for (int64_t d = axis + 1; d < dataRank; ++d)
    access.addIndex(d - 1 + rank);
  return access;
}

Value penstock::onnx::emitTake(OpBuilder &builder, Location loc, Value data,
                               int64_t axis, ArrayRef<int64_t> positions) {
  Emitter emitter(builder, loc);
  RankedTensorType from = Emitter::typeOf(data);
  auto size = static_cast<int64_t>(positions.size());
  SmallVector<int64_t> shape(from.getShape());
  shape[axis] = size;
  Value indices = emitter.constant(DenseElementsAttr::get(
      RankedTensorType::get({size}, builder.getI64Type()), positions));
  return emitGather(
      builder, loc, RankedTensorType::get(shape, from.getElementType()), data,
      sliceAccess(builder.getContext(), indices, axis, from.getRank()));
}

//===--- Gather ---===//

static LogicalResult bindGather(NodeBinder &node, int64_t &axis) {
  axis = 0;
  if (failed(node.operands({"data", "indices"}, 2)) ||
      failed(node.requireInteger(1)) || failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  return success();
}

/// The constant indices in 0..size-1.
static LogicalResult bindIndices(NodeBinder &node, int64_t size,
                                 SmallVector<int64_t> &indices) {
  for (int64_t index : ConstantTensor(node.constant(1)).integers) {
    if (index < -size || index >= size)
      return node.error() << "operand 'indices' holds " << index
                          << ", out of the range " << -size << ".." << size - 1
                          << " of the axis";
    indices.push_back(index < 0 ? index + size : index);
  }
  return success();
}

/// Indices that name positions of an axis, from the front or from the end.
static Operator::Range rangeOfAxis(int64_t size) { return {-size, size}; }

static std::optional<Operator::Range> rangeOfGather(NodeBinder &node,
                                                    unsigned i) {
  int64_t axis;
  if (i != 1 || failed(bindGather(node, axis)))
    return std::nullopt;
  return rangeOfAxis(node.shape(0)[axis]);
}

static LogicalResult inferGather(NodeBinder &node, Types &types) {
  int64_t axis;
  if (failed(bindGather(node, axis)))
    return failure();
  SmallVector<int64_t> shape(node.shape(0).take_front(axis));
  llvm::append_range(shape, node.shape(1));
  llvm::append_range(shape, node.shape(0).drop_front(axis + 1));
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

static LogicalResult foldGather(NodeBinder &node, Constants &results) {
  if (!node.constant(0) || !node.constant(1))
    return success();
  int64_t axis;
  SmallVector<int64_t> indices;
  if (failed(bindGather(node, axis)) ||
      failed(bindIndices(node, node.shape(0)[axis], indices)))
    return failure();
  ConstantTensor data(node.constant(0));
  int64_t rank = node.rank(1);
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index.take_front(axis));
    from.push_back(indices[linearize(index.slice(axis, rank), node.shape(1))]);
    llvm::append_range(from, index.drop_front(axis + rank));
    return linearize(from, data.shape());
  };
  results.push_back(data.gather(resultType(node).getShape(), source).pack());
  return success();
}

static LogicalResult lowerGather(NodeBinder &node, OpBuilder &builder,
                                 Values &results) {
  int64_t axis;
  if (failed(bindGather(node, axis)))
    return failure();
  SmallVector<int64_t> indices;
  if (node.constant(1) &&
      failed(bindIndices(node, node.shape(0)[axis], indices)))
    return failure();
  if (indices.size() != 1) {
    results.push_back(
        emitGather(builder, node.getLoc(), resultType(node), node.operand(0),
                   sliceAccess(builder.getContext(), node.operand(1), axis,
                               node.rank(0))));
    return success();
  }
  // One constant index is a slice.
  Emitter emitter(builder, node.getLoc());
  SmallVector<int64_t> offsets(node.rank(0), 0), sizes(node.shape(0)),
      strides(node.rank(0), 1);
  offsets[axis] = indices[0];
  sizes[axis] = 1;
  results.push_back(emitter.reshape(
      emitSlice(emitter, node.operand(0), offsets, sizes, strides),
      resultType(node).getShape()));
  return success();
}

//===--- GatherElements ---===//

/// The shape of indices that name one position of `axis` each: that of the data
/// or, along the other axes, less.
static LogicalResult bindElements(NodeBinder &node, int64_t &axis) {
  axis = 0;
  if (failed(node.requireInteger(1)) || failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  bool fits = node.rank(0) == node.rank(1);
  for (int64_t d = 0; fits && d < node.rank(0); ++d)
    fits = d == axis || node.shape(1)[d] <= node.shape(0)[d];
  if (!fits)
    return node.error() << "operand 'indices' is " << node.type(1)
                        << ", it must have the rank of " << node.type(0)
                        << " and, but for axis " << axis
                        << ", at most its sizes";
  return success();
}

static LogicalResult inferGatherElements(NodeBinder &node, Types &types) {
  int64_t axis;
  if (failed(node.operands({"data", "indices"}, 2)) ||
      failed(bindElements(node, axis)))
    return failure();
  types.push_back(RankedTensorType::get(node.shape(1), node.elementType(0)));
  return success();
}

static LogicalResult lowerGatherElements(NodeBinder &node, OpBuilder &builder,
                                         Values &results) {
  int64_t axis;
  if (failed(bindElements(node, axis)))
    return failure();
  results.push_back(emitGatherElements(builder, node.getLoc(), node.operand(0),
                                       node.operand(1), axis));
  return success();
}

static std::optional<Operator::Range> rangeOfElements(NodeBinder &node,
                                                      unsigned i) {
  int64_t axis;
  if (i != 1 || failed(bindElements(node, axis)))
    return std::nullopt;
  return rangeOfAxis(node.shape(0)[axis]);
}

//===--- GatherND, ScatterND ---===//

/// The last axis of the indices holds, for as many axes of the data, where.
static LogicalResult bindTuples(NodeBinder &node, int64_t batch,
                                int64_t &tuple) {
  if (failed(node.requireInteger(1)))
    return failure();
  if (node.rank(1) == 0)
    return node.error() << "operand 'indices' is a scalar, it must have axes";
  tuple = node.shape(1).back();
  bool fits = batch >= 0 && batch < node.rank(1) && tuple >= 1 &&
              batch + tuple <= node.rank(0);
  for (int64_t d = 0; fits && d < batch; ++d)
    fits = node.shape(0)[d] == node.shape(1)[d];
  if (!fits)
    return node.error() << "operand 'indices' is " << node.type(1)
                        << ", which does not name positions of " << node.type(0)
                        << " behind " << batch << " common axes";
  return success();
}

static Access tupleAccess(NodeBinder &node, int64_t batch, int64_t tuple) {
  MLIRContext *context = node.getContext();
  int64_t outer = node.rank(1) - 1;
  int64_t inner = node.rank(0) - batch - tuple;
  Access access(context, outer + inner);
  for (int64_t d = 0; d < batch; ++d)
    access.addIndex(d);
  for (int64_t i = 0; i < tuple; ++i) {
    SmallVector<AffineExpr> map = dims(context, 0, outer);
    map.push_back(getAffineConstantExpr(i, context));
    access.addTensor(node.operand(1), map);
  }
  for (int64_t d = 0; d < inner; ++d)
    access.addIndex(outer + d);
  return access;
}

/// The shape of what a tuple of indices each names.
static SmallVector<int64_t> tupleShape(NodeBinder &node, int64_t batch,
                                       int64_t tuple) {
  SmallVector<int64_t> shape(node.shape(1).drop_back());
  llvm::append_range(shape, node.shape(0).drop_front(batch + tuple));
  return shape;
}

static LogicalResult inferGatherND(NodeBinder &node, Types &types) {
  int64_t batch = 0, tuple;
  if (failed(node.operands({"data", "indices"}, 2)) ||
      failed(node.attribute("batch_dims", batch)) ||
      failed(bindTuples(node, batch, tuple)))
    return failure();
  types.push_back(RankedTensorType::get(tupleShape(node, batch, tuple),
                                        node.elementType(0)));
  return success();
}

static LogicalResult lowerGatherND(NodeBinder &node, OpBuilder &builder,
                                   Values &results) {
  int64_t batch = 0, tuple;
  if (failed(node.attribute("batch_dims", batch)) ||
      failed(bindTuples(node, batch, tuple)))
    return failure();
  results.push_back(emitGather(builder, node.getLoc(), resultType(node),
                               node.operand(0),
                               tupleAccess(node, batch, tuple)));
  return success();
}

//===--- ScatterElements, ScatterND ---===//

/// How an update joins what is there: versions 16 and 18 added the attribute.
static LogicalResult bindReduction(NodeBinder &node, nn::ScatterKind &kind) {
  std::string text = "none";
  if (failed(node.attribute("reduction", text)))
    return failure();
  std::optional<nn::ScatterKind> found = nn::symbolizeScatterKind(text);
  bool isExtremum = text == "max" || text == "min";
  if (!found || (isExtremum && node.getSince() < 18))
    return node.badAttribute(
        "reduction", node.getSince() < 18
                         ? "\"none\", \"add\" or \"mul\""
                         : "\"none\", \"add\", \"mul\", \"max\" or \"min\"");
  kind = *found;
  if (kind != nn::ScatterKind::None && failed(node.requireArithmetic(0)))
    return failure();
  return success();
}

static LogicalResult bindUpdates(NodeBinder &node, ArrayRef<int64_t> shape) {
  if (failed(node.requireSameElementType(0, 2)))
    return failure();
  if (node.shape(2) != shape)
    return node.error() << "operand 'updates' is " << node.type(2)
                        << ", its shape must be that of what the indices name, "
                        << RankedTensorType::get(shape, node.elementType(0));
  return success();
}

static LogicalResult inferScatterElements(NodeBinder &node, Types &types) {
  int64_t axis;
  nn::ScatterKind kind;
  if (failed(node.operands({"data", "indices", "updates"}, 3)) ||
      failed(bindElements(node, axis)) || failed(bindReduction(node, kind)) ||
      failed(bindUpdates(node, node.shape(1))))
    return failure();
  types.push_back(node.type(0));
  return success();
}

static Value emitScatter(NodeBinder &node, OpBuilder &builder,
                         nn::ScatterKind kind, const Access &access) {
  return nn::ScatterOp::create(builder, node.getLoc(), node.type(0),
                               node.operand(2), node.operand(0), access.tensors,
                               kind, access.dataMap(), access.indexMaps());
}

static LogicalResult lowerScatterElements(NodeBinder &node, OpBuilder &builder,
                                          Values &results) {
  int64_t axis;
  nn::ScatterKind kind;
  if (failed(bindElements(node, axis)) || failed(bindReduction(node, kind)))
    return failure();
  results.push_back(
      emitScatter(node, builder, kind,
                  elementsAccess(node.getContext(), node.operand(1), axis)));
  return success();
}

static LogicalResult inferScatterND(NodeBinder &node, Types &types) {
  int64_t tuple;
  nn::ScatterKind kind;
  if (failed(node.operands({"data", "indices", "updates"}, 3)) ||
      failed(bindTuples(node, 0, tuple)) || failed(bindReduction(node, kind)) ||
      failed(bindUpdates(node, tupleShape(node, 0, tuple))))
    return failure();
  types.push_back(node.type(0));
  return success();
}

static LogicalResult lowerScatterND(NodeBinder &node, OpBuilder &builder,
                                    Values &results) {
  int64_t tuple;
  nn::ScatterKind kind;
  if (failed(bindTuples(node, 0, tuple)) || failed(bindReduction(node, kind)))
    return failure();
  results.push_back(
      emitScatter(node, builder, kind, tupleAccess(node, 0, tuple)));
  return success();
}

void penstock::onnx::addIndexing(OperatorTable &table) {
  table.add("Gather", {1, 11, 13}, inferGather, foldGather, lowerGather);
  table.add("GatherElements", {11, 13}, inferGatherElements, nullptr,
            lowerGatherElements);
  table.set("Gather", &Operator::range, &rangeOfGather);
  table.set("GatherElements", &Operator::range, &rangeOfElements);
  table.add("GatherND", {11, 12, 13}, inferGatherND, nullptr, lowerGatherND);
  table.add("ScatterElements", {11, 13, 16, 18}, inferScatterElements, nullptr,
            lowerScatterElements);
  // What ScatterElements was called before; deprecated since 11.
  table.add("Scatter", {9}, inferScatterElements, nullptr,
            lowerScatterElements);
  table.add("ScatterND", {11, 13, 16, 18}, inferScatterND, nullptr,
            lowerScatterND);
  for (StringRef type : {"Scatter", "ScatterElements", "ScatterND"})
    table.markOperands(type, &Operator::parts, {0});
}
