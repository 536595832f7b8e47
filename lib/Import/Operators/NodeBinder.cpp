//===- NodeBinder.cpp - Reads the operands and attributes of a node -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See NodeBinder.h.
//===----------------------------------------------------------------------===//

#include "NodeBinder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- Operands ---===//

LogicalResult NodeBinder::operands(ArrayRef<StringRef> specification,
                                   unsigned required) {
  bool variadic = specification.back().ends_with("...");
  names.clear();
  for (StringRef name : specification)
    names.push_back(name.rtrim('.').str());
  if (size() < required)
    return error() << "has " << size() << " operands but needs " << required
                   << "; '" << operandName(size()) << "' is missing";
  if (!variadic && size() > specification.size())
    return error() << "has " << size() << " operands, one may have up to "
                   << specification.size();
  for (unsigned i = 0; i < size(); ++i) {
    if (!has(i)) {
      if (i < required)
        return error() << "operand '" << operandName(i)
                       << "' is left out, but it is not optional";
      continue;
    }
    RankedTensorType tensor = type(i);
    if (!tensor || !tensor.hasStaticShape())
      return error() << "operand '" << operandName(i) << "' has type "
                     << operand(i).getType()
                     << "; its shape must be known, bind its dimensions";
  }
  return success();
}

bool NodeBinder::has(unsigned i) {
  return i < size() && !isa<NoneType>(operand(i).getType());
}

RankedTensorType NodeBinder::type(unsigned i) {
  return dyn_cast<RankedTensorType>(operand(i).getType());
}

std::string NodeBinder::operandName(unsigned i) {
  if (i < names.size())
    return names[i];
  return names.empty() ? "#" + std::to_string(i) : names.back();
}

LogicalResult NodeBinder::requireFloat(unsigned i) {
  if (isa<FloatType>(elementType(i)))
    return success();
  return error() << "operand '" << operandName(i) << "' is " << type(i)
                 << ", it must be of floats; insert a Cast";
}

LogicalResult NodeBinder::requireArithmetic(unsigned i) {
  Type element = elementType(i);
  if (isa<FloatType>(element) ||
      (element.isSignlessInteger() && !element.isInteger(1)))
    return success();
  return error() << "operand '" << operandName(i) << "' is " << type(i)
                 << "; floats and signed integers are supported, insert a Cast";
}

LogicalResult NodeBinder::requireNumber(unsigned i, bool anyWidth) {
  Type element = elementType(i);
  if (isa<FloatType>(element) ||
      (element.isInteger() && !element.isInteger(1) &&
       (anyWidth || !element.isUnsignedInteger(64))))
    return success();
  return error() << "operand '" << operandName(i) << "' is " << type(i)
                 << "; floats and integers (no uint64) are supported, insert a "
                    "Cast";
}

LogicalResult NodeBinder::requireInteger(unsigned i) {
  if (elementType(i).isSignlessInteger() && !elementType(i).isInteger(1))
    return success();
  return error() << "operand '" << operandName(i) << "' is " << type(i)
                 << ", it must be of signed integers; insert a Cast";
}

LogicalResult NodeBinder::requireBool(unsigned i) {
  if (elementType(i).isInteger(1))
    return success();
  return error() << "operand '" << operandName(i) << "' is " << type(i)
                 << ", it must be of bool; insert a Cast";
}

LogicalResult NodeBinder::requireSameElementType(unsigned i, unsigned j) {
  if (elementType(i) == elementType(j))
    return success();
  return error() << "operands '" << operandName(i) << "' and '"
                 << operandName(j) << "' are " << type(i) << " and " << type(j)
                 << ", their element types must be equal; insert a Cast";
}

DenseElementsAttr NodeBinder::constant(unsigned i) {
  return has(i) ? getConstant(operand(i)) : DenseElementsAttr();
}

LogicalResult NodeBinder::constantIntegers(unsigned i,
                                           SmallVectorImpl<int64_t> &values) {
  if (failed(requireInteger(i)))
    return failure();
  if (rank(i) > 1)
    return error() << "operand '" << operandName(i) << "' is " << type(i)
                   << ", it must be a list of integers";
  DenseElementsAttr attribute = constant(i);
  if (!attribute)
    return error() << "operand '" << operandName(i)
                   << "' must be constant when the model is compiled; bind "
                      "every symbolic dimension that it is computed from, or "
                      "make it an initializer";
  for (const APInt &value : attribute.getValues<APInt>())
    values.push_back(value.getSExtValue());
  return success();
}

//===--- Attributes ---===//

