//===- Arithmetic.cpp - Elementwise arithmetic ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that are one scalar function at every index, over operands that
// broadcast as numpy says.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

LogicalResult penstock::onnx::inferFloatUnary(NodeBinder &node, Types &types) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

LogicalResult penstock::onnx::inferArithmeticUnary(NodeBinder &node,
                                                   Types &types) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireArithmetic(0)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

//===--- Two operands ---===//

static LogicalResult inferBinary(NodeBinder &node, Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"A", "B"}, 2)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

template <Value (Emitter::*scalar)(Value, Value)>
static LogicalResult lowerBinary(NodeBinder &node, OpBuilder &builder,
                                 Values &results) {
  Emitter emitter(builder, node.getLoc());
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) {
    return (inside.*scalar)(scalars[0], scalars[1]);
  };
  results.push_back(emitter.elementwise(
      cast<RankedTensorType>(node.node.getOutputs()[0].getType()),
      {node.operand(0), node.operand(1)}, body));
  return success();
}

/// Folds over all operands from left to right. A scalar function that gives
/// nothing (division by zero) stops the fold.
template <std::optional<int64_t> (*onIntegers)(int64_t, int64_t),
          double (*onFloats)(double, double)>
static LogicalResult foldLeft(NodeBinder &node, Constants &results) {
  auto type = cast<RankedTensorType>(node.node.getOutputs()[0].getType());
  std::optional<ConstantTensor> sum;
  for (unsigned i = 0; i < node.size(); ++i) {
    DenseElementsAttr constant = node.constant(i);
    if (!constant)
      return success();
    ConstantTensor next = ConstantTensor(constant).broadcast(type.getShape());
    if (!sum) {
      sum = std::move(next);
      continue;
    }
    // More than one rounding per result: not exact in doubles.
    if (sum->isFloat() && i > 1)
      sum = ConstantTensor(sum->pack());
    for (auto [a, b] : llvm::zip(sum->integers, next.integers)) {
      std::optional<int64_t> value = onIntegers(a, b);
      if (!value)
        return success();
      a = *value;
    }
    for (auto [a, b] : llvm::zip(sum->floats, next.floats))
      a = onFloats(a, b);
  }
  results.push_back(sum->pack());
  return success();
}

using MaybeInteger = std::optional<int64_t>;
static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
static MaybeInteger addIntegers(int64_t a, int64_t b) {
  return wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
static MaybeInteger subIntegers(int64_t a, int64_t b) {
  return wrap(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
static MaybeInteger mulIntegers(int64_t a, int64_t b) {
  return wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
static MaybeInteger divIntegers(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  return a / b;
}
static MaybeInteger maxIntegers(int64_t a, int64_t b) { return std::max(a, b); }
static MaybeInteger minIntegers(int64_t a, int64_t b) { return std::min(a, b); }
static double addFloats(double a, double b) { return a + b; }
static double subFloats(double a, double b) { return a - b; }
static double mulFloats(double a, double b) { return a * b; }
static double divFloats(double a, double b) { return a / b; }
static double maxFloats(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
static double minFloats(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}

//===--- Any number of operands ---===//

static LogicalResult inferVariadic(NodeBinder &node, Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"data_0..."}, 1)) ||
      failed(node.requireArithmetic(0)))
    return failure();
  for (unsigned i = 0; i < node.size(); ++i)
    if (failed(node.requireSameElementType(0, i)) ||
        failed(node.broadcast(i, shape)))
      return failure();
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

template <Value (Emitter::*scalar)(Value, Value), bool mean = false>
static LogicalResult lowerVariadic(NodeBinder &node, OpBuilder &builder,
                                   Values &results) {
  if (node.size() == 1) {
    results.push_back(node.operand(0));
    return success();
  }
  Emitter emitter(builder, node.getLoc());
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) {
    Value sum = scalars[0];
    for (Value next : scalars.drop_front())
      sum = (inside.*scalar)(sum, next);
    if (mean)
      sum = inside.div(sum, inside.scalar(sum.getType(), scalars.size()));
    return sum;
  };
  results.push_back(emitter.elementwise(
      cast<RankedTensorType>(node.node.getOutputs()[0].getType()),
      SmallVector<Value>(node.node.getInputs()), body));
  return success();
}

//===--- One operand ---===//

template <typename MathOp>
static Value mathOp(NodeBinder &, Emitter &emitter, Value x) {
  return MathOp::create(emitter.builder, emitter.loc, x);
}

static Value negate(NodeBinder &, Emitter &emitter, Value x) {
  if (isa<FloatType>(x.getType()))
    return arith::NegFOp::create(emitter.builder, emitter.loc, x);
  return emitter.sub(emitter.scalar(x.getType(), 0), x);
}

static LogicalResult foldNegate(NodeBinder &node, Constants &results) {
  DenseElementsAttr constant = node.constant(0);
  if (!constant)
    return success();
  ConstantTensor tensor(constant);
  for (int64_t &value : tensor.integers)
    value = *subIntegers(0, value);
  for (double &value : tensor.floats)
    value = -value;
  results.push_back(tensor.pack());
  return success();
}

static Value absolute(NodeBinder &, Emitter &emitter, Value x) {
  if (isa<FloatType>(x.getType()))
    return math::AbsFOp::create(emitter.builder, emitter.loc, x);
  return math::AbsIOp::create(emitter.builder, emitter.loc, x);
}

static Value reciprocal(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.div(emitter.scalar(x.getType(), 1), x);
}

/// -1, 0 or 1; NaN stays.
static Value sign(NodeBinder &, Emitter &emitter, Value x) {
  Value zero = emitter.scalar(x.getType(), 0);
  Value negative = emitter.less(x, zero);
  Value positive = emitter.less(zero, x);
  Value rest = isa<FloatType>(x.getType())
                   ? emitter.select(emitter.equal(x, zero), zero, x)
                   : zero;
  rest = emitter.select(positive, emitter.scalar(x.getType(), 1), rest);
  return emitter.select(negative, emitter.scalar(x.getType(), -1), rest);
}

//===--- Pow ---===//

/// The exponent may have a type of its own; the result has the base's.
static LogicalResult inferPow(NodeBinder &node, Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"X", "Y"}, 2)) ||
      failed(node.requireArithmetic(0)) || failed(node.requireArithmetic(1)) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

