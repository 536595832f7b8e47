//===- Shapes.cpp - Reshape, Transpose and variants -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that give the same elements in another shape, and those that ask
// for a shape.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

static Values lowerToReshape(NodeBinder &node, Emitter &emitter) {
  return emitter.reshape(node.operand(0), resultType(node).getShape());
}

static Constants foldToReshape(NodeBinder &node) {
  if (DenseElementsAttr constant = node.constant(0))
    return constant.reshape(resultType(node));
  return {};
}

//===--- Reshape, Flatten, Squeeze, Unsqueeze, Identity ---===//

static Types inferReshape(NodeBinder &node) {
  bool allowZero = false;
  SmallVector<int64_t> shape;
  if (failed(node.operands({"data", "shape"}, 2)) ||
      failed(node.attribute("allowzero", allowZero)) ||
      failed(node.constantIntegers(1, shape)))
    return failure();
  int64_t known = 1;
  std::optional<size_t> rest;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (size == 0 && !allowZero) {
      if (static_cast<int64_t>(d) >= node.rank(0))
        return node.error() << "operand 'shape' copies axis " << d << " of "
                            << node.type(0) << ", which has no such axis";
      size = node.shape(0)[d];
    }
    if (size == -1) {
      if (rest)
        return node.error() << "operand 'shape' has -1 twice";
      rest = d;
      continue;
    }
    if (size < 0)
      return node.error() << "operand 'shape' has the size " << size;
    known *= size;
  }
  int64_t elements = node.type(0).getNumElements();
  if (rest) {
    if (known == 0 || elements % known != 0)
      return node.error() << "operand 'shape' leaves " << elements
                          << " elements of " << node.type(0)
                          << " to be divided by " << known;
    shape[*rest] = elements / known;
  } else if (known != elements) {
    return node.error() << "operand 'shape' asks for " << known
                        << " elements, but " << node.type(0) << " has "
                        << elements;
  }
  return node.makeType(shape);
}

static Types inferFlatten(NodeBinder &node) {
  int64_t axis = 1;
  if (failed(node.operands({"input"}, 1)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0),
                                /*end=*/true)))
    return failure();
  SmallVector<int64_t> shape = {1, 1};
  for (auto [d, size] : llvm::enumerate(node.shape(0)))
    shape[static_cast<int64_t>(d) >= axis] *= size;
  return node.makeType(shape);
}

/// The name by which an error calls the axes of Squeeze and Unsqueeze.
static StringRef axesName(NodeBinder &node) {
  return node.getSince() >= 13 ? "operand 'axes'" : "attribute 'axes'";
}

static Types inferSqueeze(NodeBinder &node) {
  std::optional<SmallVector<int64_t>> axes;
  if (failed(node.getSince() >= 13 ? node.operands({"data", "axes"}, 1)
                                   : node.operands({"data"}, 1)) ||
      failed(node.axes(13, 1, axes)))
    return failure();
  if (axes && failed(node.normalizeAxes(axesName(node), *axes, node.rank(0))))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(node.shape(0))) {
    bool named = axes && llvm::is_contained(*axes, d);
    if (named && size != 1)
      return node.error() << axesName(node) << " names axis " << d << " of "
                          << node.type(0) << ", whose size is not 1";
    if (!named && (axes || size != 1))
      shape.push_back(size);
  }
  return node.makeType(shape);
}

static Types inferUnsqueeze(NodeBinder &node) {
  bool operand = node.getSince() >= 13;
  std::optional<SmallVector<int64_t>> axes;
  if (failed(operand ? node.operands({"data", "axes"}, 2)
                     : node.operands({"data"}, 1)) ||
      failed(node.axes(13, 1, axes)))
    return failure();
  if (!axes)
    return node.error() << "attribute 'axes' is missing";
  int64_t rank = node.rank(0) + static_cast<int64_t>(axes->size());
  if (failed(node.normalizeAxes(axesName(node), *axes, rank)))
    return failure();
  SmallVector<int64_t> shape;
  const int64_t *old = node.shape(0).begin();
  for (int64_t d = 0; d < rank; ++d)
    shape.push_back(llvm::is_contained(*axes, d) ? 1 : *old++);
  return node.makeType(shape);
}

