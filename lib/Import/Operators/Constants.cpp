//===- Constants.cpp - Constant, ConstantOfShape, Range, Cast -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that make values out of attributes and constant operands, and the
// conversion between element types.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

//===--- Constant ---===//

/// The type of an output whose value is known for every operand.
template <auto fold> static Types inferFolded(NodeBinder &node) {
  Constants value = fold(node);
  if (failed(value))
    return failure();
  return (*value)[0].getType();
}

/// The tensor that the node's one attribute gives.
static Constants bindConstant(NodeBinder &node) {
  static constexpr StringRef forms[] = {"value", "value_float", "value_floats",
                                        "value_int", "value_ints"};
  for (StringRef name : {"sparse_value", "value_string", "value_strings"})
    if (node.hasAttribute(name))
      return node.error() << "attribute '" << name
                          << "' is not supported; use 'value' with numbers";
  StringRef given;
  for (StringRef name : forms) {
    if (!node.hasAttribute(name))
      continue;
    if (!given.empty())
      return node.error() << "attributes '" << given << "' and '" << name
                          << "' are both given; one says the value";
    given = name;
  }
  if (given.empty())
    return node.error() << "attribute 'value' is missing";
  Builder builder(node.getContext());
  if (given == "value") {
    if (auto dense = dyn_cast<DenseElementsAttr>(node.node.getParam(given)))
      if (isa<RankedTensorType>(dense.getType()))
        return dense;
    return node.badAttribute(given, "a tensor");
  }
  if (given == "value_int") {
    int64_t value = 0;
    if (failed(node.attribute(given, value)))
      return failure();
    return DenseElementsAttr::get(
        RankedTensorType::get({}, builder.getI64Type()),
        ArrayRef<int64_t>{value});
  }
  if (given == "value_ints") {
    SmallVector<int64_t> values;
    if (failed(node.attribute(given, values)))
      return failure();
    return DenseElementsAttr::get(
        RankedTensorType::get({static_cast<int64_t>(values.size())},
                              builder.getI64Type()),
        ArrayRef<int64_t>(values));
  }
  SmallVector<float> values;
  if (given == "value_float") {
    double value = 0;
    if (failed(node.attribute(given, value)))
      return failure();
    return DenseElementsAttr::get(
        RankedTensorType::get({}, builder.getF32Type()),
        ArrayRef<float>{static_cast<float>(value)});
  }
  auto list = dyn_cast<DenseF32ArrayAttr>(node.node.getParam(given));
  if (!list)
    return node.badAttribute(given, "a list of floats");
  return DenseElementsAttr::get(
      RankedTensorType::get({list.size()}, builder.getF32Type()),
      list.asArrayRef());
}

static Types inferConstant(NodeBinder &node) {
  if (node.size() != 0)
    return node.error() << "has operands, a constant has none";
  return inferFolded<bindConstant>(node);
}

//===--- ConstantOfShape ---===//

static Constants bindConstantOfShape(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"input"}, 1)) ||
      failed(node.constantIntegers(0, shape)))
    return failure();
  for (int64_t size : shape)
    if (size < 0)
      return node.error() << "operand 'input' has the size " << size;
  Builder builder(node.getContext());
  DenseElementsAttr value = DenseElementsAttr::get(
      RankedTensorType::get({1}, builder.getF32Type()), ArrayRef<float>{0.0f});
  if (Attribute given = node.node.getParam("value")) {
    value = dyn_cast<DenseElementsAttr>(given);
    if (!value || value.getNumElements() != 1)
      return node.badAttribute("value", "a tensor of one element");
  }
  return DenseElementsAttr::get(
      RankedTensorType::get(shape, value.getElementType()),
      *value.getValues<Attribute>().begin());
}

//===--- Range ---===//

static FailureOr<int64_t> bindRange(NodeBinder &node,
                                    SmallVector<ConstantTensor> &bounds) {
  if (failed(node.operands({"start", "limit", "delta"}, 3)))
    return failure();
  for (unsigned i = 0; i < 3; ++i) {
    if (failed(node.requireArithmetic(i)) ||
        failed(node.requireSameElementType(0, i)))
      return failure();
    DenseElementsAttr constant = node.constant(i);
    if (!constant || constant.getNumElements() != 1)
      return node.error() << "operand '" << node.operandName(i)
                          << "' must be a constant scalar; bind every symbolic "
                             "dimension that it is computed from";
    bounds.emplace_back(constant);
  }
  if (bounds[0].isFloat()) {
    double count = std::ceil((bounds[1].floats[0] - bounds[0].floats[0]) /
                             bounds[2].floats[0]);
    if (!(count < 0x1p40))
      return node.error() << "operands give no finite number of elements";
    return std::max<int64_t>(static_cast<int64_t>(count), 0);
  }
  int64_t distance = bounds[1].integers[0] - bounds[0].integers[0];
  int64_t delta = bounds[2].integers[0];
  if (delta == 0)
    return node.error() << "operand 'delta' is 0";
  int64_t count = distance / delta + (distance % delta != 0 ? 1 : 0);
  return (distance > 0) == (delta > 0) && distance != 0 ? count : int64_t(0);
}

