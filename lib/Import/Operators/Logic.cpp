//===- Logic.cpp - Comparisons, logic and selection -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal, Less and their kin, And, Or, Not, IsNaN, IsInf, Where and Clip.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- Comparisons ---===//

namespace {
enum class Compare { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };
} // namespace

template <Compare kind>
static LogicalResult inferCompare(NodeBinder &node, Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"A", "B"}, 2)) ||
      failed(node.requireSameElementType(0, 1)))
    return failure();
  bool boolean = kind == Compare::Equal && node.elementType(0).isInteger(1);
  bool anyWidth = kind == Compare::Equal;
  if ((!boolean && failed(node.requireNumber(0, anyWidth))) ||
      failed(node.broadcast(0, shape)) || failed(node.broadcast(1, shape)))
    return failure();
  types.push_back(
      RankedTensorType::get(shape, IntegerType::get(node.getContext(), 1)));
  return success();
}

template <Compare kind>
static LogicalResult lowerCompare(NodeBinder &node, OpBuilder &builder,
                                  Values &results) {
  Emitter emitter(builder, node.getLoc());
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    using F = arith::CmpFPredicate;
    using I = arith::CmpIPredicate;
    static constexpr F onFloats[] = {F::OEQ, F::OLT, F::OLE, F::OGT, F::OGE};
    static constexpr I onIntegers[] = {I::eq, I::slt, I::sle, I::sgt, I::sge};
    auto index = static_cast<unsigned>(kind);
    if (isa<FloatType>(scalars[0].getType()))
      return arith::CmpFOp::create(inside.builder, inside.loc, onFloats[index],
                                   scalars[0], scalars[1]);
    return arith::CmpIOp::create(inside.builder, inside.loc, onIntegers[index],
                                 scalars[0], scalars[1]);
  };
  results.push_back(emitter.elementwise(
      resultType(node), {node.operand(0), node.operand(1)}, body));
  return success();
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

template <Compare kind>
static LogicalResult foldCompare(NodeBinder &node, Constants &results) {
  DenseElementsAttr constants[] = {node.constant(0), node.constant(1)};
  if (!constants[0] || !constants[1])
    return success();
  ArrayRef<int64_t> shape = resultType(node).getShape();
  ConstantTensor a = ConstantTensor(constants[0]).broadcast(shape);
  ConstantTensor b = ConstantTensor(constants[1]).broadcast(shape);
  ConstantTensor result(resultType(node));
  for (auto [i, value] : llvm::enumerate(result.integers))
    value = a.isFloat() ? compare<kind>(a.floats[i], b.floats[i])
                        : compare<kind>(a.integers[i], b.integers[i]);
  results.push_back(result.pack());
  return success();
}

//===--- And, Or, Xor, Not ---===//

static LogicalResult inferLogic(NodeBinder &node, Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"A", "B"}, 2)) || failed(node.requireBool(0)) ||
      failed(node.requireBool(1)) || failed(node.broadcast(0, shape)) ||
      failed(node.broadcast(1, shape)))
    return failure();
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

/// Conditions of shapes are folded; `combine` has them as 0 and 1.
template <int64_t (*combine)(int64_t, int64_t)>
static LogicalResult foldLogic(NodeBinder &node, Constants &results) {
  DenseElementsAttr constants[] = {node.constant(0), node.constant(1)};
  if (!constants[0] || !constants[1])
    return success();
  ArrayRef<int64_t> shape = resultType(node).getShape();
  ConstantTensor result = ConstantTensor(constants[0]).broadcast(shape);
  ConstantTensor other = ConstantTensor(constants[1]).broadcast(shape);
  for (auto [a, b] : llvm::zip_equal(result.integers, other.integers))
    a = combine(a, b);
  results.push_back(result.pack());
  return success();
}

static int64_t bothOf(int64_t a, int64_t b) { return a & b; }
static int64_t anyOf(int64_t a, int64_t b) { return a | b; }
static int64_t oneOf(int64_t a, int64_t b) { return a ^ b; }

static LogicalResult foldNot(NodeBinder &node, Constants &results) {
  if (!node.constant(0))
    return success();
  ConstantTensor result(node.constant(0));
  for (int64_t &value : result.integers)
    value = !value;
  results.push_back(result.pack());
  return success();
}

static LogicalResult inferNot(NodeBinder &node, Types &types) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireBool(0)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

static Value logicalNot(NodeBinder &, Emitter &emitter, Value x) {
  return emitter.equal(x, emitter.scalar(x.getType(), 0));
}

//===--- IsNaN, IsInf ---===//

static LogicalResult inferIsFloat(NodeBinder &node, Types &types) {
  bool detect = true;
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("detect_negative", detect)) ||
      failed(node.attribute("detect_positive", detect)))
    return failure();
  types.push_back(RankedTensorType::get(
      node.shape(0), IntegerType::get(node.getContext(), 1)));
  return success();
}

