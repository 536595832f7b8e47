//===- ExpandComposites.cpp - Composite ops become linalg ops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Once derivatives are taken, nothing needs softmax and cross-entropy whole.
// Each becomes a few generics in their stable form. Labels are compared with
// the column number, never used as an address: a bad label cannot read or write
// out of bounds, and turns the loss into NaN instead.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Convolution.h"
#include "passes/Lowering/Composites.h"
#include "passes/Lowering/Passes.h"
#include "penstock/Codegen/ConvolutionLibrary.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>
#include <optional>

namespace penstock {
#define GEN_PASS_DEF_NNEXPANDCOMPOSITES
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// A scalar body: gets one value per input and the accumulator or old value of
/// the output.
using Body = function_ref<Value(OpBuilder &, Location, ValueRange, Value)>;

/// Builds generics over a tensor of classes and over its rows: the same tensor
/// without the axis of the classes.
class Rows {
public:
  Rows(OpBuilder &builder, Location loc, RankedTensorType full, int64_t axis)
      : builder(builder), loc(loc), full(full), axis(axis) {
    SmallVector<int64_t> shape(full.getShape());
    shape.erase(shape.begin() + axis);
    row = RankedTensorType::get(shape, full.getElementType());
    fullMap = builder.getMultiDimIdentityMap(full.getRank());
    rowMap = fullMap.dropResult(axis);
  }

  Value constant(Type type, double value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(type, value));
  }
  Value constant(double value) {
    return constant(full.getElementType(), value);
  }
  Value integer(Type type, int64_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, value));
  }

  /// body(inputs) for every element; inputs are full tensors or rows.
  Value elements(ValueRange inputs, Body body) {
    Value empty = tensor::EmptyOp::create(builder, loc, full.getShape(),
                                          full.getElementType());
    return generic(inputs, empty, fullMap, parallel(full.getRank()),
                   fullMap.getNumDims(), body);
  }

  /// Folds the classes of each row, beginning with `start`.
  Value reduce(ValueRange inputs, double start, Body body) {
    SmallVector<utils::IteratorType> iterators = parallel(full.getRank());
    iterators[axis] = utils::IteratorType::reduction;
    return generic(inputs, filled(row, constant(start)), rowMap, iterators,
                   fullMap.getNumDims(), body);
  }

  /// body(inputs) for every row; inputs are rows or scalars.
  Value perRow(ValueRange inputs, Body body) {
    Value empty = tensor::EmptyOp::create(builder, loc, row.getShape(),
                                          row.getElementType());
    return generic(inputs, empty, builder.getMultiDimIdentityMap(row.getRank()),
                   parallel(row.getRank()), row.getRank(), body);
  }

  /// Folds all rows into a scalar tensor that begins with `start`.
  Value total(ValueRange inputs, Value start, Body body) {
    SmallVector<utils::IteratorType> iterators(row.getRank(),
                                               utils::IteratorType::reduction);
    return generic(inputs,
                   filled(RankedTensorType::get({}, start.getType()), start),
                   AffineMap::get(row.getRank(), 0, builder.getContext()),
                   iterators, row.getRank(), body);
  }

  /// The number of rows.
  int64_t count() { return row.getNumElements(); }
  Type elementType() { return full.getElementType(); }
  int64_t classes() { return full.getDimSize(axis); }

  /// The class of the current element, as an integer of `type`.
  Value classNumber(OpBuilder &b, Location loc, Type type) {
    Value index = linalg::IndexOp::create(b, loc, axis);
    return arith::IndexCastOp::create(b, loc, type, index);
  }

private:
  static SmallVector<utils::IteratorType> parallel(int64_t rank) {
    return SmallVector<utils::IteratorType>(rank,
                                            utils::IteratorType::parallel);
  }

  Value filled(RankedTensorType type, Value start) {
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    return linalg::FillOp::create(builder, loc, start, empty).getResult(0);
  }

  Value generic(ValueRange inputs, Value output, AffineMap outputMap,
                ArrayRef<utils::IteratorType> iterators, unsigned dims,
                Body body) {
    SmallVector<AffineMap> maps;
    for (Value input : inputs) {
      int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
      if (rank == static_cast<int64_t>(dims))
        maps.push_back(builder.getMultiDimIdentityMap(dims));
      else if (dims == fullMap.getNumDims() && rank == row.getRank())
        maps.push_back(rowMap);
      else
        maps.push_back(AffineMap::get(dims, 0, builder.getContext()));
    }
    maps.push_back(outputMap);
    return linalg::GenericOp::create(
               builder, loc, output.getType(), inputs, output, maps, iterators,
               [&](OpBuilder &b, Location loc, ValueRange arguments) {
                 Value result =
                     body(b, loc, arguments.drop_back(), arguments.back());
                 linalg::YieldOp::create(b, loc, result);
               })
        .getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType full, row;
  int64_t axis;
  AffineMap fullMap, rowMap;
};

/// exp(x - max), and per row the maximum and the sum: what softmax, its
/// logarithm and cross-entropy have in common. NaN anywhere in a row reaches
/// the sum: the maximum skips it, the exponentials do not.
struct StableExp {
  Value exponentials, maximum, sum;
};

