//===- Indexing.cpp - Gather, Scatter and variants ------------------------===//
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

static Value emitGather(Emitter &emitter, RankedTensorType type, Value data,
                        const Access &access) {
  return emitter.make<nn::GatherOp>(type, data, access.tensors,
                                    access.dataMap(), access.indexMaps());
}

/// Indices in the shape of the iteration, which say the position at `axis`.
static Access elementsAccess(MLIRContext *context, Value indices,
                             int64_t axis) {
  int64_t rank = Emitter::getType(indices).getRank();
  Access access(context, rank);
  for (int64_t d = 0; d < rank; ++d) {
    if (d == axis)
      access.addTensor(indices, dims(context, 0, rank));
    else
      access.addIndex(d);
  }
  return access;
}

Value penstock::onnx::emitGatherElements(Emitter &emitter, Value data,
                                         Value indices, int64_t axis) {
  auto type = RankedTensorType::get(Emitter::getShape(indices),
                                    Emitter::getType(data).getElementType());
  return emitGather(emitter, type, data,
                    elementsAccess(emitter.getContext(), indices, axis));
}

/// Slices along `axis` at the positions of an index tensor.
static Access sliceAccess(MLIRContext *context, Value indices, int64_t axis,
                          int64_t dataRank) {
  int64_t rank = Emitter::getType(indices).getRank();
  Access access(context, dataRank - 1 + rank);
  for (int64_t d = 0; d < axis; ++d)
    access.addIndex(d);
  access.addTensor(indices, dims(context, axis, axis + rank));
  for (int64_t d = axis + 1; d < dataRank; ++d)
    access.addIndex(d - 1 + rank);
  return access;
}

Value penstock::onnx::emitTake(Emitter &emitter, Value data, int64_t axis,
                               ArrayRef<int64_t> positions) {
  RankedTensorType from = Emitter::getType(data);
  auto size = static_cast<int64_t>(positions.size());
  SmallVector<int64_t> shape(from.getShape());
  shape[axis] = size;
  Value indices = emitter.constant(DenseElementsAttr::get(
      RankedTensorType::get({size}, emitter.builder.getI64Type()), positions));
  return emitGather(
      emitter, RankedTensorType::get(shape, from.getElementType()), data,
      sliceAccess(emitter.getContext(), indices, axis, from.getRank()));
}

/// The range of the indices, operand 1, which name positions of an axis from
/// the front or from the end.
template <typename Params>
static std::optional<Operator::Range> rangeOfIndices(NodeBinder &node,
                                                     unsigned i) {
  Params params;
  if (i != 1 || failed(params.bind(node)))
    return std::nullopt;
  int64_t size = node.shape(0)[params.axis];
  return Operator::Range{-size, size};
}

//===--- Gather ---===//