static Types inferRange(NodeBinder &node) {
  SmallVector<ConstantTensor> bounds;
  FailureOr<int64_t> count = bindRange(node, bounds);
  if (failed(count))
    return failure();
  return node.makeType({*count});
}

static Constants foldRange(NodeBinder &node) {
  SmallVector<ConstantTensor> bounds;
  FailureOr<int64_t> count = bindRange(node, bounds);
  if (failed(count))
    return failure();
  ConstantTensor tensor(node.makeType({*count}));
  for (int64_t i = 0; i < *count; ++i) {
    if (tensor.isFloat())
      tensor.floats[i] = bounds[0].floats[0] + i * bounds[2].floats[0];
    else
      tensor.integers[i] = bounds[0].integers[0] + i * bounds[2].integers[0];
  }
  return tensor.pack();
}

//===--- Cast ---===//

static Types inferCast(NodeBinder &node) {
  int64_t to = 0;
  if (failed(node.operands({"input"}, 1)) || failed(node.attribute("to", to)))
    return failure();
  Type element = getElementType(node.getContext(), to);
  if (!element)
    return node.error() << "attribute 'to' is the element type " << to
                        << ", which is not supported; float, double, float16, "
                           "bfloat16, bool and integers are";
  return RankedTensorType::get(node.shape(0), element);
}

/// Converts to the element type of its second operand.
static Types inferCastLike(NodeBinder &node) {
  if (failed(node.operands({"input", "target_type"}, 2)))
    return failure();
  return node.makeType(node.shape(0), 1);
}

static Constants foldCast(NodeBinder &node) {
  DenseElementsAttr constant = node.constant(0);
  if (!constant)
    return {};
  ConstantTensor from(constant);
  ConstantTensor to(resultType(node));
  bool toBool = to.type.getElementType().isInteger(1);
  for (int64_t i = 0, e = to.type.getNumElements(); i < e; ++i) {
    if (to.isFloat())
      to.floats[i] = from.isFloat() ? from.floats[i]
                                    : static_cast<double>(from.integers[i]);
    else if (!from.isFloat())
      to.integers[i] = toBool ? from.integers[i] != 0 : from.integers[i];
    else if (toBool)
      to.integers[i] = from.floats[i] != 0;
    else if (!(std::fabs(from.floats[i]) < 0x1p62))
      return {}; // Undefined by ONNX: leave it to the machine.
    else
      to.integers[i] = static_cast<int64_t>(from.floats[i]);
  }
  return to.pack();
}

static Values lowerCast(NodeBinder &node, Emitter &emitter) {
  RankedTensorType type = resultType(node);
  if (type == node.type(0))
    return node.operand(0);
  Type from = node.elementType(0), to = type.getElementType();
  if ((from.isUnsignedInteger(64) && isa<FloatType>(to)) ||
      (to.isUnsignedInteger(64) && isa<FloatType>(from)))
    return node.error() << "converts " << node.type(0) << " to " << type
                        << "; go through int64 instead of uint64";
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) {
    return inside.cast(scalars[0], Emitter::computedType(to));
  };
  return emitter.elementwise(type, node.operand(0), body);
}

void penstock::onnx::addConstants(OperatorTable &table) {
  table.add("Constant", {1, 9, 11, 12, 13, 19, 21, 23}, inferConstant,
            bindConstant, lowerFolded<bindConstant>, Operator::Inactive);
  table.add("ConstantOfShape", {9, 20, 21, 23},
            inferFolded<bindConstantOfShape>, bindConstantOfShape,
            lowerFolded<bindConstantOfShape>, Operator::Inactive);
  table.add("Range", {11}, inferRange, foldRange, lowerFolded<foldRange>,
            Operator::Inactive);
  table.add("Cast", {6, 9, 13, 19, 21, 23}, inferCast, foldCast, lowerCast);
  table.set("Cast", &Operator::elements, Operator::Moved);
  table.add("CastLike", {15, 19, 21, 23}, inferCastLike, foldCast, lowerCast);
  table.markOperands("CastLike", &Operator::shapes, {1});
}
