//===- DeriveEvaluate.cpp - Adds the evaluate tasks -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluation is the forward without residuals, over the same channels: one
// schedule runs forward tasks or evaluate tasks, never both.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <limits>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEDERIVEEVALUATE
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;
using utils::IteratorType;

namespace {

/// Correct predictions and labels that count, as tensors of one integer.
struct Counts {
  Value correct, count;
};

class DeriveEvaluatePass
    : public penstock::impl::PipelineDeriveEvaluateBase<DeriveEvaluatePass> {
  using PipelineDeriveEvaluateBase::PipelineDeriveEvaluateBase;
  void runOnOperation() override;

private:
  /// Adds the results of the metrics to the function of the stage that has the
  /// loss, and their channels to `sinks`.
  LogicalResult addMetrics(ForwardStage &stage, func::FuncOp function,
                           nn::CrossEntropyOp loss,
                           SmallVectorImpl<Value> &results,
                           SmallVectorImpl<ChannelOp> &sinks,
                           SymbolTable &symbols);
};

Value createFilled(OpBuilder &builder, Location loc, RankedTensorType type,
                   TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

/// Where nothing is the largest: not an index.
constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

/// The first index of the largest element along the last axis; kNowhere where
/// all are NaN, which is never larger. In two passes, the largest and where it
/// is: lanes and threads can share both.
Value createArgMax(OpBuilder &builder, Location loc, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  auto element = cast<FloatType>(type.getElementType());
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  auto largestType = RankedTensorType::get(rows, element);
  auto indexType = RankedTensorType::get(rows, builder.getI64Type());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap row = identity.dropResult(type.getRank() - 1);
  SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  Value lowest = createFilled(
      builder, loc, largestType,
      builder.getFloatAttr(element,
                           APFloat::getInf(element.getFloatSemantics(), true)));
  Value largest =
      linalg::GenericOp::create(
          builder, loc, TypeRange(largestType), ValueRange(logits),
          ValueRange(lowest), ArrayRef<AffineMap>{identity, row}, iterators,
          [&](OpBuilder &body, Location loc, ValueRange arguments) {
            Value larger =
                arith::MaxNumFOp::create(body, loc, arguments[1], arguments[0]);
            linalg::YieldOp::create(body, loc, larger);
          })
          .getResult(0);
  TypedAttr nowhere = builder.getI64IntegerAttr(kNowhere);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(indexType), ValueRange{logits, largest},
             ValueRange{createFilled(builder, loc, indexType, nowhere)},
             ArrayRef<AffineMap>{identity, row, row}, iterators,
             [&](OpBuilder &body, Location loc, ValueRange arguments) {
               Value index =
                   linalg::IndexOp::create(body, loc, type.getRank() - 1);
               index = arith::IndexCastOp::create(body, loc, body.getI64Type(),
                                                  index);
               Value isLargest =
                   arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ,
                                         arguments[0], arguments[1]);
               Value none = arith::ConstantOp::create(body, loc, nowhere);
               index =
                   arith::SelectOp::create(body, loc, isLargest, index, none);
               Value first =
                   arith::MinSIOp::create(body, loc, arguments[2], index);
               linalg::YieldOp::create(body, loc, first);
             })
      .getResult(0);
}