static Types inferIdentity(NodeBinder &node) {
  if (failed(node.operands({"input"}, 1)))
    return failure();
  return node.type(0);
}

//===--- Transpose ---===//

namespace {
struct Transpose {
  SmallVector<int64_t> order, result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Transpose::bind(NodeBinder &node) {
  if (failed(node.operands({"data"}, 1)) ||
      failed(node.attribute("perm", order)))
    return failure();
  int64_t rank = node.rank(0);
  if (!node.hasAttribute("perm"))
    order = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  SmallVector<int64_t> sorted = order;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return node.badAttribute("perm", "a permutation of the " + Twine(rank) +
                                         " axes of operand 'data'");
  for (int64_t axis : order)
    result.push_back(node.shape(0)[axis]);
  return success();
}

static Values lowerTranspose(Transpose &transpose, NodeBinder &node,
                             Emitter &emitter) {
  return emitter.transpose(node.operand(0), transpose.order);
}

static Constants foldTranspose(Transpose &transpose, NodeBinder &node) {
  if (!node.constant(0))
    return {};
  ConstantTensor tensor(node.constant(0));
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index.size());
    for (auto [d, axis] : llvm::enumerate(transpose.order))
      from[axis] = index[d];
    return linearize(from, tensor.shape());
  };
  return tensor.gather(transpose.result, source).pack();
}

//===--- Shape, Size ---===//

namespace {
/// The axes [start, end) that Shape gives; 15 added the attributes.
struct Shape {
  int64_t start = 0, end;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Shape::bind(NodeBinder &node) {
  std::optional<int64_t> givenEnd;
  if (failed(node.operands({"data"}, 1)) ||
      failed(node.attribute("start", start)) ||
      failed(node.attribute("end", givenEnd)))
    return failure();
  int64_t rank = node.rank(0);
  auto clamp = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  start = clamp(start);
  end = std::max(clamp(givenEnd.value_or(rank)), start);
  return success();
}

static Types inferShapeOperator(Shape &shape, NodeBinder &node) {
  return RankedTensorType::get({shape.end - shape.start},
                               IntegerType::get(node.getContext(), 64));
}

static Constants foldShape(Shape &shape, NodeBinder &node) {
  return DenseElementsAttr::get(
      resultType(node),
      node.shape(0).slice(shape.start, shape.end - shape.start));
}

static Types inferSize(NodeBinder &node) {
  if (failed(node.operands({"data"}, 1)))
    return failure();
  return RankedTensorType::get({}, IntegerType::get(node.getContext(), 64));
}

static Constants foldSize(NodeBinder &node) {
  return DenseElementsAttr::get(
      resultType(node), ArrayRef<int64_t>{node.type(0).getNumElements()});
}

void penstock::onnx::addShapes(OperatorTable &table) {
  table.add("Reshape", {5, 13, 14, 19, 21, 23}, inferReshape, foldToReshape,
            lowerToReshape);
  table.add("Flatten", {1, 9, 11, 13, 21, 23}, inferFlatten, foldToReshape,
            lowerToReshape);
  table.add("Squeeze", {1, 11, 13, 21, 23}, inferSqueeze, foldToReshape,
            lowerToReshape);
  table.add("Unsqueeze", {1, 11, 13, 21, 23}, inferUnsqueeze, foldToReshape,
            lowerToReshape);
  table.add("Identity", {1, 13, 14, 16, 19, 21, 23}, inferIdentity,
            foldToReshape, lowerToReshape);
  table.add("Transpose", {1, 13, 21, 23}, bound<inferShape<Transpose>>,
            bound<foldTranspose>, bound<lowerTranspose>);
  for (StringRef type :
       {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"})
    table.set(type, &Operator::elements, Operator::Moved);
  table.set("Identity", &Operator::elements, Operator::Same);
  table.add("Shape", {1, 13, 15, 19, 21, 23}, bound<inferShapeOperator>,
            bound<foldShape>, lowerFolded<bound<foldShape>>,
            Operator::Inactive);
  table.add("Size", {1, 13, 19, 21, 23}, inferSize, foldSize,
            lowerFolded<foldSize>, Operator::Inactive);
  for (StringRef type : {"Shape", "Size"})
    table.markOperands(type, &Operator::shapes, {0});
}
