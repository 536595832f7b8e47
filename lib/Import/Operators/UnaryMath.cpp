//===- UnaryMath.cpp - Mathematical functions of one operand -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Negation, absolute value, rounding, powers of e, trigonometry. What the C
// library computes is left to it: polynomials are wrong for large arguments.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

Types penstock::onnx::inferFloatUnary(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)))
    return failure();
  return node.type(0);
}

Types penstock::onnx::inferArithmeticUnary(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireArithmetic(0)))
    return failure();
  return node.type(0);
}

Types penstock::onnx::inferTwo(NodeBinder &node, ArrayRef<StringRef> names) {
  SmallVector<int64_t> shape;
  if (failed(node.operands(names, 2)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  return node.makeType(shape);
}

SmallVector<ConstantTensor>
penstock::onnx::broadcastConstants(NodeBinder &node) {
  SmallVector<ConstantTensor> all;
  for (unsigned i = 0; i < node.size(); ++i) {
    DenseElementsAttr constant = node.constant(i);
    if (!constant)
      return {};
    all.push_back(
        ConstantTensor(constant).broadcast(resultType(node).getShape()));
  }
  return all;
}

template <typename MathOp>
static Value mathOp(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.make<MathOp>(x);
}

static Value negate(NodeBinder &, Emitter &emitter, Value x) {
  if (isa<FloatType>(x.getType()))
    return emitter.neg(x);
  return emitter.sub(emitter.scalar(x.getType(), 0), x);
}

static Constants foldNegate(NodeBinder &node) {
  DenseElementsAttr constant = node.constant(0);
  if (!constant)
    return {};
  ConstantTensor tensor(constant);
  for (int64_t &value : tensor.integers)
    value = static_cast<int64_t>(-static_cast<uint64_t>(value));
  for (double &value : tensor.floats)
    value = -value;
  return tensor.pack();
}

static Value absolute(NodeBinder &, Emitter &emitter, Value x) {
  if (isa<FloatType>(x.getType()))
    return emitter.make<math::AbsFOp>(x);
  return emitter.make<math::AbsIOp>(x);
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

/// Folds functions of float constants whose result in double, rounded, is that
/// in the type itself.
template <double (*function)(double)>
static Constants foldExact(NodeBinder &node) {
  if (!node.constant(0) || !isa<FloatType>(node.elementType(0)))
    return {};
  ConstantTensor tensor(node.constant(0));
  for (double &value : tensor.floats)
    value = function(value);
  return tensor.pack();
}

static double inverse(double x) { return 1 / x; }

template <typename MathOp>
static void addMath(OperatorTable &table, StringRef name,
                    std::initializer_list<int64_t> sinces,
                    Operator::FoldFn fold = nullptr) {
  table.add(name, sinces, inferFloatUnary, fold, lowerUnary<mathOp<MathOp>>);
}

void penstock::onnx::addUnaryMath(OperatorTable &table) {
  table.add("Neg", {6, 13}, inferArithmeticUnary, foldNegate,
            lowerUnary<negate>);
  table.add("Abs", {6, 13}, inferArithmeticUnary, nullptr,
            lowerUnary<absolute>);
  table.add("Sign", {9, 13}, inferArithmeticUnary, nullptr, lowerUnary<sign>);
  table.add("Reciprocal", {6, 13}, inferFloatUnary, foldExact<inverse>,
            lowerUnary<reciprocal>);
  addMath<math::SqrtOp>(table, "Sqrt", {6, 13}, foldExact<std::sqrt>);
  addMath<math::ExpOp>(table, "Exp", {6, 13});
  addMath<math::LogOp>(table, "Log", {6, 13});
  addMath<math::ErfOp>(table, "Erf", {9, 13});
  addMath<math::FloorOp>(table, "Floor", {6, 13}, foldExact<std::floor>);
  addMath<math::CeilOp>(table, "Ceil", {6, 13}, foldExact<std::ceil>);
  // Halves go to the even neighbor.
  addMath<math::RoundEvenOp>(table, "Round", {11, 22});
  addMath<math::SinOp>(table, "Sin", {7, 22});
  addMath<math::CosOp>(table, "Cos", {7, 22});
  addMath<math::TanOp>(table, "Tan", {7, 22});
  addMath<math::AsinOp>(table, "Asin", {7, 22});
  addMath<math::AcosOp>(table, "Acos", {7, 22});
  addMath<math::AtanOp>(table, "Atan", {7, 22});
  addMath<math::SinhOp>(table, "Sinh", {9, 22});
  addMath<math::CoshOp>(table, "Cosh", {9, 22});
  addMath<math::AsinhOp>(table, "Asinh", {9, 22});
  addMath<math::AcoshOp>(table, "Acosh", {9, 22});
  addMath<math::AtanhOp>(table, "Atanh", {9, 22});
}
