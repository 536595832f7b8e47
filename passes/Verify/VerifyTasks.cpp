//===- VerifyTasks.cpp - Tasks and the channels between them
//---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C4 to C6, C13 and C19.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
struct Ends {
  TaskOp put, take;
};
} // namespace

static bool isUpdateLike(TaskOp task) { return !task.countsMicrobatches(); }

/// Variables that an update task writes have versions.
static llvm::DenseSet<StringAttr> getVersioned(Subject &subject) {
  llvm::DenseSet<StringAttr> versioned;
  for (TaskOp task : subject.module.getOps<TaskOp>())
    if (task.getKind() == TaskKind::Update && !task.isBodyless())
      for (WriteOp write : task.getBody().getOps<WriteOp>())
        versioned.insert(write.getVariableAttr().getAttr());
  return versioned;
}

/// C6 of one take or put.
static LogicalResult verifyMessage(Subject &subject, Operation *op,
                                   FlatSymbolRefAttr name, TypeRange types) {
  auto channel = subject.resolve<ChannelOp>(op, name);
  if (!channel)
    return failure();
  if (channel.getTypes().size() != types.size())
    return op->emitOpError("C6: moves ")
           << types.size() << " values, channel " << name << " carries "
           << channel.getTypes().size();
  for (auto [index, type] : llvm::enumerate(types))
    if (channel.getTensorType(index) != type)
      return op->emitOpError("C6: moves ")
             << type << " where channel " << name << " carries "
             << channel.getTensorType(index);
  return success();
}

static LogicalResult verifyTask(Subject &subject, TaskOp task,
                                const llvm::DenseSet<StringAttr> &versioned) {
  if (!subject.resolve<StageOp>(task, task.getStageAttr()))
    return failure();
  if (task.isBodyless())
    return subject.isFrom(Level::Program)
               ? success()
               : LogicalResult(task.emitOpError("C9: needs a body before level "
                                                "program"));
  if (failed(verifyAccesses(subject, task, versioned)))
    return failure();
  for (TakeOp take : task.getBody().getOps<TakeOp>())
    if (failed(verifyMessage(subject, take, take.getChannelAttr(),
                             take.getResultTypes())))
      return failure();
  for (PutOp put : task.getBody().getOps<PutOp>())
    if (failed(verifyMessage(subject, put, put.getChannelAttr(),
                             put.getOperandTypes())))
      return failure();
  return success();
}

/// C4 and C5: of the tasks that run together, one puts and one takes.
static LogicalResult verifyEnds(Subject &subject, const TaskSet &set) {
  llvm::MapVector<ChannelOp, Ends> ends;
  auto record = [&](Operation *op, FlatSymbolRefAttr name, TaskOp task,
                    TaskOp Ends::*end) -> LogicalResult {
    auto channel = subject.symbols.lookup<ChannelOp>(name.getValue());
    TaskOp &known = ends[channel].*end;
    if (known)
      return op->emitOpError("C4: is the second end of channel ")
             << name << ", after task @" << known.getSymName();
    known = task;
    return success();
  };
  for (TaskOp task : set.tasks) {
    for (TakeOp take : task.getBody().getOps<TakeOp>())
      if (failed(record(take, take.getChannelAttr(), task, &Ends::take)))
        return failure();
    for (PutOp put : task.getBody().getOps<PutOp>())
      if (failed(record(put, put.getChannelAttr(), task, &Ends::put)))
        return failure();
  }
  for (auto &[channel, end] : ends) {
    if (channel.getSource() && end.put)
      return channel.emitOpError("C4: has a source, but task @")
             << end.put.getSymName() << " puts into it";
    if (channel.getSink() && end.take)
      return channel.emitOpError("C4: has a sink, but task @")
             << end.take.getSymName() << " takes from it";
    if (!channel.getSource() && !end.put)
      return channel.emitOpError("C4: is taken by task @")
             << end.take.getSymName() << ", but no task" << set.of
             << " puts into it";
    if (!channel.getSink() && !end.take)
      return channel.emitOpError("C4: is put by task @")
             << end.put.getSymName() << ", but no task" << set.of
             << " takes from it";
    if (end.put && end.take && isUpdateLike(end.put) != isUpdateLike(end.take))
      return channel.emitOpError("C5: joins task @")
             << end.put.getSymName() << " and task @" << end.take.getSymName()
             << ", which count microbatches and updates";
  }
  return success();
}

