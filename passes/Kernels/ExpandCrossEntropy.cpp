//===- ExpandCrossEntropy.cpp - Softmax and cross-entropy as generics -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Once derivatives are taken, nothing needs softmax and cross-entropy whole.
// Each becomes a few generics in their stable form. Labels are compared with
// the column number, never used as an address: a bad label cannot read or write
// out of bounds, and turns the loss into NaN instead.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Kernels/ClassRows.h"
#include "passes/Kernels/Composites.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>
#include <numeric>
#include <optional>

using namespace mlir;
using namespace penstock;

namespace {

struct ExpandSoftmax : OpRewritePattern<linalg::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::SoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not on tensors");
    ClassRows rows(rewriter, op.getLoc(), type, op.getDimension());
    StableExp parts = computeStableExp(rows, op.getInput());
    rewriter.replaceOp(op, divideBySum(rows, parts));
    return success();
  }
};

struct ExpandLogSoftmax : OpRewritePattern<nn::LogSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::LogSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    ClassRows rows(rewriter, op.getLoc(), op.getInput().getType(), op.getDim());
    StableExp parts = computeStableExp(rows, op.getInput());
    Value logSum = rows.perRow(
        parts.sum, [](OpBuilder &b, Location loc, ValueRange in, Value) {
          return math::LogOp::create(b, loc, in[0]);
        });
    // x - max first: it is exact where the logarithm matters.
    Value result = rows.elements(
        {op.getInput(), parts.maximum, logSum},
        [](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
          return arith::SubFOp::create(b, loc, shifted, in[2]);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Whether the label of a row counts, and whether it names a class.
struct LabelTests {
  Value counts, valid;
};

LabelTests testLabel(ClassRows &rows, OpBuilder &b, Location loc, Value label,
                     std::optional<int64_t> ignore) {
  Type type = label.getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  LabelTests tests;
  // Unsigned, so that negative labels are out of range as well.
  tests.valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, label,
                                      constant(rows.classes()));
  if (ignore)
    tests.counts = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                         label, constant(*ignore));
  return tests;
}

/// The number of labels that count, as a scalar tensor of integers; none when
/// all of them do.
Value countLabels(ClassRows &rows, OpBuilder &builder, Value labels,
                  std::optional<int64_t> ignore) {
  if (!ignore)
    return {};
  Type i64 = builder.getI64Type();
  return rows.total(
      labels, rows.integer(i64, 0),
      [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
        Value counts = testLabel(rows, b, loc, in[0], ignore).counts;
        Value one = arith::ExtUIOp::create(b, loc, i64, counts);
        return arith::AddIOp::create(b, loc, one, old);
      });
}

/// The divisor of the mean over the labels: a constant, or a value counted.
/// Where no label counts, sum and gradient are 0, and so is what is left of
/// them.
Value divisor(ClassRows &rows, OpBuilder &b, Location loc, Value counted) {
  if (!counted)
    return rows.constant(static_cast<double>(rows.count()));
  Value one =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(counted.getType(), 1));
  counted = arith::MaxSIOp::create(b, loc, counted, one);
  return arith::SIToFPOp::create(b, loc, rows.elementType(), counted);
}

std::optional<int64_t> toOptional(std::optional<uint64_t> ignore) {
  if (!ignore)
    return std::nullopt;
  return static_cast<int64_t>(*ignore);
}

/// What a row is compared with: its label with 1 - `smoothing`, and every class
/// with an equal share of the rest, each times its weight.
class Targets {
public:
  template <typename OpTy>
  Targets(OpTy op, ClassRows &rows, OpBuilder &builder)
      : rows(rows), labels(op.getLabels()), ignore(toOptional(op.getIgnore())) {
    if (auto amount = op.getSmoothing())
      smoothing = amount->convertToDouble();
    total = static_cast<double>(rows.classes());
    if (auto values = op.getClassWeights()) {
      total = std::accumulate(values->begin(), values->end(), 0.0);
      weights = rows.perClass(*values);
      ofLabels = pick(weights);
    }
    counted =
        weights ? sumWeights() : countLabels(rows, builder, labels, ignore);
  }

  /// The part of a class, before its weight.
  double getShare() const {
    return smoothing / static_cast<double>(rows.classes());
  }

