//===- Logic.cpp - Comparisons, logic and selection -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal, Less and their variants, And, Or, Not, IsNaN, IsInf, Where and Clip.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- Comparisons ---===//

namespace {
enum class Compare { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };
} // namespace

template <Compare kind> static Types inferCompare(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"A", "B"}, 2)) ||
      failed(node.requireSameElementType(0, 1)))
    return failure();
  bool boolean = kind == Compare::Equal && node.elementType(0).isInteger(1);
  bool anyWidth = kind == Compare::Equal;
  if ((!boolean && failed(node.requireNumber(0, anyWidth))) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  return RankedTensorType::get(shape, IntegerType::get(node.getContext(), 1));
}

template <Compare kind>
static Value comparison(NodeBinder &, Emitter &inside, Value a, Value b) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr F onFloats[] = {F::OEQ, F::OLT, F::OLE, F::OGT, F::OGE};
  static constexpr I onIntegers[] = {I::eq, I::slt, I::sle, I::sgt, I::sge};
  auto index = static_cast<unsigned>(kind);
  if (isa<FloatType>(a.getType()))
    return inside.compare(onFloats[index], a, b);
  return inside.compare(onIntegers[index], a, b);
}

template <Compare kind, typename Number>
static bool compare(Number a, Number b) {
  switch (kind) {
  case Compare::Equal:
    return a == b;
  case Compare::Less:
    return a < b;
  case Compare::LessOrEqual:
    return a <= b;
  case Compare::Greater:
    return a > b;
  case Compare::GreaterOrEqual:
    return a >= b;
  }
  return false;
}

template <Compare kind> static Constants foldCompare(NodeBinder &node) {
  SmallVector<ConstantTensor> sides = broadcastConstants(node);
  if (sides.empty())
    return {};
  const ConstantTensor &a = sides[0], &b = sides[1];
  ConstantTensor result(resultType(node));
  for (auto [i, value] : llvm::enumerate(result.integers))
    value = a.isFloat() ? compare<kind>(a.floats[i], b.floats[i])
                        : compare<kind>(a.integers[i], b.integers[i]);
  return result.pack();
}

//===--- And, Or, Xor, Not ---===//

static Types inferLogic(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"A", "B"}, 2)) || failed(node.requireBool(0)) ||
      failed(node.requireBool(1)) || failed(node.broadcast(0, shape)) ||
      failed(node.broadcast(1, shape)))
    return failure();
  return node.makeType(shape);
}

/// Conditions of shapes are folded; `combine` has them as 0 and 1.
template <int64_t (*combine)(int64_t, int64_t)>
static Constants foldLogic(NodeBinder &node) {
  SmallVector<ConstantTensor> sides = broadcastConstants(node);
  if (sides.empty())
    return {};
  for (auto [a, b] : llvm::zip_equal(sides[0].integers, sides[1].integers))
    a = combine(a, b);
  return sides[0].pack();
}

static int64_t bothOf(int64_t a, int64_t b) { return a & b; }
static int64_t anyOf(int64_t a, int64_t b) { return a | b; }
static int64_t oneOf(int64_t a, int64_t b) { return a ^ b; }

static Constants foldNot(NodeBinder &node) {
  if (!node.constant(0))
    return {};
  ConstantTensor result(node.constant(0));
  for (int64_t &value : result.integers)
    value = !value;
  return result.pack();
}

static Types inferNot(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireBool(0)))
    return failure();
  return node.type(0);
}

static Value logicalNot(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.equal(x, emitter.scalar(x.getType(), 0));
}

//===--- IsNaN, IsInf ---===//

static Types inferIsFloat(NodeBinder &node) {
  bool detect = true;
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("detect_negative", detect)) ||
      failed(node.attribute("detect_positive", detect)))
    return failure();
  return RankedTensorType::get(node.shape(0),
                               IntegerType::get(node.getContext(), 1));
}

static Value isNaN(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.compare(arith::CmpFPredicate::UNO, x, x);
}

static Value isInf(NodeBinder &node, Emitter &emitter, Value x) {
  bool negative = true, positive = true;
  (void)node.attribute("detect_negative", negative);
  (void)node.attribute("detect_positive", positive);
  Type type = x.getType();
  Value no = emitter.scalar(emitter.builder.getI1Type(), 0);
  Value isLow = negative ? emitter.equal(x, emitter.lowest(type)) : no;
  Value isHigh = positive ? emitter.equal(x, emitter.highest(type)) : no;
  return emitter.any(isLow, isHigh);
}

//===--- Where ---===//

