//===- Dropout.cpp - Dropout of all versions ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ratio is an attribute up to since-version 10 and an operand after. What
// is drawn depends on the node's name, and which of that name it is: on nothing
// of how a model is cut.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct Dropout {
  double ratio = 0.5;
  /// A constant `training_mode` of false: nothing is dropped, ever.
  bool isOff = false;
  int32_t node;
  RankedTensorType mask;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

/// No other dropout of the function before this one has this salt: nodes of one
/// name, and names of one hash, draw different masks. Nodes are lowered in
/// their order, so the salt does not depend on what is done to them later.
static int32_t makeUnique(NodeBinder &node, int32_t salt) {
  llvm::DenseSet<int32_t> used;
  if (auto *function =
          node.node->getParentWithTrait<OpTrait::IsIsolatedFromAbove>())
    function->walk([&](nn::DropoutOp other) { used.insert(other.getNode()); });
  auto next = static_cast<uint32_t>(salt);
  while (used.contains(static_cast<int32_t>(next)))
    ++next;
  return static_cast<int32_t>(next);
}

/// FNV-1a: the same for the same name in every version of this program.
static uint32_t hashName(StringRef name) {
  uint32_t hash = 2166136261u;
  for (char c : name)
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

LogicalResult Dropout::bind(NodeBinder &binder) {
  bool isOperand = binder.getSince() >= 12;
  if (failed(isOperand ? binder.operands({"data", "ratio", "training_mode"}, 1)
                       : binder.operands({"data"}, 1)) ||
      failed(binder.requireFloat(0)))
    return failure();
  auto scalar = [&](unsigned i) -> DenseElementsAttr {
    DenseElementsAttr value = binder.constant(i);
    if (value && value.getNumElements() == 1)
      return value;
    binder.error() << "operand '" << binder.operandName(i)
                   << "' must be a constant scalar when the model is compiled; "
                      "make it an initializer";
    return {};
  };
  if (!isOperand && failed(binder.attribute("ratio", ratio)))
    return failure();
  if (isOperand && binder.has(1)) {
    if (failed(binder.requireFloat(1)))
      return failure();
    DenseElementsAttr value = scalar(1);
    if (!value)
      return failure();
    APFloat number = value.getSplatValue<APFloat>();
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    ratio = number.convertToDouble();
  }
  if (!(ratio >= 0 && ratio <= 1))
    return binder.error() << "the ratio must be from 0 to 1, it is " << ratio;
  if (isOperand && binder.has(2)) {
    if (failed(binder.requireBool(2)))
      return failure();
    // Where nothing is dropped, it does not matter.
    DenseElementsAttr value = ratio == 0 ? binder.constant(2) : scalar(2);
    if (!value && ratio == 0)
      value = DenseElementsAttr::get(
          RankedTensorType::get({}, IntegerType::get(binder.getContext(), 1)),
          false);
    if (!value)
      return failure();
    isOff = !value.getSplatValue<bool>();
  }
  int64_t seed = 0;
  if (failed(binder.attribute("seed", seed)))
    return failure();
  node = static_cast<int32_t>(hashName(getNodeName(binder.node)) +
                              static_cast<uint32_t>(seed));
  // The mask was of the operand's type before it became bool.
  Type element = binder.getSince() >= 10
                     ? IntegerType::get(binder.getContext(), 1)
                     : binder.elementType(0);
  mask = RankedTensorType::get(binder.shape(0), element);
  return success();
}

static Types inferDropout(Dropout &dropout, NodeBinder &node) {
  if (node.node.getNumResults() > 1)
    return {node.type(0), dropout.mask};
  return node.type(0);
}

static Values lowerDropout(Dropout &dropout, NodeBinder &node,
                           Emitter &emitter) {
  bool wantsMask = node.node.getNumResults() > 1;
  Type element = dropout.mask.getElementType();
  if (dropout.isOff || dropout.ratio == 0) {
    if (!wantsMask)
      return node.operand(0);
    return {node.operand(0),
            emitter.filled(dropout.mask, emitter.scalar(element, 1))};
  }
  OpBuilder &builder = emitter.builder;
  auto bits = RankedTensorType::get(node.shape(0), builder.getI1Type());
  auto op = nn::DropoutOp::create(
      builder, emitter.loc, TypeRange{node.type(0), bits}, node.operand(0),
      builder.getF64FloatAttr(dropout.ratio),
      builder.getI32IntegerAttr(makeUnique(node, dropout.node)));
  if (!wantsMask)
    return op.getResult();
  if (dropout.mask == bits)
    return {op.getResult(), op.getMask()};
  return {op.getResult(),
          emitter.elementwise(dropout.mask, op.getMask(),
                              [&](Emitter &inside, ArrayRef<Value> scalars) {
                                return inside.cast(scalars[0], element);
                              })};
}

void penstock::onnx::addDropout(OperatorTable &table) {
  table.add("Dropout", {7, 10, 12, 13, 22}, bound<inferDropout>, nullptr,
            bound<lowerDropout>);
}
