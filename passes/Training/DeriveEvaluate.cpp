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
#include "penstock/Support/Structured.h"

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

/// Where nothing is the largest: not an index.
constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

/// The first index of the largest element along the last axis; kNowhere where
/// all are NaN, which is never larger. In two passes, the largest and where it
/// is: lanes and threads can share both.
Value createArgMax(Structured &emit, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  int64_t rank = type.getRank();
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  Type i64 = emit.builder.getI64Type();
  AffineMap identity = emit.identity(rank);
  AffineMap row = identity.dropResult(rank - 1);
  Structured::Iterators iterators = Structured::parallel(rank);
  iterators.back() = IteratorType::reduction;
  Value lowest = emit.filled(RankedTensorType::get(rows, type.getElementType()),
                             -std::numeric_limits<double>::infinity());
  Value largest = emit.generic(logits, lowest, {identity, row}, iterators,
                               [](Scalars &s, ValueRange in) -> Value {
                                 return s.make<arith::MaxNumFOp>(in[1], in[0]);
                               });
  TypedAttr nowhere = emit.builder.getI64IntegerAttr(kNowhere);
  Value first = emit.filled(RankedTensorType::get(rows, i64),
                            emit.make<arith::ConstantOp>(nowhere));
  return emit.generic(
      {logits, largest}, first, {identity, row, row}, iterators,
      [&](Scalars &s, ValueRange in) -> Value {
        Value index =
            s.make<arith::IndexCastOp>(i64, s.make<linalg::IndexOp>(rank - 1));
        Value isLargest = s.compare(arith::CmpFPredicate::OEQ, in[0], in[1]);
        Value none = s.make<arith::ConstantOp>(nowhere);
        return s.make<arith::MinSIOp>(in[2], s.select(isLargest, index, none));
      });
}

/// Widens a label to i64.
Value createLabel(Scalars &s, Value label) {
  Type i64 = s.builder.getI64Type();
  return label.getType() == i64 ? label : s.make<arith::ExtSIOp>(i64, label);
}

/// Counts the predictions that equal their label, and the labels that count.
Counts createCounts(OpBuilder &builder, nn::CrossEntropyOp loss) {
  Structured emit(builder, loss.getLoc());
  Value labels = loss.getLabels();
  Type i64 = builder.getI64Type();
  auto scalarType = RankedTensorType::get({}, i64);
  Value predictions = createArgMax(emit, loss.getLogits());
  Value zero = emit.filled(scalarType, 0);
  Value otherZero = emit.filled(scalarType, 0);
  int64_t rank = cast<RankedTensorType>(labels.getType()).getRank();
  AffineMap identity = emit.identity(rank), scalar = emit.toScalar(rank);
  SmallVector<Value> counts = emit.generics(
      {predictions, labels}, {zero, otherZero},
      {identity, identity, scalar, scalar}, Structured::reduction(rank),
      [&](Scalars &s, ValueRange in) -> SmallVector<Value> {
        Value label = createLabel(s, in[1]);
        Value hit = s.equal(in[0], label);
        Value counts = s.integer(i64, 1);
        if (std::optional<uint64_t> ignore = loss.getIgnore()) {
          Value valid = s.compare(arith::CmpIPredicate::ne, label,
                                  s.integer(i64, *ignore));
          hit = s.both(hit, valid);
          counts = s.make<arith::ExtUIOp>(i64, valid);
        }
        Value correct = s.make<arith::ExtUIOp>(i64, hit);
        return {s.add(in[2], correct), s.add(in[3], counts)};
      });
  return {counts[0], counts[1]};
}

/// Counts the labels whose logit is among the `classes` largest of its row. Of
/// equal logits the first is the larger one; one that is not a number is never.
Value createTopCount(OpBuilder &builder, nn::CrossEntropyOp loss,
                     int64_t classes) {
  Structured emit(builder, loss.getLoc());
  Value logits = loss.getLogits(), labels = loss.getLabels();
  auto type = cast<RankedTensorType>(logits.getType());
  Type i64 = builder.getI64Type();
  int64_t rank = type.getRank();
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  AffineMap identity = emit.identity(rank);
  AffineMap row = identity.dropResult(rank - 1);
  Structured::Iterators iterators = Structured::parallel(rank);
  iterators.back() = IteratorType::reduction;
  auto createIndex = [&](Scalars &s) {
    return s.make<arith::IndexCastOp>(i64, s.make<linalg::IndexOp>(rank - 1));
  };

  // 1. The logit of the label.
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  Value own = emit.generic(
      {logits, labels},
      emit.filled(RankedTensorType::get(rows, type.getElementType()), lowest),
      {identity, row, row}, iterators, [&](Scalars &s, ValueRange in) {
        Value index = createIndex(s);
        Value isOwn = s.equal(index, createLabel(s, in[1]));
        Value logit = s.select(isOwn, in[0], s.like(in[0], lowest));
        return s.max(in[2], logit);
      });

  // 2. How many of the row are larger.
  Value larger = emit.generic(
      {logits, labels, own}, emit.filled(RankedTensorType::get(rows, i64), 0),
      {identity, row, row, row}, iterators, [&](Scalars &s, ValueRange in) {
        Value isLarger = s.compare(arith::CmpFPredicate::OGT, in[0], in[2]);
        Value isEqual = s.equal(in[0], in[2]);
        Value index = createIndex(s);
        Value isBefore = s.less(index, createLabel(s, in[1]));
        Value isNaN = s.isNaN(in[2]);
        isLarger = s.any(isLarger, s.both(isEqual, isBefore));
        isLarger = s.any(isLarger, isNaN);
        return s.add(in[3], s.make<arith::ExtUIOp>(i64, isLarger));
      });

  // 3. Those with few.
  AffineMap same = emit.identity(rank - 1), scalar = emit.toScalar(rank - 1);
  return emit.generic(
      {larger, labels}, emit.filled(RankedTensorType::get({}, i64), 0),
      {same, same, scalar}, Structured::reduction(rank - 1),
      [&](Scalars &s, ValueRange in) {
        Value hit = s.less(in[0], s.integer(i64, classes));
        if (std::optional<uint64_t> ignore = loss.getIgnore()) {
          Value ignored = s.integer(i64, *ignore);
          hit = s.both(hit, s.compare(arith::CmpIPredicate::ne,
                                      createLabel(s, in[1]), ignored));
        }
        return s.add(in[2], s.make<arith::ExtUIOp>(i64, hit));
      });
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
  Structured emit(builder, loc);
  auto type = cast<RankedTensorType>(tensor.getType());
  auto element = cast<FloatType>(type.getElementType());
  int64_t rank = type.getRank();
  Value sum =
      emit.generic(tensor, emit.filled(RankedTensorType::get({}, element), 0),
                   {emit.identity(rank), emit.toScalar(rank)},
                   Structured::reduction(rank), [](Scalars &s, ValueRange in) {
                     return s.add(in[1], s.make<math::AbsFOp>(in[0]));
                   });
  Type f32 = builder.getF32Type();
  return emit.elementwise(
      RankedTensorType::get({}, f32), sum, [&](Scalars &s, ValueRange in) {
        Value count =
            s.constant(element, static_cast<double>(type.getNumElements()));
        Value mean = s.div(in[0], count);
        if (element.getWidth() == 32)
          return mean;
        return element.getWidth() > 32 ? s.make<arith::TruncFOp>(f32, mean)
                                       : s.make<arith::ExtFOp>(f32, mean);
      });
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
