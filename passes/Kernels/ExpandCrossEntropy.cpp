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
#include "passes/Kernels/Composites.h"
#include "passes/Kernels/Rows.h"

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
    Rows rows(rewriter, op.getLoc(), type,
              static_cast<int64_t>(op.getDimension()));
    StableExp parts = computeStableExp(rows, op.getInput());
    rewriter.replaceOp(op, divideBySum(rows, parts));
    return success();
  }
};

struct ExpandLogSoftmax : OpRewritePattern<nn::LogSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::LogSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    Rows rows(rewriter, op.getLoc(), op.getInput().getType(),
              static_cast<int64_t>(op.getDim()));
    StableExp parts = computeStableExp(rows, op.getInput());
    Value logSum = rows.perRow(parts.sum, [](Scalars &s, ValueRange in, Value) {
      return s.make<math::LogOp>(in[0]);
    });
    // x - max first: it is exact where the logarithm matters.
    rewriter.replaceOp(op, rows.elements({op.getInput(), parts.maximum, logSum},
                                         [](Scalars &s, ValueRange in, Value) {
                                           return s.sub(s.sub(in[0], in[1]),
                                                        in[2]);
                                         }));
    return success();
  }
};

/// Two tests of a row's label: if it counts, and if it names a class.
struct LabelTests {
  Value counts, valid;
};

LabelTests testLabel(Rows &rows, Scalars &s, Value label,
                     std::optional<int64_t> ignore) {
  LabelTests tests;
  // Unsigned, so that negative labels are out of range as well.
  tests.valid = s.compare(arith::CmpIPredicate::ult, label,
                          s.integer(label.getType(), rows.classes()));
  if (ignore)
    tests.counts = s.compare(arith::CmpIPredicate::ne, label,
                             s.integer(label.getType(), *ignore));
  return tests;
}

/// The number of labels that count, as a scalar tensor of integers; none when
/// all of them do.
Value countLabels(Rows &rows, OpBuilder &builder, Value labels,
                  std::optional<int64_t> ignore) {
  if (!ignore)
    return {};
  Type i64 = builder.getI64Type();
  return rows.total(labels, rows.integer(i64, 0),
                    [&](Scalars &s, ValueRange in, Value old) {
                      Value counts = testLabel(rows, s, in[0], ignore).counts;
                      return s.add(s.make<arith::ExtUIOp>(i64, counts), old);
                    });
}

std::optional<int64_t> toOptional(std::optional<uint64_t> ignore) {
  if (!ignore)
    return std::nullopt;
  return static_cast<int64_t>(*ignore);
}

/// The target of a row: its label with 1 - `smoothing`, and every class with an
/// equal share of the rest, each times its weight.
class Targets {
public:
  template <typename OpTy>
  Targets(OpTy op, Rows &rows, OpBuilder &builder)
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
        {values, labels}, 0.0, [&](Scalars &s, ValueRange in, Value old) {
          return s.add(s.select(isLabel(s, in[1]), in[0], zero), old);
        });
  }

  /// Emits true if the current element is that of the label.
  Value isLabel(Scalars &s, Value label) {
    return s.equal(rows.classNumber(s, label.getType()), label);
  }

  /// The divisor of the mean: a constant, or what was counted or added up.
  /// Where no label counts, sum and gradient are 0, and so is what is left of
  /// them.
  Value divisor(Scalars &s, Value value) {
    if (!value)
      return rows.constant(static_cast<double>(rows.count()));
    if (!weights)
      return s.make<arith::SIToFPOp>(rows.elementType(),
                                     s.max(value, s.like(value, 1)));
    if (!ignore)
      return value;
    Value isNone =
        s.compare(arith::CmpFPredicate::OEQ, value, s.like(value, 0));
    return s.select(isNone, s.like(value, 1), value);
  }

  Rows &rows;
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
        {ofLabels, labels}, zero, [&](Scalars &s, ValueRange in, Value old) {
          Value weight = in[0];
          if (Value counts = testLabel(rows, s, in[1], ignore).counts)
            weight = s.select(counts, weight, zero);
          return s.add(weight, old);
        });
  }
};