/// Of integers only: what shapes are computed with.
static LogicalResult foldPow(NodeBinder &node, Constants &results) {
  DenseElementsAttr constants[] = {node.constant(0), node.constant(1)};
  if (!constants[0] || !constants[1] || isa<FloatType>(node.elementType(0)) ||
      isa<FloatType>(node.elementType(1)))
    return success();
  auto type = cast<RankedTensorType>(node.node.getOutputs()[0].getType());
  ConstantTensor base = ConstantTensor(constants[0]).broadcast(type.getShape());
  ConstantTensor power =
      ConstantTensor(constants[1]).broadcast(type.getShape());
  for (auto [value, exponent] : llvm::zip(base.integers, power.integers)) {
    if (exponent < 0)
      return success();
    int64_t result = 1;
    for (uint64_t square = value, rest = exponent; rest; rest >>= 1) {
      if (rest & 1)
        result = *mulIntegers(result, square);
      square *= square;
    }
    value = result;
  }
  results.push_back(base.pack());
  return success();
}

static LogicalResult lowerPow(NodeBinder &node, OpBuilder &builder,
                              Values &results) {
  Emitter emitter(builder, node.getLoc());
  auto type = cast<RankedTensorType>(node.node.getOutputs()[0].getType());
  // Squares and roots are what norms are written with.
  std::optional<double> exponent;
  if (DenseElementsAttr constant = node.constant(1))
    if (constant.getNumElements() == 1) {
      ConstantTensor tensor(constant);
      exponent = tensor.isFloat() ? tensor.floats[0] : tensor.integers[0];
    }
  bool isFloat = isa<FloatType>(node.elementType(0));
  if (exponent == 2.0 || (isFloat && exponent == 0.5)) {
    auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
      if (exponent == 2.0)
        return inside.mul(scalars[0], scalars[0]);
      return math::SqrtOp::create(inside.builder, inside.loc, scalars[0]);
    };
    results.push_back(emitter.elementwise(type, node.operand(0), body));
    return success();
  }
  if (!isFloat && !isa<FloatType>(node.elementType(1)))
    return node.error() << "raises integers " << node.type(0)
                        << " to integers; that is supported of constants and "
                           "for the exponent 2 only, insert a Cast to float";
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    Value base = scalars[0], power = scalars[1];
    Type baseType = base.getType();
    Type computed = isFloat ? baseType : power.getType();
    Value result = math::PowFOp::create(inside.builder, inside.loc,
                                        inside.cast(base, computed),
                                        inside.cast(power, computed));
    return inside.cast(result, baseType);
  };
  results.push_back(
      emitter.elementwise(type, {node.operand(0), node.operand(1)}, body));
  return success();
}

void penstock::onnx::addArithmetic(OperatorTable &table) {
  table.add("Add", {7, 13, 14}, inferBinary, foldLeft<addIntegers, addFloats>,
            lowerBinary<&Emitter::add>);
  table.add("Sub", {7, 13, 14}, inferBinary, foldLeft<subIntegers, subFloats>,
            lowerBinary<&Emitter::sub>);
  table.add("Mul", {7, 13, 14}, inferBinary, foldLeft<mulIntegers, mulFloats>,
            lowerBinary<&Emitter::mul>);
  table.add("Div", {7, 13, 14}, inferBinary, foldLeft<divIntegers, divFloats>,
            lowerBinary<&Emitter::div>);
  table.add("Max", {6, 8, 12, 13}, inferVariadic,
            foldLeft<maxIntegers, maxFloats>, lowerVariadic<&Emitter::max>);
  table.add("Min", {6, 8, 12, 13}, inferVariadic,
            foldLeft<minIntegers, minFloats>, lowerVariadic<&Emitter::min>);
  table.add("Sum", {6, 8, 13}, inferVariadic, foldLeft<addIntegers, addFloats>,
            lowerVariadic<&Emitter::add>);
  table.add("Mean", {6, 8, 13}, inferVariadic, nullptr,
            lowerVariadic<&Emitter::add, true>);
  table.add("Pow", {7, 12, 13, 15}, inferPow, foldPow, lowerPow);

  table.add("Neg", {6, 13}, inferArithmeticUnary, foldNegate,
            lowerUnary<negate>);
  table.add("Abs", {6, 13}, inferArithmeticUnary, nullptr,
            lowerUnary<absolute>);
  table.add("Sign", {9, 13}, inferArithmeticUnary, nullptr, lowerUnary<sign>);
  table.add("Reciprocal", {6, 13}, inferFloatUnary, nullptr,
            lowerUnary<reciprocal>);
  table.add("Sqrt", {6, 13}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::SqrtOp>>);
  table.add("Exp", {6, 13}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::ExpOp>>);
  table.add("Log", {6, 13}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::LogOp>>);
  table.add("Erf", {9, 13}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::ErfOp>>);
  table.add("Sin", {7, 22}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::SinOp>>);
  table.add("Cos", {7, 22}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::CosOp>>);
  table.add("Floor", {6, 13}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::FloorOp>>);
  table.add("Ceil", {6, 13}, inferFloatUnary, nullptr,
            lowerUnary<mathOp<math::CeilOp>>);
}