  /// The element of `values` (full or per class) at the label of each row: the
  /// only term of this sum that is not zero.
  Value pick(Value values) {
    Value zero = rows.constant(0.0);
    return rows.reduce(
        {values, labels}, 0.0,
        [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
          Value term = arith::SelectOp::create(b, loc, isLabel(b, loc, in[1]),
                                               in[0], zero);
          return arith::AddFOp::create(b, loc, term, old);
        });
  }

  /// Whether the current element is that of the label.
  Value isLabel(OpBuilder &b, Location loc, Value label) {
    Value number = rows.classNumber(b, loc, label.getType());
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                                 label);
  }

  /// The divisor of the mean: a constant, or what was counted or added up.
  Value divisor(OpBuilder &b, Location loc, Value value) {
    if (!weights || !ignore)
      return weights ? value : ::divisor(rows, b, loc, value);
    // Where all labels are ignored, nothing is divided by nothing.
    auto constant = [&](double number) -> Value {
      return arith::ConstantOp::create(
          b, loc, b.getFloatAttr(rows.elementType(), number));
    };
    Value isNone = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         value, constant(0));
    return arith::SelectOp::create(b, loc, isNone, constant(1), value);
  }

  ClassRows &rows;
  Value labels;
  std::optional<int64_t> ignore;
  double smoothing = 0;
  /// The sum of the weights of all classes.
  double total;
  /// Per class, and of the label of each row; null if each counts once.
  Value weights, ofLabels;
  /// The divisor as a scalar tensor; null if it is the number of rows.
  Value counted;

private:
  Value sumWeights() {
    Value zero = rows.constant(0.0);
    return rows.total(
        {ofLabels, labels}, zero,
        [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
          Value weight = in[0];
          if (Value counts = testLabel(rows, b, loc, in[1], ignore).counts)
            weight = arith::SelectOp::create(b, loc, counts, weight, zero);
          return arith::AddFOp::create(b, loc, weight, old);
        });
  }
};

struct ExpandCrossEntropy : OpRewritePattern<nn::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    auto type = op.getLogits().getType();
    Location loc = op.getLoc();
    ClassRows rows(rewriter, loc, type, type.getRank() - 1);
    StableExp parts = computeStableExp(rows, op.getLogits());
    Targets targets(op, rows, rewriter);
    Value picked = targets.pick(op.getLogits());

    // Per row log(sum) - (z - max), added up over the rows, then the mean.
    Value zero = rows.constant(0.0);
    Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
    SmallVector<Value> operands{parts.sum, parts.maximum, picked,
                                op.getLabels()};
    if (targets.weights)
      operands.push_back(targets.ofLabels);
    if (targets.smoothing != 0)
      operands.push_back(sumShifted(targets, op.getLogits(), parts.maximum));
    Value sum = rows.total(
        operands, zero,
        [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
          LabelTests tests = testLabel(rows, b, loc, in[3], targets.ignore);
          Value logSum = math::LogOp::create(b, loc, in[0]);
          Value term = arith::SubFOp::create(
              b, loc, logSum, arith::SubFOp::create(b, loc, in[2], in[1]));
          if (targets.weights)
            term = arith::MulFOp::create(b, loc, term, in[4]);
          if (targets.smoothing != 0)
            term = spread(targets, b, loc, term, logSum, in.back());
          term = arith::SelectOp::create(b, loc, tests.valid, term, nan);
          if (tests.counts)
            term = arith::SelectOp::create(b, loc, tests.counts, term, zero);
          return arith::AddFOp::create(b, loc, term, old);
        });
    Value counted = targets.counted;
    SmallVector<Value> inputs{sum};
    if (counted)
      inputs.push_back(counted);
    ClassRows scalar(rewriter, loc,
                     RankedTensorType::get({1}, rows.elementType()), 0);
    Value loss = scalar.perRow(
        inputs, [&](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          Value by = targets.divisor(b, loc, counted ? in[1] : Value());
          return arith::DivFOp::create(b, loc, in[0], by);
        });
    Value probabilities;
    if (!op.getProbabilities().use_empty())
      probabilities = divideBySum(rows, parts);
    else
      probabilities = parts.exponentials; // No use: any value of the type.
    rewriter.replaceOp(op, {loss, probabilities});
    return success();
  }