static Types inferWhere(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"condition", "X", "Y"}, 3)) ||
      failed(node.requireBool(0)) || failed(node.requireSameElementType(1, 2)))
    return failure();
  for (unsigned i = 0; i < 3; ++i)
    if (failed(node.broadcast(i, shape)))
      return failure();
  return node.makeType(shape, 1);
}

static Values lowerWhere(NodeBinder &node, Emitter &emitter) {
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) {
    return inside.select(scalars[0], scalars[1], scalars[2]);
  };
  return emitter.elementwise(
      resultType(node), {node.operand(0), node.operand(1), node.operand(2)},
      body);
}

static Constants foldWhere(NodeBinder &node) {
  SmallVector<ConstantTensor> all = broadcastConstants(node);
  if (all.empty())
    return {};
  for (auto [i, taken] : llvm::enumerate(all[0].integers)) {
    if (taken)
      continue;
    if (all[1].isFloat())
      all[1].floats[i] = all[2].floats[i];
    else
      all[1].integers[i] = all[2].integers[i];
  }
  return all[1].pack();
}

//===--- Clip ---===//

/// The bounds are attributes up to since-version 6 and scalar operands after.
static Types inferClip(NodeBinder &node) {
  double bound = 0;
  if (failed(node.getSince() >= 11 ? node.operands({"input", "min", "max"}, 1)
                                   : node.operands({"input"}, 1)) ||
      failed(node.requireNumber(0)) || failed(node.attribute("min", bound)) ||
      failed(node.attribute("max", bound)))
    return failure();
  for (unsigned i = 1; i < node.size(); ++i) {
    if (!node.has(i))
      continue;
    if (failed(node.requireSameElementType(0, i)))
      return failure();
    if (node.type(i).getNumElements() != 1 || node.rank(i) > 1)
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must be a scalar";
  }
  return node.type(0);
}

static Values lowerClip(NodeBinder &node, Emitter &emitter) {
  SmallVector<Value> operands = {node.operand(0)};
  for (unsigned i : {1u, 2u})
    if (node.has(i))
      operands.push_back(emitter.reshape(node.operand(i), {}));
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) {
    Value value = scalars[0];
    unsigned next = 1;
    for (auto [i, name] : {std::pair(1u, "min"), std::pair(2u, "max")}) {
      Value bound;
      double given = 0;
      if (node.has(i))
        bound = scalars[next++];
      else if (node.getSince() < 11 && node.hasAttribute(name) &&
               succeeded(node.attribute(name, given)))
        bound = inside.scalar(value.getType(), given);
      if (bound)
        value = i == 1 ? inside.max(value, bound) : inside.min(value, bound);
    }
    return value;
  };
  return emitter.elementwise(node.type(0), operands, body);
}

template <Compare kind>
static void addCompare(OperatorTable &table, StringRef name,
                       std::initializer_list<int64_t> sinces) {
  table.add(name, sinces, inferCompare<kind>, foldCompare<kind>,
            lowerTwo<comparison<kind>>, Operator::Inactive);
}

void penstock::onnx::addLogic(OperatorTable &table) {
  addCompare<Compare::Equal>(table, "Equal", {7, 11, 13, 19});
  addCompare<Compare::Less>(table, "Less", {7, 9, 13});
  addCompare<Compare::Greater>(table, "Greater", {7, 9, 13});
  addCompare<Compare::LessOrEqual>(table, "LessOrEqual", {12, 16});
  addCompare<Compare::GreaterOrEqual>(table, "GreaterOrEqual", {12, 16});
  table.add("And", {7}, inferLogic, foldLogic<bothOf>,
            lowerTwo<scalarOp<arith::AndIOp>>, Operator::Inactive);
  table.add("Or", {7}, inferLogic, foldLogic<anyOf>,
            lowerTwo<scalarOp<arith::OrIOp>>, Operator::Inactive);
  table.add("Xor", {7}, inferLogic, foldLogic<oneOf>,
            lowerTwo<scalarOp<arith::XOrIOp>>, Operator::Inactive);
  table.add("Not", {1}, inferNot, foldNot, lowerUnary<logicalNot>,
            Operator::Inactive);
  table.add("IsNaN", {9, 13, 20}, inferIsFloat, nullptr, lowerUnary<isNaN>,
            Operator::Inactive);
  table.add("IsInf", {10, 20}, inferIsFloat, nullptr, lowerUnary<isInf>,
            Operator::Inactive);
  table.add("Where", {9, 16}, inferWhere, foldWhere, lowerWhere);
  table.add("Clip", {6, 11, 12, 13}, inferClip, nullptr, lowerClip);
}