/// Counts the predictions that equal their label, and the labels that count.
Counts createCounts(OpBuilder &builder, nn::CrossEntropyOp loss) {
  Location loc = loss.getLoc();
  Value labels = loss.getLabels();
  auto labelsType = cast<RankedTensorType>(labels.getType());
  Type i64 = builder.getI64Type();
  auto scalarType = RankedTensorType::get({}, i64);
  Value predictions = createArgMax(builder, loc, loss.getLogits());
  Value zero =
      createFilled(builder, loc, scalarType, builder.getI64IntegerAttr(0));
  Value otherZero =
      createFilled(builder, loc, scalarType, builder.getI64IntegerAttr(0));
  int64_t rank = labelsType.getRank();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap scalar = AffineMap::get(rank, 0, builder.getContext());
  auto counts = linalg::GenericOp::create(
      builder, loc, TypeRange{scalarType, scalarType},
      ValueRange{predictions, labels}, ValueRange{zero, otherZero},
      ArrayRef<AffineMap>{identity, identity, scalar, scalar},
      SmallVector<IteratorType>(rank, IteratorType::reduction),
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        Value label = arguments[1];
        if (label.getType().getIntOrFloatBitWidth() < 64)
          label = arith::ExtSIOp::create(body, loc, i64, label);
        Value hit = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq,
                                          arguments[0], label);
        Value one =
            arith::ConstantOp::create(body, loc, body.getI64IntegerAttr(1));
        Value counts = one;
        if (std::optional<uint64_t> ignore = loss.getIgnore()) {
          Value ignored = arith::ConstantOp::create(
              body, loc, body.getI64IntegerAttr(*ignore));
          Value valid = arith::CmpIOp::create(
              body, loc, arith::CmpIPredicate::ne, label, ignored);
          hit = arith::AndIOp::create(body, loc, hit, valid);
          counts = arith::ExtUIOp::create(body, loc, i64, valid);
        }
        Value correct = arith::ExtUIOp::create(body, loc, i64, hit);
        linalg::YieldOp::create(
            body, loc,
            ValueRange{arith::AddIOp::create(body, loc, arguments[2], correct),
                       arith::AddIOp::create(body, loc, arguments[3], counts)});
      });
  return {counts.getResult(0), counts.getResult(1)};
}

/// Widens a label to i64.
Value createLabel(OpBuilder &builder, Location loc, Value label) {
  Type i64 = builder.getI64Type();
  return label.getType() == i64
             ? label
             : arith::ExtSIOp::create(builder, loc, i64, label);
}

/// Counts the labels whose logit is among the `classes` largest of its row. Of
/// equal logits the first is the larger one; one that is not a number is never.
Value createTopCount(OpBuilder &builder, nn::CrossEntropyOp loss,
                     int64_t classes) {
  Location loc = loss.getLoc();
  Value logits = loss.getLogits(), labels = loss.getLabels();
  auto type = cast<RankedTensorType>(logits.getType());
  auto element = cast<FloatType>(type.getElementType());
  Type i64 = builder.getI64Type();
  int64_t rank = type.getRank();
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap row = identity.dropResult(rank - 1);
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  auto createIndex = [&](OpBuilder &body, Location loc) -> Value {
    return arith::IndexCastOp::create(
        body, loc, i64, linalg::IndexOp::create(body, loc, rank - 1));
  };

  // 1. The logit of the label.
  TypedAttr lowest = builder.getFloatAttr(
      element, APFloat::getInf(element.getFloatSemantics(), true));
  auto ownType = RankedTensorType::get(rows, element);
  Value own =
      linalg::GenericOp::create(
          builder, loc, TypeRange(ownType), ValueRange{logits, labels},
          ValueRange{createFilled(builder, loc, ownType, lowest)},
          ArrayRef<AffineMap>{identity, row, row}, iterators,
          [&](OpBuilder &body, Location loc, ValueRange arguments) {
            Value isOwn = arith::CmpIOp::create(
                body, loc, arith::CmpIPredicate::eq, createIndex(body, loc),
                createLabel(body, loc, arguments[1]));
            Value low = arith::ConstantOp::create(body, loc, lowest);
            Value logit =
                arith::SelectOp::create(body, loc, isOwn, arguments[0], low);
            Value largest =
                arith::MaximumFOp::create(body, loc, arguments[2], logit);
            linalg::YieldOp::create(body, loc, largest);
          })
          .getResult(0);

  // 2. How many of the row are larger.
  auto countType = RankedTensorType::get(rows, i64);
  TypedAttr none = builder.getI64IntegerAttr(0);
  Value larger =
      linalg::GenericOp::create(
          builder, loc, TypeRange(countType), ValueRange{logits, labels, own},
          ValueRange{createFilled(builder, loc, countType, none)},
          ArrayRef<AffineMap>{identity, row, row, row}, iterators,
          [&](OpBuilder &body, Location loc, ValueRange arguments) {
            Value isLarger =
                arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OGT,
                                      arguments[0], arguments[2]);
            Value isEqual =
                arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ,
                                      arguments[0], arguments[2]);
            Value isBefore = arith::CmpIOp::create(
                body, loc, arith::CmpIPredicate::slt, createIndex(body, loc),
                createLabel(body, loc, arguments[1]));
            Value isNaN =
                arith::CmpFOp::create(body, loc, arith::CmpFPredicate::UNO,
                                      arguments[2], arguments[2]);
            isBefore = arith::AndIOp::create(body, loc, isEqual, isBefore);
            isLarger = arith::OrIOp::create(body, loc, isLarger, isBefore);
            isLarger = arith::OrIOp::create(body, loc, isLarger, isNaN);
            Value one = arith::ExtUIOp::create(body, loc, i64, isLarger);
            Value sum = arith::AddIOp::create(body, loc, arguments[3], one);
            linalg::YieldOp::create(body, loc, sum);
          })
          .getResult(0);

  // 3. Those with few.
  int64_t labelRank = rank - 1;
  AffineMap same = builder.getMultiDimIdentityMap(labelRank);
  AffineMap scalar = AffineMap::get(labelRank, 0, builder.getContext());
  auto scalarType = RankedTensorType::get({}, i64);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(scalarType), ValueRange{larger, labels},
             ValueRange{createFilled(builder, loc, scalarType, none)},
             ArrayRef<AffineMap>{same, same, scalar},
             SmallVector<IteratorType>(labelRank, IteratorType::reduction),
             [&](OpBuilder &body, Location loc, ValueRange arguments) {
               Value bound = arith::ConstantOp::create(
                   body, loc, body.getI64IntegerAttr(classes));
               Value hit = arith::CmpIOp::create(
                   body, loc, arith::CmpIPredicate::slt, arguments[0], bound);
               if (std::optional<uint64_t> ignore = loss.getIgnore()) {
                 Value ignored = arith::ConstantOp::create(
                     body, loc, body.getI64IntegerAttr(*ignore));
                 Value valid = arith::CmpIOp::create(
                     body, loc, arith::CmpIPredicate::ne,
                     createLabel(body, loc, arguments[1]), ignored);
                 hit = arith::AndIOp::create(body, loc, hit, valid);
               }
               Value one = arith::ExtUIOp::create(body, loc, i64, hit);
               Value sum = arith::AddIOp::create(body, loc, arguments[2], one);
               linalg::YieldOp::create(body, loc, sum);
             })
      .getResult(0);
}