template <Value (*scalar)(NodeBinder &, Emitter &, Value)>
static LogicalResult lowerIsFloat(NodeBinder &node, OpBuilder &builder,
                                  Values &results) {
  Emitter emitter(builder, node.getLoc());
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) {
    return scalar(node, inside, scalars[0]);
  };
  results.push_back(
      emitter.elementwise(resultType(node), node.operand(0), body));
  return success();
}

static Value isNaN(NodeBinder &, Emitter &emitter, Value x) {
  return arith::CmpFOp::create(emitter.builder, emitter.loc,
                               arith::CmpFPredicate::UNO, x, x);
}

static Value isInf(NodeBinder &node, Emitter &emitter, Value x) {
  bool negative = true, positive = true;
  (void)node.attribute("detect_negative", negative);
  (void)node.attribute("detect_positive", positive);
  Type type = x.getType();
  Value no = emitter.scalar(emitter.builder.getI1Type(), 0);
  Value isLow = negative ? emitter.equal(x, emitter.lowest(type)) : no;
  Value isHigh = positive ? emitter.equal(x, emitter.highest(type)) : no;
  return arith::OrIOp::create(emitter.builder, emitter.loc, isLow, isHigh);
}

//===--- Where ---===//

static LogicalResult inferWhere(NodeBinder &node, Types &types) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"condition", "X", "Y"}, 3)) ||
      failed(node.requireBool(0)) || failed(node.requireSameElementType(1, 2)))
    return failure();
  for (unsigned i = 0; i < 3; ++i)
    if (failed(node.broadcast(i, shape)))
      return failure();
  types.push_back(RankedTensorType::get(shape, node.elementType(1)));
  return success();
}

static LogicalResult lowerWhere(NodeBinder &node, OpBuilder &builder,
                                Values &results) {
  Emitter emitter(builder, node.getLoc());
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) {
    return inside.select(scalars[0], scalars[1], scalars[2]);
  };
  results.push_back(emitter.elementwise(
      resultType(node), {node.operand(0), node.operand(1), node.operand(2)},
      body));
  return success();
}

static LogicalResult foldWhere(NodeBinder &node, Constants &results) {
  DenseElementsAttr constants[] = {node.constant(0), node.constant(1),
                                   node.constant(2)};
  if (!llvm::all_of(constants, [](auto constant) { return !!constant; }))
    return success();
  ArrayRef<int64_t> shape = resultType(node).getShape();
  ConstantTensor condition = ConstantTensor(constants[0]).broadcast(shape);
  ConstantTensor result = ConstantTensor(constants[1]).broadcast(shape);
  ConstantTensor other = ConstantTensor(constants[2]).broadcast(shape);
  for (auto [i, taken] : llvm::enumerate(condition.integers)) {
    if (taken)
      continue;
    if (result.isFloat())
      result.floats[i] = other.floats[i];
    else
      result.integers[i] = other.integers[i];
  }
  results.push_back(result.pack());
  return success();
}

//===--- Clip ---===//

/// The bounds are attributes up to since-version 6 and scalar operands after.
static LogicalResult inferClip(NodeBinder &node, Types &types) {
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
  types.push_back(node.type(0));
  return success();
}

static LogicalResult lowerClip(NodeBinder &node, OpBuilder &builder,
                               Values &results) {
  Emitter emitter(builder, node.getLoc());
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
  results.push_back(emitter.elementwise(node.type(0), operands, body));
  return success();
}

template <Compare kind>
static void addCompare(OperatorTable &table, StringRef name,
                       std::initializer_list<int64_t> sinces) {
  table.add(name, sinces, inferCompare<kind>, foldCompare<kind>,
            lowerCompare<kind>, Operator::Inactive);
}

void penstock::onnx::addLogic(OperatorTable &table) {
  addCompare<Compare::Equal>(table, "Equal", {7, 11, 13, 19});
  addCompare<Compare::Less>(table, "Less", {7, 9, 13});
  addCompare<Compare::Greater>(table, "Greater", {7, 9, 13});
  addCompare<Compare::LessOrEqual>(table, "LessOrEqual", {12, 16});
  addCompare<Compare::GreaterOrEqual>(table, "GreaterOrEqual", {12, 16});
  table.add("And", {7}, inferLogic, foldLogic<bothOf>, lowerToOp<arith::AndIOp>,
            Operator::Inactive);
  table.add("Or", {7}, inferLogic, foldLogic<anyOf>, lowerToOp<arith::OrIOp>,
            Operator::Inactive);
  table.add("Xor", {7}, inferLogic, foldLogic<oneOf>, lowerToOp<arith::XOrIOp>,
            Operator::Inactive);
  table.add("Not", {1}, inferNot, foldNot, lowerUnary<logicalNot>,
            Operator::Inactive);
  table.add("IsNaN", {9, 13, 20}, inferIsFloat, nullptr, lowerIsFloat<isNaN>,
            Operator::Inactive);
  table.add("IsInf", {10, 20}, inferIsFloat, nullptr, lowerIsFloat<isInf>,
            Operator::Inactive);
  table.add("Where", {9, 16}, inferWhere, foldWhere, lowerWhere);
  table.add("Clip", {6, 11, 12, 13}, inferClip, nullptr, lowerClip);
}
