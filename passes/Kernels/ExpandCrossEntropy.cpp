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

struct ExpandCrossEntropy : OpRewritePattern<nn::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    auto type = op.getLogits().getType();
    Location loc = op.getLoc();
    ClassRows rows(rewriter, loc, type, type.getRank() - 1);
    std::optional<int64_t> ignore = toOptional(op.getIgnore());
    StableExp parts = computeStableExp(rows, op.getLogits());

    // The logit of the label: the only term of this sum that is not zero.
    Value zero = rows.constant(0.0);
    Value picked = rows.reduce(
        {op.getLogits(), op.getLabels()}, 0.0,
        [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
          Value number = rows.classNumber(b, loc, in[1].getType());
          Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            number, in[1]);
          Value term = arith::SelectOp::create(b, loc, hit, in[0], zero);
          return arith::AddFOp::create(b, loc, term, old);
        });

    // Per row log(sum) - (z - max), added up over the rows, then the mean.
    Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
    Value sum = rows.total(
        {parts.sum, parts.maximum, picked, op.getLabels()}, zero,
        [&](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
          LabelTests tests = testLabel(rows, b, loc, in[3], ignore);
          Value term = arith::SubFOp::create(
              b, loc, math::LogOp::create(b, loc, in[0]),
              arith::SubFOp::create(b, loc, in[2], in[1]));
          term = arith::SelectOp::create(b, loc, tests.valid, term, nan);
          if (tests.counts)
            term = arith::SelectOp::create(b, loc, tests.counts, term, zero);
          return arith::AddFOp::create(b, loc, term, old);
        });
    Value counted = countLabels(rows, rewriter, op.getLabels(), ignore);
    SmallVector<Value> inputs{sum};
    if (counted)
      inputs.push_back(counted);
    ClassRows scalar(rewriter, loc,
                     RankedTensorType::get({1}, rows.elementType()), 0);
    Value loss = scalar.perRow(
        inputs, [&](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          Value by = divisor(rows, b, loc, counted ? in[1] : Value());
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
};

struct ExpandCrossEntropyGrad : OpRewritePattern<nn::CrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::CrossEntropyGradOp op,
                                PatternRewriter &rewriter) const override {
    auto type = op.getProbabilities().getType();
    ClassRows rows(rewriter, op.getLoc(), type, type.getRank() - 1);
    std::optional<int64_t> ignore = toOptional(op.getIgnore());
    Value counted = countLabels(rows, rewriter, op.getLabels(), ignore);

    // The factor of a row: seed / count, or zero when its label is ignored.
    Value zero = rows.constant(0.0), one = rows.constant(1.0);
    Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
    SmallVector<Value> inputs{op.getLabels(), op.getSeed()};
    if (counted)
      inputs.push_back(counted);
    Value factor = rows.perRow(
        inputs, [&](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          LabelTests tests = testLabel(rows, b, loc, in[0], ignore);
          Value by = divisor(rows, b, loc, counted ? in[2] : Value());
          Value value = arith::DivFOp::create(b, loc, in[1], by);
          value = arith::SelectOp::create(b, loc, tests.valid, value, nan);
          if (tests.counts)
            value = arith::SelectOp::create(b, loc, tests.counts, value, zero);
          return value;
        });
    Value result = rows.elements(
        {op.getProbabilities(), op.getLabels(), factor},
        [&](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
          Value number = rows.classNumber(b, loc, in[1].getType());
          Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            number, in[1]);
          Value target = arith::SelectOp::create(b, loc, hit, one, zero);
          Value difference = arith::SubFOp::create(b, loc, in[0], target);
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