struct ExpandCrossEntropy : OpRewritePattern<nn::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    auto type = op.getLogits().getType();
    Location loc = op.getLoc();
    Rows rows(rewriter, loc, type, type.getRank() - 1);
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
    Value sum =
        rows.total(operands, zero, [&](Scalars &s, ValueRange in, Value old) {
          LabelTests tests = testLabel(rows, s, in[3], targets.ignore);
          Value logSum = s.make<math::LogOp>(in[0]);
          Value term = s.sub(logSum, s.sub(in[2], in[1]));
          if (targets.weights)
            term = s.mul(term, in[4]);
          if (targets.smoothing != 0)
            term = spread(targets, s, term, logSum, in.back());
          term = s.select(tests.valid, term, nan);
          if (tests.counts)
            term = s.select(tests.counts, term, zero);
          return s.add(term, old);
        });
    Value counted = targets.counted;
    SmallVector<Value> inputs{sum};
    if (counted)
      inputs.push_back(counted);
    Rows scalar(rewriter, loc, RankedTensorType::get({1}, rows.elementType()),
                int64_t(0));
    Value loss = scalar.perRow(inputs, [&](Scalars &s, ValueRange in, Value) {
      Value by = targets.divisor(s, counted ? in[1] : Value());
      return s.div(in[0], by);
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
    return targets.rows.reduce(inputs, 0.0,
                               [&](Scalars &s, ValueRange in, Value old) {
                                 Value term = s.sub(in[0], in[1]);
                                 if (targets.weights)
                                   term = s.mul(term, in[2]);
                                 return s.add(term, old);
                               });
  }

  /// (1 - e) * term + e / C * (sum(w) * log(sum) - sum(w * (z - max)))
  static Value spread(Targets &targets, Scalars &s, Value term, Value logSum,
                      Value shifted) {
    Value all = s.sub(s.mul(s.like(term, targets.total), logSum), shifted);
    Value rest = s.mul(s.like(term, 1 - targets.smoothing), term);
    return s.add(rest, s.mul(s.like(term, targets.getShare()), all));
  }
};

struct ExpandCrossEntropyGrad : OpRewritePattern<nn::CrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CrossEntropyGradOp op,
                                PatternRewriter &rewriter) const override {
    auto type = op.getProbabilities().getType();
    Rows rows(rewriter, op.getLoc(), type, type.getRank() - 1);
    Targets targets(op, rows, rewriter);
    Value counted = targets.counted;

    // The factor of a row: seed / count, or zero when its label is ignored.
    Value zero = rows.constant(0.0);
    Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
    SmallVector<Value> inputs{op.getLabels(), op.getSeed()};
    if (counted)
      inputs.push_back(counted);
    Value factor = rows.perRow(inputs, [&](Scalars &s, ValueRange in, Value) {
      LabelTests tests = testLabel(rows, s, in[0], targets.ignore);
      Value by = targets.divisor(s, counted ? in[2] : Value());
      Value value = s.select(tests.valid, s.div(in[1], by), nan);
      return tests.counts ? s.select(tests.counts, value, zero) : value;
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
    rewriter.replaceOp(op, rows.elements(operands, [&](Scalars &s,
                                                       ValueRange in, Value) {
      Value target = s.select(targets.isLabel(s, in[1]), hitTarget, missTarget);
      Value probability = in[0];
      if (targets.weights) {
        probability = s.mul(probability, s.add(s.mul(label, in[3]), all));
        target = s.mul(s.add(target, shares), in[4]);
      }
      return s.mul(s.sub(probability, target), in[2]);
    }));
    return success();
  }
};

} // namespace

void penstock::populateExpandCrossEntropy(RewritePatternSet &patterns) {
  patterns.add<ExpandSoftmax, ExpandLogSoftmax, ExpandCrossEntropy,
               ExpandCrossEntropyGrad>(patterns.getContext());
}
