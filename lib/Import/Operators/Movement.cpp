//===- Movement.cpp - Slice, Concat, Split, Expand ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that move elements. All fold, since models compute shapes with
// them; what a tensor.extract_slice or an insert_slice can say is lowered.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Indexing.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- Slice ---===//

namespace {
struct Slice {
  SmallVector<int64_t> offsets, result, strides;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Slice::bind(NodeBinder &node) {
  SmallVector<int64_t> starts, ends, axes, steps;
  bool hasAxes = false;
  if (node.getSince() < 10) {
    if (failed(node.operands({"data"}, 1)) ||
        failed(node.attribute("starts", starts)) ||
        failed(node.attribute("ends", ends)) ||
        failed(node.attribute("axes", axes)))
      return failure();
    hasAxes = node.hasAttribute("axes");
  } else {
    if (failed(node.operands({"data", "starts", "ends", "axes", "steps"}, 3)) ||
        failed(node.constantIntegers(1, starts)) ||
        failed(node.constantIntegers(2, ends)) ||
        (node.has(3) && failed(node.constantIntegers(3, axes))) ||
        (node.has(4) && failed(node.constantIntegers(4, steps))))
      return failure();
    hasAxes = node.has(3);
  }
  if (!hasAxes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, starts.size()));
  if (steps.empty())
    steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    return node.error() << "'starts', 'ends', 'axes' and 'steps' have "
                        << starts.size() << ", " << ends.size() << ", "
                        << axes.size() << " and " << steps.size()
                        << " elements; they must have equally many";
  offsets.assign(node.rank(0), 0);
  strides.assign(node.rank(0), 1);
  result = SmallVector<int64_t>(node.shape(0));
  SmallVector<bool> seen(node.rank(0), false);
  for (auto [start, end, axis, step] :
       llvm::zip_equal(starts, ends, axes, steps)) {
    if (failed(node.normalizeAxis("'axes'", axis, node.rank(0))))
      return failure();
    if (seen[axis] || step == 0 || step == INT64_MIN)
      return node.error() << (seen[axis] ? "'axes' names axis "
                                         : "'steps' has the step ")
                          << (seen[axis] ? axis : step)
                          << (seen[axis] ? " twice" : "");
    seen[axis] = true;
    int64_t size = node.shape(0)[axis];
    // Out-of-range bounds are clamped; backwards, from size-1 to before 0.
    int64_t lowest = step > 0 ? 0 : -1;
    int64_t highest = step > 0 ? size : size - 1;
    auto clamp = [&](int64_t bound) {
      if (bound < 0)
        bound += size;
      return std::clamp(bound, lowest, std::max(highest, lowest));
    };
    int64_t first = clamp(start);
    int64_t distance = clamp(end) - first;
    offsets[axis] = first;
    strides[axis] = step;
    result[axis] = (distance > 0) == (step > 0) && distance != 0
                       ? (std::abs(distance) - 1) / std::abs(step) + 1
                       : 0;
    if (result[axis] == 0)
      offsets[axis] = 0;
  }
  return success();
}

static Constants foldSlice(Slice &slice, NodeBinder &node) {
  if (!node.constant(0))
    return {};
  ConstantTensor data(node.constant(0));
  auto source = [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from;
    for (auto [i, offset, stride] :
         llvm::zip_equal(index, slice.offsets, slice.strides))
      from.push_back(offset + i * stride);
    return linearize(from, data.shape());
  };
  return data.gather(slice.result, source).pack();
}

static Values lowerSlice(Slice &slice, NodeBinder &node, Emitter &emitter) {
  if (llvm::is_contained(slice.result, 0))
    return emitter.empty(resultType(node));
  // Backwards along an axis is a choice of positions.
  Value value = node.operand(0);
  for (auto [d, stride] : llvm::enumerate(slice.strides)) {
    if (stride >= 0)
      continue;
    SmallVector<int64_t> positions;
    for (int64_t i = 0; i < slice.result[d]; ++i)
      positions.push_back(slice.offsets[d] + i * stride);
    value = emitTake(emitter, value, d, positions);
    slice.offsets[d] = 0;
    stride = 1;
  }
  bool isWhole =
      llvm::all_of(slice.strides, [](int64_t s) { return s == 1; }) &&
      Emitter::getShape(value) == ArrayRef<int64_t>(slice.result);
  if (!isWhole)
    value = emitter.slice(value, slice.offsets, slice.result, slice.strides);
  return value;
}

//===--- Concat ---===//

namespace {
struct Concat {
  int64_t axis;
  SmallVector<int64_t> result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Concat::bind(NodeBinder &node) {
  if (failed(node.operands({"inputs..."}, 1)))
    return failure();
  if (!node.hasAttribute("axis"))
    return node.error() << "attribute 'axis' is missing";
  if (failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  result = SmallVector<int64_t>(node.shape(0));
  for (unsigned i = 1; i < node.size(); ++i) {
    if (failed(node.requireSameElementType(0, i)))
      return failure();
    bool fits = node.rank(i) == node.rank(0);
    for (int64_t d = 0; fits && d < node.rank(0); ++d)
      fits = d == axis || node.shape(i)[d] == node.shape(0)[d];
    if (!fits)
      return node.error() << "operand " << i << " is " << node.type(i)
                          << ", it must be as " << node.type(0)
                          << " but for axis " << axis;
    result[axis] += node.shape(i)[axis];
  }
  return success();
}

static Constants foldConcat(Concat &concat, NodeBinder &node) {
  for (unsigned i = 0; i < node.size(); ++i)
    if (!node.constant(i))
      return {};
  ConstantTensor result(resultType(node));
  int64_t offset = 0;
  for (unsigned i = 0; i < node.size(); ++i) {
    ConstantTensor part(node.constant(i));
    int64_t position = 0;
    forEachIndex(part.shape(), [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> to(index);
      to[concat.axis] += offset;
      int64_t at = linearize(to, result.shape());
      if (part.isFloat())
        result.floats[at] = part.floats[position++];
      else
        result.integers[at] = part.integers[position++];
    });
    offset += part.shape()[concat.axis];
  }
  return result.pack();
}

static Values lowerConcat(Concat &concat, NodeBinder &node, Emitter &emitter) {
  Value result = emitter.empty(resultType(node));
  SmallVector<int64_t> offsets(node.rank(0), 0);
  for (unsigned i = 0; i < node.size(); ++i) {
    if (node.type(i).getNumElements() != 0)
      result = emitter.insert(node.operand(i), result, offsets);
    offsets[concat.axis] += node.shape(i)[concat.axis];
  }
  return result;
}

//===--- Split ---===//

namespace {
struct Split {
  int64_t axis = 0;
  SmallVector<int64_t> sizes;
  LogicalResult bind(NodeBinder &node);
  SmallVector<int64_t> getShape(NodeBinder &node, int64_t size) const {
    SmallVector<int64_t> shape(node.shape(0));
    shape[axis] = size;
    return shape;
  }
};
} // namespace

/// The sizes along the axis: an attribute up to since-version 11, an operand
/// after; equal parts when not given, since 18 the last one may be smaller.
LogicalResult Split::bind(NodeBinder &node) {
  bool operand = node.getSince() >= 13;
  if (failed(operand ? node.operands({"input", "split"}, 1)
                     : node.operands({"input"}, 1)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))))
    return failure();
  int64_t count = node.node.getNumResults();
  int64_t size = node.shape(0)[axis];
  if (operand ? node.has(1) : node.hasAttribute("split")) {
    if (failed(operand ? node.constantIntegers(1, sizes)
                       : node.attribute("split", sizes)))
      return failure();
  } else {
    int64_t outputs = count;
    if (failed(node.attribute("num_outputs", outputs)))
      return failure();
    if (outputs != count)
      return node.badAttribute("num_outputs",
                               "the " + Twine(count) + " outputs of the node");
    if (node.getSince() < 18 && size % count != 0)
      return node.error() << "cuts axis " << axis << " of size " << size
                          << " into " << count << " equal parts";
    int64_t part = (size + count - 1) / count;
    for (int64_t rest = size, i = 0; i < count; ++i, rest -= part)
      sizes.push_back(std::clamp<int64_t>(rest, 0, part));
  }
  int64_t sum = 0;
  for (int64_t part : sizes) {
    if (part < 0)
      return node.error() << "'split' has the size " << part;
    sum += part;
  }
  if (static_cast<int64_t>(sizes.size()) != count || sum != size)
    return node.error() << "'split' gives " << sizes.size() << " parts of "
                        << sum << " elements in all; the node has " << count
                        << " outputs and axis " << axis << " has " << size;
  return success();
}

static Types inferSplit(Split &split, NodeBinder &node) {
  SmallVector<Type> types;
  for (int64_t size : split.sizes)
    types.push_back(node.makeType(split.getShape(node, size)));
  return types;
}

static Constants foldSplit(Split &split, NodeBinder &node) {
  if (!node.constant(0))
    return {};
  ConstantTensor data(node.constant(0));
  SmallVector<DenseElementsAttr> results;
  int64_t offset = 0;
  for (int64_t size : split.sizes) {
    auto source = [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from(index);
      from[split.axis] += offset;
      return linearize(from, data.shape());
    };
    results.push_back(data.gather(split.getShape(node, size), source).pack());
    offset += size;
  }
  return results;
}

static Values lowerSplit(Split &split, NodeBinder &node, Emitter &emitter) {
  SmallVector<Value> results;
  SmallVector<int64_t> offsets(node.rank(0), 0);
  for (int64_t size : split.sizes) {
    SmallVector<int64_t> shape = split.getShape(node, size);
    results.push_back(size == 0
                          ? emitter.empty(node.makeType(shape))
                          : emitter.slice(node.operand(0), offsets, shape));
    offsets[split.axis] += size;
  }
  return results;
}

//===--- Expand ---===//

static Types inferExpand(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"input", "shape"}, 2)) ||
      failed(node.constantIntegers(1, shape)))
    return failure();
  for (int64_t size : shape)
    if (size < 0)
      return node.error() << "operand 'shape' has the size " << size;
  if (failed(node.broadcast(0, shape)))
    return failure();
  return node.makeType(shape);
}

static Constants foldExpand(NodeBinder &node) {
  if (DenseElementsAttr constant = node.constant(0))
    return ConstantTensor(constant)
        .broadcast(resultType(node).getShape())
        .pack();
  return {};
}

static Values lowerExpand(NodeBinder &node, Emitter &emitter) {
  return emitter.broadcast(node.operand(0), resultType(node));
}

void penstock::onnx::addMovement(OperatorTable &table) {
  table.add("Slice", {1, 10, 11, 13}, bound<inferShape<Slice>>,
            bound<foldSlice>, bound<lowerSlice>);
  table.add("Concat", {4, 11, 13}, bound<inferShape<Concat>>, bound<foldConcat>,
            bound<lowerConcat>);
  table.add("Split", {2, 11, 13, 18}, bound<inferSplit>, bound<foldSplit>,
            bound<lowerSplit>);
  for (StringRef type : {"Slice", "Split"})
    table.markOperands(type, &Operator::parts, {0});
  table.add("Expand", {8, 13}, inferExpand, foldExpand, lowerExpand);
  table.set("Expand", &Operator::elements, Operator::Moved);
}