private:
  /// Per row the sum of w * (z - max).
  static Value sumShifted(Targets &targets, Value logits, Value maximum) {
    SmallVector<Value> inputs{logits, maximum};
    if (targets.weights)
      inputs.push_back(targets.weights);
    return targets.rows.reduce(
        inputs, 0.0,
        [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
          Value term = arith::SubFOp::create(b, loc, in[0], in[1]);
          if (targets.weights)
            term = arith::MulFOp::create(b, loc, term, in[2]);
          return arith::AddFOp::create(b, loc, term, old);
        });
  }

  /// (1 - e) * term + e / C * (sum(w) * log(sum) - sum(w * (z - max)))
  static Value spread(Targets &targets, OpBuilder &b, Location loc, Value term,
                      Value logSum, Value shifted) {
    ClassRows &rows = targets.rows;
    auto constant = [&](double value) -> Value {
      return arith::ConstantOp::create(
          b, loc, b.getFloatAttr(rows.elementType(), value));
    };
    Value all = arith::SubFOp::create(
        b, loc, arith::MulFOp::create(b, loc, constant(targets.total), logSum),
        shifted);
    return arith::AddFOp::create(
        b, loc,
        arith::MulFOp::create(b, loc, constant(1 - targets.smoothing), term),
        arith::MulFOp::create(b, loc, constant(targets.getShare()), all));
  }
};

struct ExpandCrossEntropyGrad : OpRewritePattern<nn::CrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CrossEntropyGradOp op,
                                PatternRewriter &rewriter) const override {
    auto type = op.getProbabilities().getType();
    ClassRows rows(rewriter, op.getLoc(), type, type.getRank() - 1);
    Targets targets(op, rows, rewriter);
    Value counted = targets.counted;

    // The factor of a row: seed / count, or zero when its label is ignored.
    Value zero = rows.constant(0.0);
    Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
    SmallVector<Value> inputs{op.getLabels(), op.getSeed()};
    if (counted)
      inputs.push_back(counted);
    Value factor = rows.perRow(
        inputs, [&](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          LabelTests tests = testLabel(rows, b, loc, in[0], targets.ignore);
          Value by = targets.divisor(b, loc, counted ? in[2] : Value());
          Value value = arith::DivFOp::create(b, loc, in[1], by);
          value = arith::SelectOp::create(b, loc, tests.valid, value, nan);
          if (tests.counts)
            value = arith::SelectOp::create(b, loc, tests.counts, value, zero);
          return value;
        });

    // Each probability times the sum of its row's targets, less its target.
    double share = targets.getShare(), rest = 1 - targets.smoothing;
    Value hitTarget = rows.constant(rest + (targets.weights ? 0 : share));
    Value missTarget = rows.constant(targets.weights ? 0 : share);
    Value shares = targets.weights ? rows.constant(share) : Value();
    Value all =
        targets.weights ? rows.constant(share * targets.total) : Value();
    Value label = targets.weights ? rows.constant(rest) : Value();
    SmallVector<Value> operands{op.getProbabilities(), op.getLabels(), factor};
    if (targets.weights)
      operands.append({targets.ofLabels, targets.weights});
    Value result = rows.elements(
        operands,
        [&](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          Value hit = targets.isLabel(b, loc, in[1]);
          Value target =
              arith::SelectOp::create(b, loc, hit, hitTarget, missTarget);
          Value probability = in[0];
          if (targets.weights) {
            Value sum = arith::AddFOp::create(
                b, loc, arith::MulFOp::create(b, loc, label, in[3]), all);
            probability = arith::MulFOp::create(b, loc, probability, sum);
            target = arith::MulFOp::create(
                b, loc, arith::AddFOp::create(b, loc, target, shares), in[4]);
          }
          Value difference = arith::SubFOp::create(b, loc, probability, target);
          return arith::MulFOp::create(b, loc, difference, in[2]);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void penstock::populateExpandCrossEntropy(RewritePatternSet &patterns) {
  patterns.add<ExpandSoftmax, ExpandLogSoftmax, ExpandCrossEntropy,
               ExpandCrossEntropyGrad>(patterns.getContext());
}
