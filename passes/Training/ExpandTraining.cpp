//===- ExpandTraining.cpp - Gives ops their meaning in training -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands mode-dependent ops of the forward functions, hands scalars of the
// task to the functions, and writes the state that the ops leave behind.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEEXPANDTRAINING
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// The forward function and task of one stage, while they change.
class StageContext : public nn::TrainingContext {
public:
  StageContext(ForwardStage &stage, bool frozen)
      : stage(stage), frozen(frozen), inTask(stage.call) {}

  bool freezesStatistics() const override { return frozen; }
  Value getMicrobatch() override {
    return getScalar(stage.task.getCounter(), counter);
  }
  Value getSeed() override;
  Value getState(Value state) override {
    auto known = states.find(state);
    return known == states.end() ? state : known->second;
  }
  void setState(Value state, Value next) override { states[state] = next; }

  /// The function with its new arguments and results, and their call.
  LogicalResult finish();

private:
  /// The argument of the function for a scalar of the task.
  Value getScalar(Value scalar, Value &argument) {
    if (!argument) {
      argument =
          stage.function.front().addArgument(scalar.getType(), scalar.getLoc());
      operands.push_back(scalar);
    }
    return argument;
  }

  ForwardStage &stage;
  bool frozen;
  OpBuilder inTask;
  Value counter;
  Value seed;
  /// Scalars that the call passes after what it passed before.
  SmallVector<Value> operands;
  llvm::MapVector<Value, Value> states;
};

class ExpandTrainingPass
    : public penstock::impl::PipelineExpandTrainingBase<ExpandTrainingPass> {
  using PipelineExpandTrainingBase::PipelineExpandTrainingBase;
  void runOnOperation() override;
};

} // namespace

Value StageContext::getSeed() {
  if (seed)
    return seed;
  Value scalar = HyperparameterOp::create(
      inTask, stage.call.getLoc(), inTask.getI64Type(), "seed", FloatAttr());
  return getScalar(scalar, seed);
}

LogicalResult StageContext::finish() {
  func::FuncOp function = stage.function;
  Operation *terminator = function.front().getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  SmallVector<std::pair<unsigned, unsigned>> written; // argument, result
  for (auto [state, next] : states) {
    auto argument = dyn_cast<BlockArgument>(state);
    if (!argument || argument.getOwner() != &function.front() ||
        argument.getArgNumber() >= stage.getNumArguments())
      continue;
    VariableOp variable = stage.getVariable(argument.getArgNumber());
    if (!variable || variable.getFrozen())
      continue;
    if (variable.getStageAttr() != FlatSymbolRefAttr::get(stage.stage))
      return variable.emitError()
             << "statistic @" << variable.getSymName()
             << " is read on several stages; cut elsewhere (--split-at) so "
                "that one stage reads it, or --freeze it";
    variable.setRole(Role::Statistic);
    written.emplace_back(argument.getArgNumber(), results.size());
    results.push_back(next);
  }
  if (written.empty() && operands.empty())
    return success();

  terminator->setOperands(results);
  OpBuilder builder(stage.call);
  // Attributes of arguments are a list as long as that of the arguments.
  SmallVector<DictionaryAttr> attributes(function.front().getNumArguments(),
                                         builder.getDictionaryAttr({}));
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (DictionaryAttr known = function.getArgAttrDict(i))
      attributes[i] = known;
  for (auto [argument, result] : written) {
    NamedAttrList list(attributes[argument]);
    list.set(kIntoAttr, builder.getI64IntegerAttr(result));
    attributes[argument] = list.getDictionary(builder.getContext());
  }
  function.setFunctionType(builder.getFunctionType(
      function.front().getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllArgAttrs(attributes);
  SmallVector<Value> all(stage.call.getOperands());
  llvm::append_range(all, operands);
  auto call = func::CallOp::create(builder, stage.call.getLoc(), function, all);
  stage.call.replaceAllUsesWith(
      call.getResults().take_front(stage.call.getNumResults()));
  stage.call.erase();
  stage.call = call;
  builder.setInsertionPointToEnd(&stage.task.getBody().front());
  for (auto [argument, result] : written)
    WriteOp::create(builder, call.getLoc(), call.getResult(result),
                    FlatSymbolRefAttr::get(stage.getVariable(argument)));
  return success();
}

void ExpandTrainingPass::runOnOperation() {
  TrainingOp training = getTraining(getOperation());
  if (training && training.getInfers())
    return;
  bool isFrozen = training && training.getBatchNorm() == BatchNorm::Frozen;
  SymbolTable symbols(getOperation());
  FailureOr<SmallVector<ForwardStage>> stages =
      collectForwardStages(getOperation(), symbols);
  if (failed(stages))
    return signalPassFailure();
  for (ForwardStage &stage : *stages) {
    StageContext context(stage, isFrozen);
    SmallVector<nn::ModeDependentOpInterface> ops;
    stage.function.walk(
        [&](nn::ModeDependentOpInterface op) { ops.push_back(op); });
    for (nn::ModeDependentOpInterface op : ops) {
      OpBuilder builder(op);
      SmallVector<Value> results;
      if (failed(op.expandForTraining(builder, context, results)))
        return signalPassFailure();
      op->replaceAllUsesWith(results);
      op->erase();
    }
    if (failed(context.finish()))
      return signalPassFailure();
  }
  signFunctions(getOperation());
}
