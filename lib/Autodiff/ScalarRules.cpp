//===- ScalarRules.cpp - Derivatives of scalar ops ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One entry per scalar op. A rule asks for value(result) where that is cheaper
// than value(operand): the caller reads it from the op's output when the output
// holds it, and computes it again otherwise.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/ScalarRules.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"

#include <numbers>

using namespace mlir;
using namespace penstock;
using arith::CmpFPredicate;

using S = ScalarPullback;
using Rule = void (*)(S &, Operation *, Value);

void ScalarPullback::add(Value scalar, Value contribution) {
  if (!isActive(scalar))
    return;
  Value &cotangent = cotangents[scalar];
  cotangent = cotangent ? sum(cotangent, contribution) : contribution;
}

namespace {

Value operand(S &s, Operation *op, unsigned index) {
  return s.value(op->getOperand(index));
}
Value result(S &s, Operation *op) { return s.value(op->getResult(0)); }

/// A rule for one operand: contribution = f(s, op, d).
template <auto f> void unary(S &s, Operation *op, Value d) {
  s.add(op->getOperand(0), f(s, op, d));
}

Value square(S &s, Value a) { return s.mul(a, a); }

/// d / sqrt(inside)
Value overRoot(S &s, Value d, Value inside) {
  return s.div(d, s.make<math::SqrtOp>(inside));
}

/// The larger (smaller) operand gets the cotangent. At a tie each gets half,
/// except beside a constant: max(x, 0) has the derivative 0 at 0. Beside a
/// constant, the result tells as much as the operand.
void extremum(S &s, Operation *op, Value d, bool isMaximum) {
  CmpFPredicate strict = isMaximum ? CmpFPredicate::OGT : CmpFPredicate::OLT;
  Value a = op->getOperand(0), b = op->getOperand(1);
  Value zero = s.like(d, 0);
  if (matchPattern(b, m_Constant()) || matchPattern(a, m_Constant())) {
    if (matchPattern(a, m_Constant()))
      std::swap(a, b);
    Value wins = s.compare(strict, result(s, op), s.value(b));
    s.add(a, s.select(wins, d, zero));
    return;
  }
  Value tie = s.compare(CmpFPredicate::OEQ, s.value(a), s.value(b));
  Value half = s.mul(d, s.like(d, 0.5));
  for (auto [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (!s.isActive(one))
      continue;
    Value wins = s.compare(strict, s.value(one), s.value(other));
    s.add(one, s.select(wins, d, s.select(tie, half, zero)));
  }
}

void addRule(S &s, Operation *op, Value d) {
  s.add(op->getOperand(0), d);
  s.add(op->getOperand(1), d);
}

void subRule(S &s, Operation *op, Value d) {
  s.add(op->getOperand(0), d);
  if (s.isActive(op->getOperand(1)))
    s.add(op->getOperand(1), s.neg(d));
}

void mulRule(S &s, Operation *op, Value d) {
  for (unsigned i : {0, 1})
    if (s.isActive(op->getOperand(i)))
      s.add(op->getOperand(i), s.mul(d, operand(s, op, 1 - i)));
}

void divRule(S &s, Operation *op, Value d) {
  if (Value x = matchLogistic(op)) {
    Value y = result(s, op);
    s.add(x, s.mul(d, s.mul(y, s.sub(s.like(y, 1), y))));
    return;
  }
  Value byDivisor = s.div(d, operand(s, op, 1));
  s.add(op->getOperand(0), byDivisor);
  if (s.isActive(op->getOperand(1)))
    s.add(op->getOperand(1), s.neg(s.mul(byDivisor, result(s, op))));
}

void remRule(S &s, Operation *op, Value d) {
  s.add(op->getOperand(0), d);
  if (s.isActive(op->getOperand(1))) {
    Value quotient =
        s.make<math::TruncOp>(s.div(operand(s, op, 0), operand(s, op, 1)));
    s.add(op->getOperand(1), s.neg(s.mul(d, quotient)));
  }
}

void selectRule(S &s, Operation *op, Value d) {
  Value zero = s.like(d, 0);
  for (unsigned i : {1, 2})
    if (s.isActive(op->getOperand(i)))
      s.add(op->getOperand(i),
            s.select(operand(s, op, 0), i == 1 ? d : zero, i == 1 ? zero : d));
}

void fmaRule(S &s, Operation *op, Value d) {
  mulRule(s, op, d);
  s.add(op->getOperand(2), d);
}

void powRule(S &s, Operation *op, Value d) {
  Value a = operand(s, op, 0), b = operand(s, op, 1);
  Value zero = s.like(d, 0), one = s.like(d, 1);
  if (s.isActive(op->getOperand(0))) {
    Value slope = s.mul(b, s.make<math::PowFOp>(a, s.sub(b, one)));
    Value flat = s.compare(CmpFPredicate::OEQ, b, zero);
    s.add(op->getOperand(0), s.select(flat, zero, s.mul(d, slope)));
  }
  if (s.isActive(op->getOperand(1))) {
    // 0^b is constant for b >= 0, while its logarithm is not finite.
    Value slope = s.mul(result(s, op), s.make<math::LogOp>(a));
    Value atZero = s.compare(CmpFPredicate::OEQ, a, zero);
    Value grows = s.compare(CmpFPredicate::OGE, b, zero);
    Value flat = s.make<arith::AndIOp>(atZero, grows);
    s.add(op->getOperand(1), s.select(flat, zero, s.mul(d, slope)));
  }
}

void atan2Rule(S &s, Operation *op, Value d) {
  Value y = operand(s, op, 0), x = operand(s, op, 1);
  Value scaled = s.div(d, s.sum(square(s, x), square(s, y)));
  s.add(op->getOperand(0), s.mul(scaled, x));
  if (s.isActive(op->getOperand(1)))
    s.add(op->getOperand(1), s.neg(s.mul(scaled, y)));
}

Value absSlope(S &s, Operation *op, Value d) {
  Value x = operand(s, op, 0), zero = s.like(d, 0);
  Value negative = s.compare(CmpFPredicate::OLT, x, zero);
  Value positive = s.compare(CmpFPredicate::OGT, x, zero);
  return s.select(positive, d, s.select(negative, s.neg(d), zero));
}

Value copySignSlope(S &s, Operation *op, Value d) {
  Value one = s.like(d, 1);
  Value a = s.make<math::CopySignOp>(one, operand(s, op, 0));
  Value b = s.make<math::CopySignOp>(one, operand(s, op, 1));
  return s.mul(d, s.mul(a, b));
}

/// d * scale * exp(-x^2): erf and erfc.
template <int sign> Value erfSlope(S &s, Operation *op, Value d) {
  Value bell = s.make<math::ExpOp>(s.neg(square(s, operand(s, op, 0))));
  return s.mul(d, s.mul(s.like(d, sign * 2 * std::numbers::inv_sqrtpi), bell));
}

/// d / (scale * x): the logarithms.
template <int base> Value logSlope(S &s, Operation *op, Value d) {
  Value slope = s.div(d, operand(s, op, 0));
  if (base == 0)
    return slope;
  double scale = base == 2 ? std::numbers::log2e : std::numbers::log10e;
  return s.mul(slope, s.like(d, scale));
}

template <int sign> Value arcSlope(S &s, Operation *op, Value d) {
  Value inside = s.sub(s.like(d, 1), square(s, operand(s, op, 0)));
  return overRoot(s, sign < 0 ? s.neg(d) : d, inside);
}

#define SLOPE(expression)                                                      \
  unary<+[](S &s, Operation *op, Value d) -> Value { return expression; }>

struct Entry {
  StringLiteral name;
  Rule rule;
};

const Entry entries[] = {
    {"arith.addf", addRule},
    {"arith.subf", subRule},
    {"arith.mulf", mulRule},
    {"arith.divf", divRule},
    {"arith.remf", remRule},
    {"arith.negf", SLOPE(s.neg(d))},
    {"arith.select", selectRule},
    {"arith.maximumf",
     [](S &s, Operation *op, Value d) { extremum(s, op, d, true); }},
    {"arith.maxnumf",
     [](S &s, Operation *op, Value d) { extremum(s, op, d, true); }},
    {"arith.minimumf",
     [](S &s, Operation *op, Value d) { extremum(s, op, d, false); }},
    {"arith.minnumf",
     [](S &s, Operation *op, Value d) { extremum(s, op, d, false); }},
    {"arith.extf",
     SLOPE(s.make<arith::TruncFOp>(op->getOperand(0).getType(), d))},
    {"arith.truncf",
     SLOPE(s.make<arith::ExtFOp>(op->getOperand(0).getType(), d))},
    {"math.absf", unary<absSlope>},
    {"math.acos", unary<arcSlope<-1>>},
    {"math.acosh",
     SLOPE(overRoot(s, d, s.sub(square(s, operand(s, op, 0)), s.like(d, 1))))},
    {"math.asin", unary<arcSlope<1>>},
    {"math.asinh",
     SLOPE(overRoot(s, d, s.sum(square(s, operand(s, op, 0)), s.like(d, 1))))},
    {"math.atan",
     SLOPE(s.div(d, s.sum(s.like(d, 1), square(s, operand(s, op, 0)))))},
    {"math.atan2", atan2Rule},
    {"math.atanh",
     SLOPE(s.div(d, s.sub(s.like(d, 1), square(s, operand(s, op, 0)))))},
    {"math.copysign", unary<copySignSlope>},
    {"math.cos",
     SLOPE(s.neg(s.mul(d, s.make<math::SinOp>(operand(s, op, 0)))))},
    {"math.cosh", SLOPE(s.mul(d, s.make<math::SinhOp>(operand(s, op, 0))))},
    {"math.erf", unary<erfSlope<1>>},
    {"math.erfc", unary<erfSlope<-1>>},
    {"math.exp", SLOPE(s.mul(d, result(s, op)))},
    {"math.exp2",
     SLOPE(s.mul(d, s.mul(s.like(d, std::numbers::ln2), result(s, op))))},
    {"math.expm1", SLOPE(s.mul(d, s.sum(result(s, op), s.like(d, 1))))},
    {"math.fma", fmaRule},
    {"math.log", unary<logSlope<0>>},
    {"math.log10", unary<logSlope<10>>},
    {"math.log1p", SLOPE(s.div(d, s.sum(s.like(d, 1), operand(s, op, 0))))},
    {"math.log2", unary<logSlope<2>>},
    {"math.powf", powRule},
    {"math.rsqrt", SLOPE(s.mul(s.mul(d, s.like(d, -0.5)),
                               s.div(result(s, op), operand(s, op, 0))))},
    {"math.sin", SLOPE(s.mul(d, s.make<math::CosOp>(operand(s, op, 0))))},
    {"math.sinh", SLOPE(s.mul(d, s.make<math::CoshOp>(operand(s, op, 0))))},
    {"math.sqrt", SLOPE(s.div(s.mul(d, s.like(d, 0.5)), result(s, op)))},
    {"math.tan",
     SLOPE(s.mul(d, s.sum(s.like(d, 1), square(s, result(s, op)))))},
    {"math.tanh",
     SLOPE(s.mul(d, s.sub(s.like(d, 1), square(s, result(s, op)))))},
};

#undef SLOPE

/// Returns true if `value` is the float constant `number`.
bool isConstant(Value value, double number) {
  FloatAttr attr;
  return matchPattern(value, m_Constant(&attr)) &&
         attr.getValueAsDouble() == number;
}

} // namespace

Value penstock::matchLogistic(Operation *op) {
  auto quotient = dyn_cast<arith::DivFOp>(op);
  if (!quotient || !isConstant(quotient.getLhs(), 1))
    return nullptr;
  auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
  if (!sum)
    return nullptr;
  Value power = isConstant(sum.getLhs(), 1)   ? sum.getRhs()
                : isConstant(sum.getRhs(), 1) ? sum.getLhs()
                                              : Value();
  auto exponential = power ? power.getDefiningOp<math::ExpOp>() : nullptr;
  auto negated = exponential
                     ? exponential.getOperand().getDefiningOp<arith::NegFOp>()
                     : nullptr;
  return negated ? negated.getOperand() : nullptr;
}

bool penstock::isLocallyConstant(Operation *op) {
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<FloatType>))
    return true;
  return isa<arith::SIToFPOp, arith::UIToFPOp, arith::ConstantOp, math::FloorOp,
             math::CeilOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>(op);
}

LogicalResult penstock::pullBackScalar(Operation *op, Value cotangent,
                                       ScalarPullback &pullback) {
  static const llvm::StringMap<Rule> table = [] {
    llvm::StringMap<Rule> table;
    for (const Entry &entry : entries)
      table[entry.name] = entry.rule;
    return table;
  }();
  auto rule = table.find(op->getName().getStringRef());
  if (rule == table.end())
    return failure();
  rule->second(pullback, op, cotangent);
  return success();
}
