//===- Quantization.cpp - QuantizeLinear and its inverse ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats to integers of 8 and 16 bits and back. Through quantizing no gradient
// flows, as its results are integers; the scale of the inverse gets one.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

namespace {
enum Operand { X, Scale, ZeroPoint };

struct Linear {
  /// The integers, and the result of the node.
  Type integers;
  RankedTensorType result;
  /// The shape of scale and zero point, and of x where those of blocks differ.
  SmallVector<int64_t> scaleShape, parts;

  LogicalResult bind(NodeBinder &node, bool isQuantize);
  /// Brings an operand to `scaleShape`.
  Value spread(NodeBinder &node, Emitter &emitter, unsigned i) const {
    return emitter.reshape(node.operand(i), scaleShape);
  }

private:
  LogicalResult bindTypes(NodeBinder &node, bool isQuantize);
  LogicalResult bindScale(NodeBinder &node);
};
} // namespace

static bool isStored(Type type, bool with32) {
  return type.isInteger() &&
         (type.isSignlessInteger() || type.isUnsignedInteger()) &&
         (type.getIntOrFloatBitWidth() == 8 ||
          type.getIntOrFloatBitWidth() == 16 || (with32 && type.isInteger(32)));
}

LogicalResult Linear::bindTypes(NodeBinder &node, bool isQuantize) {
  Builder builder(node.getContext());
  int64_t number = 0;
  if (node.hasAttribute("output_dtype") &&
      failed(node.attribute("output_dtype", number)))
    return failure();
  Type asked = number ? getElementType(node.getContext(), number) : Type();
  if (number && !asked)
    return node.badAttribute("output_dtype", "float, int8, uint8, int16 or "
                                             "uint16");
  integers =
      !isQuantize           ? node.elementType(X)
      : node.has(ZeroPoint) ? node.elementType(ZeroPoint)
      : asked               ? asked
              : IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  if (!isStored(integers, /*with32=*/!isQuantize))
    return node.error() << "is quantized to " << integers
                        << "; integers of 8 and 16 bits are supported";
  if (node.has(ZeroPoint) && node.elementType(ZeroPoint) != integers)
    return node.requireSameElementType(X, ZeroPoint);
  if (isQuantize && asked && asked != integers)
    return node.badAttribute("output_dtype", "the type of the zero point");
  Type result = isQuantize ? integers : asked ? asked : node.elementType(Scale);
  if (!isQuantize && !isa<FloatType>(result))
    return node.badAttribute("output_dtype", "the number of a float type");
  this->result = RankedTensorType::get(node.shape(X), result);
  return success();
}

LogicalResult Linear::bindScale(NodeBinder &node) {
  int64_t axis = 1, block = 0, rank = node.rank(X);
  if (failed(node.attribute("axis", axis)) ||
      failed(node.attribute("block_size", block)))
    return failure();
  if (node.has(ZeroPoint) && node.shape(ZeroPoint) != node.shape(Scale))
    return node.error() << "operands '" << node.operandName(Scale) << "' and '"
                        << node.operandName(ZeroPoint) << "' are "
                        << node.type(Scale) << " and " << node.type(ZeroPoint)
                        << ", their shapes must be equal";
  parts.assign(node.shape(X).begin(), node.shape(X).end());
  // 1. One for all.
  if (node.type(Scale).getNumElements() == 1 && node.rank(Scale) <= 1)
    return success();
  if (failed(node.normalizeAxis("attribute 'axis'", axis, rank)))
    return failure();
  // 2. One per slice.
  if (node.rank(Scale) == 1 && node.shape(Scale)[0] == node.shape(X)[axis]) {
    scaleShape.assign(rank, 1);
    scaleShape[axis] = node.shape(X)[axis];
    return success();
  }
  // 3. One per block of consecutive elements along the axis.
  bool fits = block > 0 && node.rank(Scale) == rank;
  for (int64_t d = 0; fits && d < rank; ++d)
    fits = d == axis ? node.shape(Scale)[d] * block == node.shape(X)[d]
                     : node.shape(Scale)[d] == node.shape(X)[d];
  if (!fits)
    return node.error() << "operand '" << node.operandName(Scale) << "' is "
                        << node.type(Scale)
                        << "; it must be one number, one per slice of axis "
                        << axis << " of " << node.type(X)
                        << ", or one per block of 'block_size' elements that "
                           "divide the axis";
  scaleShape.assign(node.shape(Scale).begin(), node.shape(Scale).end());
  scaleShape.insert(scaleShape.begin() + axis + 1, 1);
  parts[axis] /= block;
  parts.insert(parts.begin() + axis + 1, block);
  return success();
}

LogicalResult Linear::bind(NodeBinder &node, bool isQuantize) {
  if (failed(isQuantize ? node.operands({"x", "y_scale", "y_zero_point"}, 2)
                        : node.operands({"x", "x_scale", "x_zero_point"}, 2)) ||
      failed(node.requireFloat(Scale)) ||
      (isQuantize && failed(node.requireNumber(X))))
    return failure();
  return success(succeeded(bindTypes(node, isQuantize)) &&
                 succeeded(bindScale(node)));
}

static Types inferLinear(Linear &linear, NodeBinder &node) {
  return linear.result;
}