StableExp stableExp(Rows &rows, Value x) {
  StableExp result;
  result.maximum =
      rows.reduce(x, -std::numeric_limits<double>::infinity(),
                  [](OpBuilder &b, Location loc, ValueRange in, Value old) {
                    return arith::MaxNumFOp::create(b, loc, in[0], old);
                  });
  result.exponentials = rows.elements(
      {x, result.maximum},
      [](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
        return math::ExpOp::create(b, loc,
                                   arith::SubFOp::create(b, loc, in[0], in[1]));
      });
  result.sum = rows.reduce(
      result.exponentials, 0.0,
      [](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
        return arith::AddFOp::create(b, loc, in[0], old);
      });
  return result;
}

/// One division per row: a vector of them takes as long as its exponentials.
/// The sum is at least 1, so that its inverse is as exact as a quotient.
Value divideBySum(Rows &rows, const StableExp &parts) {
  Value one = rows.constant(1.0);
  Value inverse = rows.perRow(
      parts.sum, [&](OpBuilder &b, Location loc, ValueRange in, Value) {
        return arith::DivFOp::create(b, loc, one, in[0]);
      });
  return rows.elements(
      {parts.exponentials, inverse},
      [](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
        return arith::MulFOp::create(b, loc, in[0], in[1]);
      });
}

struct ExpandSoftmax : OpRewritePattern<linalg::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::SoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not on tensors");
    Rows rows(rewriter, op.getLoc(), type, op.getDimension());
    StableExp parts = stableExp(rows, op.getInput());
    rewriter.replaceOp(op, divideBySum(rows, parts));
    return success();
  }
};

struct ExpandLogSoftmax : OpRewritePattern<nn::LogSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::LogSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    Rows rows(rewriter, op.getLoc(), op.getInput().getType(), op.getDim());
    StableExp parts = stableExp(rows, op.getInput());
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

LabelTests testLabel(Rows &rows, OpBuilder &b, Location loc, Value label,
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
Value countLabels(Rows &rows, OpBuilder &builder, Value labels,
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
Value divisor(Rows &rows, OpBuilder &b, Location loc, Value counted) {
  if (!counted)
    return rows.constant(static_cast<double>(rows.count()));
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
    Rows rows(rewriter, loc, type, type.getRank() - 1);
    std::optional<int64_t> ignore = toOptional(op.getIgnore());
    StableExp parts = stableExp(rows, op.getLogits());

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
    Rows scalar(rewriter, loc, RankedTensorType::get({1}, rows.elementType()),
                0);
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
    Rows rows(rewriter, op.getLoc(), type, type.getRank() - 1);
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

/// A function that no tasks were derived from does what the model says.
class NoTraining : public nn::TrainingContext {
public:
  bool freezesStatistics() const override { return false; }
  Value getMicrobatch() override { return nullptr; }
  Value getSeed() override { return nullptr; }
  Value getState(Value state) override { return state; }
  void setState(Value, Value) override {}
};

struct ExpandCompositesPass
    : penstock::impl::NnExpandCompositesBase<ExpandCompositesPass> {
  using NnExpandCompositesBase::NnExpandCompositesBase;

  LogicalResult expandModeDependent() {
    SmallVector<nn::ModeDependentOpInterface> ops;
    getOperation()->walk(
        [&](nn::ModeDependentOpInterface op) { ops.push_back(op); });
    NoTraining context;
    for (nn::ModeDependentOpInterface op : ops) {
      OpBuilder builder(op);
      SmallVector<Value> results;
      if (failed(op.trainsByItself()
                     ? op.expandForTraining(builder, context, results)
                     : op.expandForInference(builder, results)))
        return failure();
      op->replaceAllUsesWith(results);
      op->erase();
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(expandModeDependent()))
      return signalPassFailure();
    // Convolutions stay for the library, where it is good at them.
    SmallVector<Operation *> loops;
    getOperation()->walk([&](Operation *op) {
      std::string reason;
      auto conv = nn::Convolution::match(op);
      if (!conv || !op->getNumResults())
        return;
      if (library && planLibraryConvolution(*conv, /*threads=*/1, &reason))
        return;
      if (library)
        op->emitRemark("becomes loops: ") << reason;
      loops.push_back(op);
    });
    for (Operation *op : loops)
      expandConvolution(op);
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandSoftmax, ExpandLogSoftmax, ExpandCrossEntropy,
                 ExpandCrossEntropyGrad>(&getContext());
    populateExpandNormalize(patterns);
    populateExpandPooling(patterns);
    populateExpandRandom(patterns);
    populateExpandIndexing(patterns);
    populateExpandAlongAxis(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // What is left is an op that this pass does not know.
    WalkResult left = getOperation()->walk([](Operation *op) {
      if (!isa_and_nonnull<nn::NnDialect>(op->getDialect()) ||
          nn::Convolution::match(op))
        return WalkResult::advance();
      op->emitOpError("has no expansion for the CPU");
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
