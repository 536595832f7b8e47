//===- ForwardStage.cpp - Forward tasks as a table ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads forward tasks, and reports those that level `stages` does not allow.
//===----------------------------------------------------------------------===//

#include "passes/Training/ForwardStage.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// The one call of a task; null and a report if there is not exactly one.
static func::CallOp findCall(TaskOp task) {
  auto calls = llvm::to_vector(task.getBody().getOps<func::CallOp>());
  if (calls.size() == 1)
    return calls.front();
  task.emitError() << "a forward task calls one function, this one "
                   << calls.size();
  return nullptr;
}

static LogicalResult collectOperands(ForwardStage &stage,
                                     SymbolTable &symbols) {
  for (Value operand : stage.call.getOperands()) {
    ChannelOp channel;
    VariableOp variable;
    if (auto take = operand.getDefiningOp<TakeOp>())
      channel = symbols.lookup<ChannelOp>(take.getChannel());
    else if (auto read = operand.getDefiningOp<ReadOp>())
      variable = symbols.lookup<VariableOp>(read.getVariable());
    bool isScalar = isa<BlockArgument>(operand) ||
                    operand.getDefiningOp<HyperparameterOp>();
    if (!channel && !variable && !isScalar)
      return stage.call.emitError()
             << "the operands of a stage's forward function are taken from "
                "channels or read from variables";
    stage.channels.push_back(channel);
    stage.variables.push_back(variable);
  }
  stage.sinks.resize(stage.call.getNumResults());
  for (auto put : stage.task.getBody().getOps<PutOp>()) {
    auto channel = symbols.lookup<ChannelOp>(put.getChannel());
    if (!channel)
      return put.emitError() << "there is no channel " << put.getChannelAttr();
    for (Value value : put.getValues()) {
      if (value.getDefiningOp() != stage.call)
        return put.emitError()
               << "a forward task puts results of its function only";
      stage.sinks[cast<OpResult>(value).getResultNumber()].push_back(channel);
    }
  }
  return success();
}

Value penstock::cloneScalar(OpBuilder &builder, Value scalar, TaskOp to) {
  if (isa<BlockArgument>(scalar))
    return to.getCounter();
  return builder.clone(*scalar.getDefiningOp())->getResult(0);
}

FailureOr<SmallVector<ForwardStage>>
penstock::collectForwardStages(ModuleOp module, SymbolTable &symbols) {
  llvm::DenseMap<Attribute, TaskOp> forwards;
  for (auto task : module.getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::Forward || task.isBodyless())
      continue;
    TaskOp &known = forwards[task.getStageAttr()];
    if (known) {
      task.emitError() << "stage " << task.getStageAttr()
                       << " has two forward tasks";
      return failure();
    }
    known = task;
  }
  SmallVector<ForwardStage> stages;
  llvm::DenseSet<Operation *> used;
  for (auto stageOp : module.getOps<StageOp>()) {
    TaskOp task = forwards.lookup(FlatSymbolRefAttr::get(stageOp));
    if (!task)
      return stageOp.emitError() << "the stage has no forward task";
    ForwardStage stage;
    stage.stage = stageOp;
    stage.task = task;
    stage.call = findCall(task);
    if (!stage.call)
      return failure();
    stage.function = symbols.lookup<func::FuncOp>(stage.call.getCallee());
    if (!stage.function || !stage.function.getBody().hasOneBlock())
      return stage.call.emitError()
             << "@" << stage.call.getCallee()
             << " is not a function with a body of one block";
    if (!used.insert(stage.function).second) {
      stage.function = stage.function.clone();
      symbols.insert(stage.function, std::next(task->getIterator()));
      stage.call.setCallee(stage.function.getSymName());
    }
    if (failed(collectOperands(stage, symbols)))
      return failure();
    stages.push_back(stage);
  }
  return stages;
}
