//===- Sequences.cpp - Sequences that are taken apart at once -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write torch.split as SplitToSequence and a SequenceAt per part.
// There are no sequences here: each SequenceAt becomes the Slice that it is,
// while shapes are resolved, and nothing is left of the sequence.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include "penstock/Import/Sequences.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct Split {
  int64_t axis = 0;
  /// Whether parts keep an axis of size 1; only without sizes.
  bool keepDims = true;
  SmallVector<int64_t> sizes;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Split::bind(NodeBinder &node) {
  if (failed(node.operands({"input", "split"}, 1)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))) ||
      failed(node.attribute("keepdims", keepDims)))
    return failure();
  int64_t extent = node.shape(0)[axis];
  if (!node.has(1)) {
    sizes.assign(extent, 1);
    return success();
  }
  keepDims = true;
  SmallVector<int64_t> given;
  if (failed(node.constantIntegers(1, given)))
    return failure();
  if (node.rank(1) == 1) {
    sizes = given;
  } else {
    // Equal parts, the last one with what is left.
    if (given.size() != 1 || given[0] < 1)
      return node.error() << "operand 'split' must be positive";
    for (int64_t begin = 0; begin < extent; begin += given[0])
      sizes.push_back(std::min(given[0], extent - begin));
  }
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0)
      return node.error() << "operand 'split' must not be negative";
    sum += size;
  }
  if (sum != extent)
    return node.error() << "the parts of operand 'split' have " << sum
                        << " elements together, axis " << axis << " has "
                        << extent;
  return success();
}

/// A sequence has no type here: SequenceAt looks at the node itself.
static LogicalResult inferSplitToSequence(NodeBinder &node, Types &types) {
  Split split;
  if (failed(split.bind(node)))
    return failure();
  types.push_back(NoneType::get(node.getContext()));
  return success();
}

static LogicalResult inferSequenceAt(NodeBinder &node, Types &) {
  return node.error() << "sequences are supported where SplitToSequence makes "
                         "one and SequenceAt takes from it at a constant "
                         "position; use Split";
}

FailureOr<SmallVector<NodeOp>> penstock::onnx::expandSequenceAt(NodeOp node) {
  NodeBinder at(node);
  SmallVector<NodeOp> created;
  if (node.getOpType() != "SequenceAt" || node.getInputs().size() != 2)
    return created;
  auto producer = node.getInputs()[0].getDefiningOp<NodeOp>();
  DenseElementsAttr constant = getConstant(node.getInputs()[1]);
  if (!producer || producer.getOpType() != "SplitToSequence" || !constant ||
      constant.getNumElements() != 1 ||
      !constant.getElementType().isSignlessInteger())
    return created;
  NodeBinder binder(producer);
  Split split;
  if (failed(split.bind(binder)))
    return failure();
  int64_t count = split.sizes.size();
  int64_t position = constant.getSplatValue<APInt>().getSExtValue();
  if (position < 0)
    position += count;
  if (position < 0 || position >= count)
    return at.error() << "takes part " << position << " of a sequence of "
                      << count;
  int64_t begin = 0;
  for (int64_t i = 0; i < position; ++i)
    begin += split.sizes[i];

  OpBuilder builder(node);
  Type unknown = UnrankedTensorType::get(binder.elementType(0));
  auto list = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, node.getLoc(),
                                     builder.getI64TensorAttr({value}));
  };
  Value value = producer.getInputs()[0];
  auto append = [&](StringRef type, ValueRange operands) {
    created.push_back(NodeOp::create(
        builder, node.getLoc(), TypeRange(unknown),
        builder.getStringAttr(type), operands, builder.getI64IntegerAttr(13),
        StringAttr(), DictionaryAttr()));
    value = created.back().getResult(0);
  };
  append("Slice", {value, list(begin), list(begin + split.sizes[position]),
                   list(split.axis)});
  if (!split.keepDims)
    append("Squeeze", {value, list(split.axis)});
  node.getOutputs()[0].replaceAllUsesWith(value);
  node.erase();
  return created;
}

void penstock::onnx::addSequences(OperatorTable &table) {
  table.add("SplitToSequence", {11}, inferSplitToSequence, nullptr, nullptr);
  table.add("SequenceAt", {11}, inferSequenceAt, nullptr, nullptr);
}