/// The difference of output and labels that the loss squares: the only use of
/// the labels. Null for another loss.
linalg::GenericOp findDifference(const ForwardStage &stage,
                                 func::FuncOp function) {
  for (unsigned index : llvm::seq(stage.getNumArguments())) {
    ChannelOp channel = stage.getChannel(index);
    if (!channel || !channel.isLabels())
      continue;
    Value labels = function.getArgument(index);
    auto generic = labels.hasOneUse()
                       ? dyn_cast<linalg::GenericOp>(*labels.user_begin())
                       : linalg::GenericOp();
    if (!generic || generic.getNumDpsInputs() != 2)
      return nullptr;
    auto body = generic.getBody()->without_terminator();
    bool isDifference =
        llvm::hasSingleElement(body) && isa<arith::SubFOp>(*body.begin()) &&
        llvm::all_of(generic.getIndexingMapsArray(),
                     [](AffineMap map) { return map.isIdentity(); });
    return isDifference ? generic : nullptr;
  }
  return nullptr;
}

/// The mean of the absolute values of a tensor, as f32.
Value createMeanAbsolute(OpBuilder &builder, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto element = cast<FloatType>(type.getElementType());
  int64_t rank = type.getRank();
  auto sumType = RankedTensorType::get({}, element);
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap scalar = AffineMap::get(rank, 0, builder.getContext());
  Value sum = linalg::GenericOp::create(
                  builder, loc, TypeRange(sumType), ValueRange(tensor),
                  ValueRange{createFilled(builder, loc, sumType,
                                          builder.getFloatAttr(element, 0))},
                  ArrayRef<AffineMap>{identity, scalar},
                  SmallVector<IteratorType>(rank, IteratorType::reduction),
                  [&](OpBuilder &body, Location loc, ValueRange arguments) {
                    Value size = math::AbsFOp::create(body, loc, arguments[0]);
                    Value more =
                        arith::AddFOp::create(body, loc, arguments[1], size);
                    linalg::YieldOp::create(body, loc, more);
                  })
                  .getResult(0);
  auto meanType = RankedTensorType::get({}, builder.getF32Type());
  AffineMap point = AffineMap::get(0, 0, builder.getContext());
  Value empty = tensor::EmptyOp::create(builder, loc, meanType, ValueRange());
  return linalg::GenericOp::create(
             builder, loc, TypeRange(meanType), ValueRange(sum),
             ValueRange(empty), ArrayRef<AffineMap>{point, point},
             ArrayRef<IteratorType>{},
             [&](OpBuilder &body, Location loc, ValueRange arguments) {
               Value count = arith::ConstantOp::create(
                   body, loc,
                   body.getFloatAttr(
                       element, static_cast<double>(type.getNumElements())));
               Value mean =
                   arith::DivFOp::create(body, loc, arguments[0], count);
               if (element.getWidth() > 32)
                 mean = arith::TruncFOp::create(body, loc, body.getF32Type(),
                                                mean);
               else if (element.getWidth() < 32)
                 mean =
                     arith::ExtFOp::create(body, loc, body.getF32Type(), mean);
               linalg::YieldOp::create(body, loc, mean);
             })
      .getResult(0);
}

