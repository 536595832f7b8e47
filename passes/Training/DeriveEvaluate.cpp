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
};

Value createFilled(OpBuilder &builder, Location loc, RankedTensorType type,
                   TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

/// The first index of the largest element along the last axis. A NaN is never
/// larger.
Value createArgMax(OpBuilder &builder, Location loc, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  auto element = cast<FloatType>(type.getElementType());
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  auto largestType = RankedTensorType::get(rows, element);
  auto indexType = RankedTensorType::get(rows, builder.getI64Type());
  Value lowest = createFilled(
      builder, loc, largestType,
      builder.getFloatAttr(element,
                           APFloat::getInf(element.getFloatSemantics(), true)));
  Value first =
      createFilled(builder, loc, indexType, builder.getI64IntegerAttr(0));
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap row = identity.dropResult(type.getRank() - 1);
  SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  return linalg::GenericOp::create(
             builder, loc, TypeRange{largestType, indexType},
             ValueRange(logits), ValueRange{lowest, first},
             ArrayRef<AffineMap>{identity, row, row}, iterators,
             [&](OpBuilder &body, Location loc, ValueRange arguments) {
               Value index =
                   linalg::IndexOp::create(body, loc, type.getRank() - 1);
               index = arith::IndexCastOp::create(body, loc, body.getI64Type(),
                                                  index);
               Value larger =
                   arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OGT,
                                         arguments[0], arguments[1]);
               Value value = arith::SelectOp::create(
                   body, loc, larger, arguments[0], arguments[1]);
               index = arith::SelectOp::create(body, loc, larger, index,
                                               arguments[2]);
               linalg::YieldOp::create(body, loc, ValueRange{value, index});
             })
      .getResult(1);
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

/// The cross-entropy that the loss comes from, if it is the only one.
nn::CrossEntropyOp findClassLoss(const ForwardStage &stage,
                                 func::FuncOp function) {
  bool putsLoss = llvm::any_of(stage.sinks, [](auto &channels) {
    return llvm::any_of(channels,
                        [](ChannelOp channel) { return channel.isLoss(); });
  });
  auto losses = llvm::to_vector(function.getOps<nn::CrossEntropyOp>());
  return putsLoss && losses.size() == 1 ? losses.front() : nn::CrossEntropyOp();
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
    if (nn::CrossEntropyOp loss =
            infers ? nn::CrossEntropyOp() : findClassLoss(stage, function)) {
      Operation *terminator = function.front().getTerminator();
      builder.setInsertionPoint(terminator);
      Counts counts = createCounts(builder, loss);
      SmallVector<Value> results(terminator->getOperands());
      results.append({counts.correct, counts.count});
      terminator->setOperands(results);
      function.setFunctionType(builder.getFunctionType(
          function.getArgumentTypes(), ValueRange(results).getTypes()));
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