LogicalResult NodeBinder::badAttribute(StringRef name, const Twine &expected) {
  return error() << "attribute '" << name << "' must be " << expected
                 << ", it is " << node.getParam(name);
}

LogicalResult NodeBinder::attribute(StringRef name, int64_t &value) {
  Attribute param = node.getParam(name);
  if (!param)
    return success();
  auto integer = dyn_cast<IntegerAttr>(param);
  if (!integer)
    return badAttribute(name, "an integer");
  value = integer.getValue().getSExtValue();
  return success();
}

LogicalResult NodeBinder::attribute(StringRef name,
                                    std::optional<int64_t> &value) {
  int64_t given = 0;
  if (failed(attribute(name, given)))
    return failure();
  if (hasAttribute(name))
    value = given;
  return success();
}

LogicalResult NodeBinder::attribute(StringRef name, bool &value) {
  int64_t integer = value;
  if (failed(attribute(name, integer)))
    return failure();
  if (integer != 0 && integer != 1)
    return badAttribute(name, "0 or 1");
  value = integer;
  return success();
}

LogicalResult NodeBinder::attribute(StringRef name, double &value) {
  Attribute param = node.getParam(name);
  if (!param)
    return success();
  auto number = dyn_cast<FloatAttr>(param);
  if (!number)
    return badAttribute(name, "a float");
  value = number.getValueAsDouble();
  return success();
}

LogicalResult NodeBinder::attribute(StringRef name, std::string &value) {
  Attribute param = node.getParam(name);
  if (!param)
    return success();
  auto text = dyn_cast<StringAttr>(param);
  if (!text)
    return badAttribute(name, "a string");
  value = text.str();
  return success();
}

LogicalResult NodeBinder::attribute(StringRef name,
                                    SmallVectorImpl<int64_t> &value) {
  Attribute param = node.getParam(name);
  if (!param)
    return success();
  value.clear();
  if (auto list = dyn_cast<DenseI64ArrayAttr>(param)) {
    llvm::append_range(value, list.asArrayRef());
    return success();
  }
  // Hand-written IR: [0, 1].
  auto list = dyn_cast<ArrayAttr>(param);
  if (!list || !llvm::all_of(list, llvm::IsaPred<IntegerAttr>))
    return badAttribute(name, "a list of integers");
  for (auto integer : list.getAsRange<IntegerAttr>())
    value.push_back(integer.getValue().getSExtValue());
  return success();
}

//===--- Axes ---===//

LogicalResult NodeBinder::normalizeAxis(const Twine &what, int64_t &axis,
                                        int64_t rank, bool end) {
  int64_t limit = rank + end;
  if (axis < -rank || axis >= limit)
    return error() << what.str() << " is " << axis << ", out of the range "
                   << -rank << ".." << limit - 1 << " of a tensor of rank "
                   << rank;
  if (axis < 0)
    axis += rank;
  return success();
}

LogicalResult NodeBinder::normalizeAxes(const Twine &what,
                                        SmallVectorImpl<int64_t> &axes,
                                        int64_t rank) {
  for (int64_t &axis : axes)
    if (failed(normalizeAxis(what, axis, rank)))
      return failure();
  llvm::sort(axes);
  const auto *duplicate = llvm::adjacent_find(axes);
  if (duplicate != axes.end())
    return error() << what.str() << " names axis " << *duplicate << " twice";
  return success();
}

LogicalResult NodeBinder::axes(int64_t inputSince, unsigned index,
                               std::optional<SmallVector<int64_t>> &values) {
  SmallVector<int64_t> list;
  if (getSince() >= inputSince) {
    if (!has(index))
      return success();
    if (failed(constantIntegers(index, list)))
      return failure();
  } else {
    if (!hasAttribute("axes"))
      return success();
    if (failed(attribute("axes", list)))
      return failure();
  }
  values = std::move(list);
  return success();
}

//===--- Broadcasting ---===//

LogicalResult NodeBinder::broadcast(unsigned i, SmallVectorImpl<int64_t> &to) {
  ArrayRef<int64_t> from = shape(i);
  while (to.size() < from.size())
    to.insert(to.begin(), 1);
  unsigned offset = to.size() - from.size();
  for (auto [d, size] : llvm::enumerate(from)) {
    int64_t &common = to[offset + d];
    if (size == common || size == 1)
      continue;
    if (common != 1)
      return error() << "operand '" << operandName(i) << "' is " << type(i)
                     << ", which does not broadcast with the operands before "
                        "it: size "
                     << size << " against " << common << " at axis "
                     << offset + d << " of the result";
    common = size;
  }
  return success();
}