/// Returns true if the stage puts the loss.
bool hasLoss(const ForwardStage &stage) {
  return llvm::any_of(stage.sinks, [](auto &channels) {
    return llvm::any_of(channels,
                        [](ChannelOp channel) { return channel.isLoss(); });
  });
}

/// The cross-entropy that the loss comes from, if it is the only one.
nn::CrossEntropyOp findClassLoss(const ForwardStage &stage,
                                 func::FuncOp function) {
  auto losses = llvm::to_vector(function.getOps<nn::CrossEntropyOp>());
  return hasLoss(stage) && losses.size() == 1 ? losses.front()
                                              : nn::CrossEntropyOp();
}

/// Gives ops that training changes their other meaning.
LogicalResult expandForInference(func::FuncOp function) {
  SmallVector<nn::ModeDependentOpInterface> ops;
  function.walk([&](nn::ModeDependentOpInterface op) { ops.push_back(op); });
  for (nn::ModeDependentOpInterface op : ops) {
    OpBuilder builder(op);
    SmallVector<Value> results;
    if (failed(op.expandForInference(builder, results)))
      return failure();
    op->replaceAllUsesWith(results);
    op->erase();
  }
  return success();
}

/// An evaluation measures the model: what shapes the gradients of training, the
/// smoothing of labels and the weights of classes, is no part of that.
void measurePlainly(func::FuncOp function) {
  for (auto loss : function.getOps<nn::CrossEntropyOp>()) {
    loss.removeSmoothingAttr();
    loss.removeClassWeightsAttr();
  }
}

/// A function with the same type and body, or the new one itself.
func::FuncOp mergeEqual(func::FuncOp function, ArrayRef<func::FuncOp> others) {
  for (func::FuncOp other : others)
    if (other.getFunctionType() == function.getFunctionType() &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &function.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return function;
}

} // namespace

LogicalResult DeriveEvaluatePass::addMetrics(ForwardStage &stage,
                                             func::FuncOp function,
                                             nn::CrossEntropyOp loss,
                                             SmallVectorImpl<Value> &results,
                                             SmallVectorImpl<ChannelOp> &sinks,
                                             SymbolTable &symbols) {
  ModuleOp module = getOperation();
  Location loc = stage.task.getLoc();
  OpBuilder builder(function.front().getTerminator());
  auto add = [&](StringRef name, Value value) {
    results.push_back(value);
    OpBuilder free(&getContext());
    auto channel = ChannelOp::create(
        free, loc, name, free.getTypeArrayAttr(value.getType()), SourceAttr(),
        SinkAttr::get(&getContext(), SinkKind::Metric,
                      free.getStringAttr(name)),
        IntegerAttr(), IntegerAttr());
    insertAfterLast(module, symbols, channel);
    sinks.push_back(channel);
  };
  for (StringRef name : metrics) {
    // 1. Labels among the K most likely classes.
    StringRef number = name;
    int64_t classes;
    if (number.consume_front("top-") && !number.getAsInteger(10, classes) &&
        classes > 0) {
      if (!loss)
        return module.emitError()
               << "--metrics=" << name
               << ": the loss of this program has no classes; it needs "
                  "--loss=softmax-cross-entropy";
      int64_t known =
          cast<ShapedType>(loss.getLogits().getType()).getShape().back();
      if (classes > known)
        return module.emitError() << "--metrics=" << name << ": the model has "
                                  << known << " classes";
      add(name, createTopCount(builder, loss, classes));
      continue;
    }

    // 2. The absolute error of what a loss squares.
    if (name == "mae") {
      linalg::GenericOp difference = findDifference(stage, function);
      if (!difference)
        return module.emitError() << "--metrics=mae: the loss of this program "
                                     "is no squared error; it needs --loss=mse";
      add(name, createMeanAbsolute(builder, difference.getLoc(),
                                   difference.getResult(0)));
      continue;
    }
    return module.emitError() << "--metrics=" << name
                              << ": unknown metric; there are top-K, as top-5, "
                                 "and mae";
  }
  return success();
}