/// round(x / scale) + zero, at the bounds of the integers where it is beyond.
static Value quantize(Emitter &inside, Value x, Value scale, Value zero,
                      Type integers) {
  OpBuilder &b = inside.builder;
  Type type = scale.getType();
  Value rounded =
      math::RoundEvenOp::create(b, inside.loc, inside.div(x, scale));
  if (zero)
    rounded = inside.add(rounded, zero);
  unsigned width = integers.getIntOrFloatBitWidth();
  bool isUnsigned = integers.isUnsignedInteger();
  double low = isUnsigned ? 0 : -static_cast<double>(1 << (width - 1));
  double high =
      static_cast<double>((1 << (isUnsigned ? width : width - 1)) - 1);
  rounded = arith::MaxNumFOp::create(b, inside.loc, rounded,
                                     inside.scalar(type, low));
  rounded = arith::MinNumFOp::create(b, inside.loc, rounded,
                                     inside.scalar(type, high));
  return inside.cast(rounded, Emitter::computedType(integers));
}

/// The numbers of half floats and integers are computed with as f32.
static Type computeType(Type scale) {
  return scale.getIntOrFloatBitWidth() < 32
             ? Float32Type::get(scale.getContext())
             : scale;
}

/// The tensor in parts of one scale each, the scales and, if any, the zeros.
static SmallVector<Value> gatherOperands(NodeBinder &node, Emitter &emitter,
                                         Linear &linear) {
  SmallVector<Value> operands = {emitter.reshape(node.operand(X), linear.parts),
                                 linear.spread(node, emitter, Scale)};
  if (node.has(ZeroPoint))
    operands.push_back(linear.spread(node, emitter, ZeroPoint));
  return operands;
}

static Values lowerQuantize(Linear &linear, NodeBinder &node,
                            Emitter &emitter) {
  SmallVector<Value> operands = gatherOperands(node, emitter, linear);
  Type compute = computeType(node.elementType(Scale));
  Value value = emitter.elementwise(
      RankedTensorType::get(linear.parts, linear.integers), operands,
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        SmallVector<Value> numbers;
        for (Value scalar : scalars)
          numbers.push_back(inside.cast(scalar, compute));
        return quantize(inside, numbers[0], numbers[1],
                        numbers.size() > 2 ? numbers[2] : Value(),
                        linear.integers);
      });
  return emitter.reshape(value, linear.result.getShape());
}

/// (x - zero) * scale
static Values lowerDequantize(Linear &linear, NodeBinder &node,
                              Emitter &emitter) {
  SmallVector<Value> operands = gatherOperands(node, emitter, linear);
  Type element = linear.result.getElementType();
  Type compute = computeType(node.elementType(Scale));
  Value value = emitter.elementwise(
      RankedTensorType::get(linear.parts, element), operands,
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        // Of 32 bits, integers are subtracted in 64, so that none wraps.
        Type wide = inside.builder.getI64Type();
        Value number = inside.cast(scalars[0], wide);
        if (scalars.size() > 2)
          number = inside.sub(number, inside.cast(scalars[2], wide));
        Value product = inside.mul(inside.cast(number, compute),
                                   inside.cast(scalars[1], compute));
        return inside.cast(product, element);
      });
  return emitter.reshape(value, linear.result.getShape());
}

//===--- DynamicQuantizeLinear ---===//

static Types inferDynamic(NodeBinder &node) {
  if (failed(node.operands({"x"}, 1)) || failed(node.requireFloat(0)))
    return failure();
  if (node.type(0).getNumElements() == 0)
    return node.error() << "quantizes " << node.type(0)
                        << ", which has no range";
  Type ui8 = IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  return {RankedTensorType::get(node.shape(0), ui8), node.makeType({}),
          RankedTensorType::get({}, ui8)};
}

/// The range of the data, with zero, is what the 256 integers cover.
static Values lowerDynamic(NodeBinder &node, Emitter &emitter) {
  Type element = node.elementType(0);
  auto one = RankedTensorType::get({}, element);
  Type ui8 = IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  Value zero = emitter.scalar(element, 0);
  Value largest = emitter.reduce(node.operand(0), axes, zero, &Emitter::max);
  Value least = emitter.reduce(node.operand(0), axes, zero, &Emitter::min);
  Value scale = emitter.elementwise(
      one, {largest, least}, [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.div(inside.sub(scalars[0], scalars[1]),
                          inside.scalar(element, 255));
      });
  Value point = emitter.elementwise(
      RankedTensorType::get({}, ui8), {least, scale},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value negative = inside.sub(inside.scalar(element, 0), scalars[0]);
        return quantize(inside, negative, scalars[1], Value(), ui8);
      });
  Value integers = emitter.elementwise(
      RankedTensorType::get(node.shape(0), ui8),
      {node.operand(0), scale, point},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        return quantize(inside, scalars[0], scalars[1],
                        inside.cast(scalars[2], element), ui8);
      });
  return {integers, scale, point};
}

void penstock::onnx::addQuantization(OperatorTable &table) {
  table.add("QuantizeLinear", {10, 13, 19, 21, 23}, bound<inferLinear, true>,
            nullptr, bound<lowerQuantize, true>, Operator::Inactive);
  table.add("DequantizeLinear", {10, 13, 19, 21, 23}, bound<inferLinear, false>,
            nullptr, bound<lowerDequantize, false>);
  table.add("DynamicQuantizeLinear", {11}, inferDynamic, nullptr, lowerDynamic,
            Operator::Inactive);
}
