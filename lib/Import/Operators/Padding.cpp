//===- Padding.cpp - Pad in all its modes, CenterCropPad ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants are copied around by an insertion; the other modes choose, axis by
// axis, constant positions of the data.
//===----------------------------------------------------------------------===//

#include "Indexing.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

namespace {
struct Pad {
  SmallVector<int64_t> low, high, result;
  std::string mode = "constant";

  LogicalResult bind(NodeBinder &node);
};
} // namespace

/// Attributes in version 2, operands after; 18 added the axes, 19 "wrap".
LogicalResult Pad::bind(NodeBinder &node) {
  SmallVector<int64_t> pads;
  std::optional<SmallVector<int64_t>> axes;
  double value = 0;
  if (node.getSince() < 11) {
    if (failed(node.operands({"data"}, 1)) ||
        failed(node.attribute("pads", pads)) ||
        failed(node.attribute("value", value)))
      return failure();
  } else {
    if (failed(node.operands({"data", "pads", "constant_value", "axes"}, 2)) ||
        failed(node.constantIntegers(1, pads)))
      return failure();
    if (node.has(2)) {
      if (failed(node.requireSameElementType(0, 2)))
        return failure();
      if (node.type(2).getNumElements() != 1)
        return node.error() << "operand 'constant_value' is " << node.type(2)
                            << ", it must be a scalar";
    }
    if (node.has(3)) {
      axes.emplace();
      if (failed(node.constantIntegers(3, *axes)))
        return failure();
    }
  }
  if (failed(node.attribute("mode", mode)))
    return failure();
  bool canWrap = node.getSince() >= 19;
  if (mode != "constant" && mode != "reflect" && mode != "edge" &&
      !(mode == "wrap" && canWrap))
    return node.badAttribute(
        "mode", canWrap ? "\"constant\", \"reflect\", \"edge\" or \"wrap\""
                        : "\"constant\", \"reflect\" or \"edge\"");
  int64_t rank = node.rank(0);
  if (!axes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  size_t count = axes->size();
  if (pads.size() != 2 * count)
    return node.error() << "'pads' has " << pads.size()
                        << " elements, it must have two for each of the "
                        << count << " axes";
  low.assign(rank, 0);
  high.assign(rank, 0);
  SmallVector<bool> seen(rank, false);
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    if (failed(node.normalizeAxis("operand 'axes'", axis, rank)))
      return failure();
    if (std::exchange(seen[axis], true))
      return node.error() << "operand 'axes' names axis " << axis << " twice";
    low[axis] = pads[i];
    high[axis] = pads[count + i];
  }
  for (auto [d, size] : llvm::enumerate(node.shape(0))) {
    if (size + low[d] + high[d] < 0)
      return node.error() << "'pads' takes " << -low[d] - high[d]
                          << " elements away from axis " << d << " of size "
                          << size;
    if (mode != "constant" && size == 0 && (low[d] > 0 || high[d] > 0))
      return node.error() << "pads axis " << d
                          << " of no elements, which has nothing to repeat";
    result.push_back(size + low[d] + high[d]);
  }
  return success();
}

/// The position in an axis of `size` elements that stands at `i` of the padded
/// one, counted from the first element.
static int64_t findPosition(StringRef mode, int64_t i, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(i, 0, size - 1);
  auto modulo = [](int64_t a, int64_t b) { return ((a % b) + b) % b; };
  if (mode == "wrap")
    return modulo(i, size);
  // Back and forth; the ends are not repeated.
  if (size == 1)
    return 0;
  i = modulo(i, 2 * (size - 1));
  return i < size ? i : 2 * (size - 1) - i;
}