/// C13, over tasks of training that run together.
static LogicalResult verifyStages(Subject &subject, const TaskSet &set) {
  llvm::MapVector<StringAttr, SmallVector<TaskKind>> kinds;
  for (StageOp stage : subject.module.getOps<StageOp>())
    kinds[stage.getSymNameAttr()];
  for (TaskOp task : set.tasks) {
    auto &known = kinds[task.getStageAttr().getAttr()];
    if (llvm::is_contained(known, task.getKind()))
      return task.emitOpError("C13: is the second ")
             << stringifyTaskKind(task.getKind()) << " task of its stage";
    known.push_back(task.getKind());
  }
  if (!subject.isFrom(Level::Training))
    return success();
  for (auto &[name, known] : kinds) {
    auto has = [&](TaskKind kind) { return llvm::is_contained(known, kind); };
    auto stage = subject.symbols.lookup<StageOp>(name);
    if (!has(TaskKind::Forward))
      return stage.emitOpError("C13: has no forward task");
    bool hasGradient = llvm::any_of(
        subject.module.getOps<VariableOp>(), [&](VariableOp variable) {
          return variable.getRole() == Role::Gradient &&
                 variable.getStageAttr() &&
                 variable.getStageAttr().getAttr() == name;
        });
    bool whole = has(TaskKind::Backward);
    bool halves = has(TaskKind::InputGrad) || has(TaskKind::WeightGrad);
    if (whole && halves)
      return stage.emitOpError("C13: has a backward task and halves of it");
    if (hasGradient && !whole && !has(TaskKind::WeightGrad))
      return stage.emitOpError(
          "C13: has gradients, but no task that makes them");
  }
  return success();
}

/// C19: one name, one type of number, one default; in tasks or, at level
/// program, in the functions of devices.
static LogicalResult verifyHyperparameters(Subject &subject) {
  llvm::StringMap<HyperparameterOp> known;
  WalkResult result = subject.module.walk([&](HyperparameterOp op) {
    auto [it, isFirst] = known.try_emplace(op.getName(), op);
    if (!isFirst &&
        it->second.getDefaultValueAttr() != op.getDefaultValueAttr()) {
      op.emitOpError("C19: declares '")
          << op.getName() << "' with another default than before";
      return WalkResult::interrupt();
    }
    if (!isFirst &&
        it->second.getType().isInteger() != op.getType().isInteger()) {
      op.emitOpError("C19: declares '")
          << op.getName() << "' as " << op.getType() << ", but as "
          << it->second.getType() << " before";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult penstock::verifyTaskSet(Subject &subject, const TaskSet &set) {
  if (failed(verifyEnds(subject, set)))
    return failure();
  return set.evaluates ? success() : verifyStages(subject, set);
}

LogicalResult penstock::verifyTasks(Subject &subject) {
  if (failed(verifyVariables(subject)))
    return failure();
  llvm::DenseSet<StringAttr> versioned = getVersioned(subject);
  for (TaskOp task : subject.module.getOps<TaskOp>())
    if (failed(verifyTask(subject, task, versioned)))
      return failure();
  if (failed(verifyHyperparameters(subject)))
    return failure();
  if (subject.isFrom(Level::Program))
    return success();
  if (!subject.module.getOps<ScheduleOp>().empty())
    return success();
  TaskSet training, evaluation{{}, "", /*evaluates=*/true};
  for (TaskOp task : subject.module.getOps<TaskOp>())
    (task.getKind() == TaskKind::Evaluate ? evaluation : training)
        .tasks.push_back(task);
  // A program that infers has nothing but evaluate tasks.
  bool trains = !training.tasks.empty() || evaluation.tasks.empty();
  if (trains && failed(verifyTaskSet(subject, training)))
    return failure();
  return verifyTaskSet(subject, evaluation);
}