namespace {
struct Gather {
  int64_t axis = 0;
  SmallVector<int64_t> result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Gather::bind(NodeBinder &node) {
  if (failed(node.operands({"data", "indices"}, 2)) ||
      failed(node.requireInteger(1)) || failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  llvm::append_range(result, node.shape(0).take_front(axis));
  llvm::append_range(result, node.shape(1));
  llvm::append_range(result, node.shape(0).drop_front(axis + 1));
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

static Constants foldGather(Gather &gather, NodeBinder &node) {
  if (!node.constant(0) || !node.constant(1))
    return {};
  int64_t axis = gather.axis, rank = node.rank(1);
  SmallVector<int64_t> indices;
  if (failed(bindIndices(node, node.shape(0)[axis], indices)))
    return failure();
  ConstantTensor data(node.constant(0));
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index.take_front(axis));
    from.push_back(indices[linearize(index.slice(axis, rank), node.shape(1))]);
    llvm::append_range(from, index.drop_front(axis + rank));
    return linearize(from, data.shape());
  };
  return data.gather(gather.result, source).pack();
}

static Values lowerGather(Gather &gather, NodeBinder &node, Emitter &emitter) {
  int64_t axis = gather.axis;
  SmallVector<int64_t> indices;
  if (node.constant(1) &&
      failed(bindIndices(node, node.shape(0)[axis], indices)))
    return failure();
  if (indices.size() != 1)
    return emitGather(
        emitter, resultType(node), node.operand(0),
        sliceAccess(node.getContext(), node.operand(1), axis, node.rank(0)));
  // One constant index is a slice.
  SmallVector<int64_t> offsets(node.rank(0), 0), sizes(node.shape(0));
  offsets[axis] = indices[0];
  sizes[axis] = 1;
  return emitter.reshape(emitter.slice(node.operand(0), offsets, sizes),
                         gather.result);
}

//===--- GatherElements ---===//

namespace {
/// Indices that name one position of `axis` each, in a shape that is that of
/// the data or, along the other axes, less.
struct Elements {
  int64_t axis = 0;
  LogicalResult bind(NodeBinder &node);
};
struct GatherElements : Elements {
  LogicalResult bind(NodeBinder &node) {
    return success(succeeded(node.operands({"data", "indices"}, 2)) &&
                   succeeded(Elements::bind(node)));
  }
};
} // namespace

LogicalResult Elements::bind(NodeBinder &node) {
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

static Types inferGatherElements(GatherElements &, NodeBinder &node) {
  return node.makeType(node.shape(1));
}

static Values lowerGatherElements(GatherElements &elements, NodeBinder &node,
                                  Emitter &emitter) {
  return emitGatherElements(emitter, node.operand(0), node.operand(1),
                            elements.axis);
}

//===--- GatherND, ScatterND ---===//

namespace {
/// The last axis of the indices holds, for as many axes of the data behind
/// `batch` common ones, where.
struct Tuples {
  int64_t batch = 0, tuple;
  /// The shape of what a tuple of indices each names.
  SmallVector<int64_t> result;
  LogicalResult bind(NodeBinder &node);
  Access getAccess(NodeBinder &node) const;
};
struct GatherND : Tuples {
  LogicalResult bind(NodeBinder &node) {
    return success(succeeded(node.operands({"data", "indices"}, 2)) &&
                   succeeded(node.attribute("batch_dims", batch)) &&
                   succeeded(Tuples::bind(node)));
  }
};
} // namespace

LogicalResult Tuples::bind(NodeBinder &node) {
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
  llvm::append_range(result, node.shape(1).drop_back());
  llvm::append_range(result, node.shape(0).drop_front(batch + tuple));
  return success();
}

Access Tuples::getAccess(NodeBinder &node) const {
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

static Values lowerGatherND(GatherND &gather, NodeBinder &node,
                            Emitter &emitter) {
  return emitGather(emitter, resultType(node), node.operand(0),
                    gather.getAccess(node));
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

/// The type of the data, if the updates have the shape that indices name.
static Types inferUpdated(NodeBinder &node, ArrayRef<int64_t> shape) {
  if (failed(node.requireSameElementType(0, 2)))
    return failure();
  if (node.shape(2) != shape)
    return node.error() << "operand 'updates' is " << node.type(2)
                        << ", its shape must be that of what the indices name, "
                        << node.makeType(shape);
  return node.type(0);
}

namespace {
/// A scatter whose indices are `Indices`.
template <typename Indices> struct Scatter : Indices {
  nn::ScatterKind kind;
  LogicalResult bind(NodeBinder &node) {
    if (failed(node.operands({"data", "indices", "updates"}, 3)) ||
        failed(Indices::bind(node)))
      return failure();
    return bindReduction(node, kind);
  }
};
using ScatterElements = Scatter<Elements>;
using ScatterND = Scatter<Tuples>;
} // namespace

static Value emitScatter(NodeBinder &node, Emitter &emitter,
                         nn::ScatterKind kind, const Access &access) {
  return emitter.make<nn::ScatterOp>(node.type(0), node.operand(2),
                                     node.operand(0), access.tensors, kind,
                                     access.dataMap(), access.indexMaps());
}

static Types inferScatterElements(ScatterElements &, NodeBinder &node) {
  return inferUpdated(node, node.shape(1));
}

static Values lowerScatterElements(ScatterElements &scatter, NodeBinder &node,
                                   Emitter &emitter) {
  return emitScatter(
      node, emitter, scatter.kind,
      elementsAccess(node.getContext(), node.operand(1), scatter.axis));
}

static Types inferScatterND(ScatterND &scatter, NodeBinder &node) {
  return inferUpdated(node, scatter.result);
}

static Values lowerScatterND(ScatterND &scatter, NodeBinder &node,
                             Emitter &emitter) {
  return emitScatter(node, emitter, scatter.kind, scatter.getAccess(node));
}

void penstock::onnx::addIndexing(OperatorTable &table) {
  table.add("Gather", {1, 11, 13}, bound<inferShape<Gather>>, bound<foldGather>,
            bound<lowerGather>);
  table.set("Gather", &Operator::range, &rangeOfIndices<Gather>);
  table.add("GatherElements", {11, 13}, bound<inferGatherElements>, nullptr,
            bound<lowerGatherElements>);
  table.set("GatherElements", &Operator::range,
            &rangeOfIndices<GatherElements>);
  table.add("GatherND", {11, 12, 13}, bound<inferShape<GatherND>>, nullptr,
            bound<lowerGatherND>);
  table.add("ScatterElements", {11, 13, 16, 18}, bound<inferScatterElements>,
            nullptr, bound<lowerScatterElements>);
  // What ScatterElements was called before; deprecated since 11.
  table.add("Scatter", {9}, bound<inferScatterElements>, nullptr,
            bound<lowerScatterElements>);
  table.add("ScatterND", {11, 13, 16, 18}, bound<inferScatterND>, nullptr,
            bound<lowerScatterND>);
  for (StringRef type : {"Scatter", "ScatterElements", "ScatterND"})
    table.markOperands(type, &Operator::parts, {0});
}