/// Emits the tensor that surrounds the data.
static Value emitSurroundings(NodeBinder &node, Emitter &emitter) {
  RankedTensorType type = resultType(node);
  if (node.size() > 2 && node.has(2))
    return emitter.broadcast(emitter.reshape(node.operand(2), {}), type);
  double value = 0;
  (void)node.attribute("value", value);
  if (type.getElementType().isUnsignedInteger())
    return emitter.elementwise(type, {}, [&](Emitter &inside, ArrayRef<Value>) {
      return inside.scalar(Emitter::computedType(type.getElementType()), 0);
    });
  return emitter.filled(type, emitter.scalar(type.getElementType(), value));
}

/// The node's operand, cut where `low` and `high` are negative, with what
/// surrounds it where they are positive.
static Value emitConstantPad(NodeBinder &node, Emitter &emitter,
                             ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  Value value = node.operand(0);
  int64_t rank = node.rank(0);
  // What a negative pad takes away goes first.
  SmallVector<int64_t> offsets(rank, 0), sizes(node.shape(0)), starts(rank, 0);
  bool cuts = false;
  for (int64_t d = 0; d < rank; ++d) {
    offsets[d] = std::max<int64_t>(-low[d], 0);
    starts[d] = std::max<int64_t>(low[d], 0);
    sizes[d] -= offsets[d] + std::max<int64_t>(-high[d], 0);
    cuts |= sizes[d] != node.shape(0)[d];
  }
  if (llvm::any_of(sizes, [](int64_t size) { return size <= 0; }))
    return emitSurroundings(node, emitter);
  if (cuts)
    value = emitter.slice(value, offsets, sizes);
  if (ArrayRef<int64_t>(sizes) == resultType(node).getShape())
    return value;
  return emitter.insert(value, emitSurroundings(node, emitter), starts);
}

static Values lowerPad(Pad &pad, NodeBinder &node, Emitter &emitter) {
  if (pad.mode == "constant")
    return emitConstantPad(node, emitter, pad.low, pad.high);
  Value value = node.operand(0);
  for (auto [d, size] : llvm::enumerate(node.shape(0))) {
    if (pad.low[d] == 0 && pad.high[d] == 0)
      continue;
    SmallVector<int64_t> positions;
    for (int64_t i = -pad.low[d]; i < size + pad.high[d]; ++i)
      positions.push_back(findPosition(pad.mode, i, size));
    value = emitTake(emitter, value, d, positions);
  }
  return value;
}

//===--- CenterCropPad ---===//

namespace {
struct CenterCropPad {
  SmallVector<int64_t> result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult CenterCropPad::bind(NodeBinder &node) {
  if (failed(node.operands({"input_data", "shape"}, 2)))
    return failure();
  SmallVector<int64_t> sizes,
      axes = llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  if (failed(node.constantIntegers(1, sizes)) ||
      failed(node.attribute("axes", axes)))
    return failure();
  if (axes.size() != sizes.size())
    return node.error() << "operand 'shape' has " << sizes.size()
                        << " sizes for " << axes.size() << " axes";
  result = SmallVector<int64_t>(node.shape(0));
  for (auto [axis, size] : llvm::zip_equal(axes, sizes)) {
    if (failed(node.normalizeAxis("attribute 'axes'", axis, node.rank(0))))
      return failure();
    if (size < 0)
      return node.error() << "operand 'shape' has the size " << size;
    result[axis] = size;
  }
  return success();
}

/// Crops or pads around the center: of an odd difference the larger half is at
/// the end.
static Values lowerCenter(CenterCropPad &, NodeBinder &node, Emitter &emitter) {
  SmallVector<int64_t> low, high;
  for (auto [from, to] :
       llvm::zip_equal(node.shape(0), resultType(node).getShape())) {
    low.push_back((to - from) / 2);
    high.push_back(to - from - low.back());
  }
  return emitConstantPad(node, emitter, low, high);
}

void penstock::onnx::addPadding(OperatorTable &table) {
  table.add("Pad", {2, 11, 13, 18, 19, 21, 23}, bound<inferShape<Pad>>, nullptr,
            bound<lowerPad>);
  table.add("CenterCropPad", {18}, bound<inferShape<CenterCropPad>>, nullptr,
            bound<lowerCenter>);
}