void DeriveEvaluatePass::runOnOperation() {
  ModuleOp module = getOperation();
  TrainingOp training = getTraining(module);
  bool infers = training && training.getInfers();
  SymbolTable symbols(module);
  FailureOr<SmallVector<ForwardStage>> stages =
      collectForwardStages(module, symbols);
  if (failed(stages))
    return signalPassFailure();
  SmallVector<func::FuncOp> functions;
  for (ForwardStage &stage : *stages) {
    StringRef name = stage.stage.getSymName();
    Location loc = stage.task.getLoc();
    OpBuilder builder(&getContext());

    // 1. The function, and the counts where labels are classes.
    func::FuncOp function = stage.function.clone();
    function.setName((name + ".evaluate").str());
    if (failed(expandForInference(function)))
      return signalPassFailure();
    measurePlainly(function);
    SmallVector<ChannelOp> sinks;
    Operation *terminator = function.front().getTerminator();
    SmallVector<Value> results(terminator->getOperands());
    nn::CrossEntropyOp loss =
        infers ? nn::CrossEntropyOp() : findClassLoss(stage, function);
    if (loss) {
      builder.setInsertionPoint(terminator);
      Counts counts = createCounts(builder, loss);
      results.append({counts.correct, counts.count});
      for (SinkKind sink : {SinkKind::Correct, SinkKind::Count}) {
        builder.clearInsertionPoint();
        auto channel = ChannelOp::create(
            builder, loc, stringifySinkKind(sink),
            builder.getTypeArrayAttr(counts.correct.getType()), SourceAttr(),
            SinkAttr::get(builder.getContext(), sink, {}), IntegerAttr(),
            IntegerAttr());
        insertAfterLast(module, symbols, channel);
        sinks.push_back(channel);
      }
    }
    if (!infers && hasLoss(stage) &&
        failed(addMetrics(stage, function, loss, results, sinks, symbols)))
      return signalPassFailure();
    terminator->setOperands(results);
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), ValueRange(results).getTypes()));
    func::FuncOp shared = mergeEqual(function, functions);
    if (shared != function) {
      function.erase();
    } else {
      symbols.insert(function, std::next(stage.function->getIterator()));
      functions.push_back(function);
    }

    // 2. The task: that of the forward with the other function.
    auto task = cast<TaskOp>(stage.task->clone());
    task.setSymName((name + ".E").str());
    task.setKind(TaskKind::Evaluate);
    symbols.insert(task, std::next(stage.task->getIterator()));
    auto call = *task.getBody().getOps<func::CallOp>().begin();
    builder.setInsertionPoint(call);
    auto evaluate = func::CallOp::create(builder, call.getLoc(), shared,
                                         call.getOperands());
    unsigned known = call.getNumResults();
    call.replaceAllUsesWith(evaluate.getResults().take_front(known));
    call.erase();
    builder.setInsertionPointToEnd(&task.getBody().front());
    for (auto [index, channel] : llvm::enumerate(sinks))
      PutOp::create(builder, loc, evaluate.getResult(known + index),
                    FlatSymbolRefAttr::get(channel));
    if (infers) {
      symbols.erase(stage.task);
      symbols.erase(stage.function);
    }
  }
  signFunctions(module);
}
