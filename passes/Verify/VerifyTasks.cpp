//===- VerifyTasks.cpp - Variables, channels and tasks --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C1, C4 to C6, C11 to C13 and C15 to C19 and C29 of docs/ir.md.
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

static bool hasRead(TaskOp task, FlatSymbolRefAttr variable) {
  return llvm::any_of(task.getBody().getOps<ReadOp>(), [&](ReadOp read) {
    return read.getVariableAttr() == variable;
  });
}

/// A gradient that an update uses and leaves as it is has nothing that could be
/// added to.
static bool isOverwritten(TaskOp task, FlatSymbolRefAttr gradient) {
  auto module = task->getParentOfType<ModuleOp>();
  return llvm::any_of(module.getOps<TaskOp>(), [&](TaskOp update) {
    return update.getKind() == TaskKind::Update && !update.isBodyless() &&
           hasRead(update, gradient) &&
           llvm::none_of(update.getBody().getOps<WriteOp>(),
                         [&](WriteOp write) {
                           return write.getVariableAttr() == gradient;
                         });
  });
}

/// The statistic of which a gradient holds what microbatches move it by.
static VariableOp getStatistic(Subject &subject, VariableOp gradient) {
  auto name = gradient->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto whose =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  return whose && gradient.getRole() == Role::Gradient &&
                 whose.getRole() == Role::Statistic
             ? whose
             : VariableOp();
}

/// C12: who may write what.
static LogicalResult verifyWriter(Subject &subject, TaskOp task, WriteOp write,
                                  VariableOp variable) {
  Role role = variable.getRole();
  TaskKind kind = task.getKind();
  bool allowed = false;
  switch (role) {
  case Role::Parameter:
  case Role::Optimizer:
  case Role::Compensation:
  case Role::Master:
  case Role::Prepacked:
    allowed = kind == TaskKind::Update;
    break;
  case Role::Gradient:
    allowed = kind == TaskKind::Backward || kind == TaskKind::WeightGrad ||
              kind == TaskKind::Update;
    break;
  case Role::Statistic:
    allowed = kind == TaskKind::Forward;
    // Or by what backwards have noted.
    if (kind == TaskKind::Update)
      for (ReadOp read : task.getBody().getOps<ReadOp>())
        if (auto noted = subject.symbols.lookup<VariableOp>(read.getVariable()))
          allowed |= getStatistic(subject, noted) == variable;
    break;
  case Role::Scalar:
    allowed = kind == TaskKind::Norm || kind == TaskKind::Update;
    break;
  }
  if (!allowed)
    return write.emitOpError("in a ")
           << stringifyTaskKind(kind) << " task writes " << stringifyRole(role)
           << " " << write.getVariableAttr();
  if (role == Role::Gradient && kind != TaskKind::Update &&
      !hasRead(task, write.getVariableAttr()) &&
      !isOverwritten(task, write.getVariableAttr()))
    return write.emitOpError("of gradient ")
           << write.getVariableAttr()
           << " does not accumulate: the task does not read it";
  return success();
}

/// C11, C15 and C16 of one read or write.
static LogicalResult verifyAccess(Subject &subject, TaskOp task, Operation *op,
                                  FlatSymbolRefAttr name, Type type,
                                  VariableOp &variable) {
  variable = subject.resolve<VariableOp>(op, name);
  if (!variable)
    return failure();
  if (variable.getType() != type)
    return op->emitOpError("has type ")
           << type << ", but " << name << " is " << variable.getType();
  if (variable.getStageAttr() && variable.getStageAttr() != task.getStageAttr())
    return op->emitOpError("of ")
           << name << ", which is of stage " << variable.getStageAttr()
           << ", in a task of stage " << task.getStageAttr();
  return success();
}

/// The variable that a value was read from, or is written to.
static VariableOp getVariable(Subject &subject, Value value) {
  if (auto read = value.getDefiningOp<ReadOp>())
    return subject.symbols.lookup<VariableOp>(read.getVariable());
  for (Operation *user : value.getUsers())
    if (auto write = dyn_cast<WriteOp>(user))
      return subject.symbols.lookup<VariableOp>(write.getVariable());
  return {};
}

/// C29: prepacked weights are written by whoever writes the weights, as a
/// function of what it writes.
static LogicalResult verifyPrepacked(Subject &subject, VariableOp prepacked) {
  auto name = prepacked->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto weights =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  if (!weights || !prepacked->hasAttr(kPrepackingAttr))
    return prepacked.emitOpError("does not say by '")
           << kParameterAttr << "' and '" << kPrepackingAttr
           << "' what is prepacked for what";
  if (weights.getStageAttr() != prepacked.getStageAttr())
    return prepacked.emitOpError("is of another stage than ") << name;
  auto find = [](TaskOp task, VariableOp variable) {
    auto writes = task.getBody().getOps<WriteOp>();
    auto it = llvm::find_if(writes, [&](WriteOp write) {
      return write.getVariable() == variable.getSymName();
    });
    return it == writes.end() ? Value() : (*it).getValue();
  };
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    Value from = find(task, weights), to = find(task, prepacked);
    auto call = to ? to.getDefiningOp<func::CallOp>() : func::CallOp();
    if (from || to)
      if (!from || !call ||
          llvm::to_vector(call.getOperands()) != SmallVector<Value>{from})
        return task.emitOpError("does not write ")
               << FlatSymbolRefAttr::get(prepacked) << " as a function of what "
               << "it writes to " << name;
  }
  return success();
}

static LogicalResult reportRole(Operation *op, StringRef what,
                                VariableOp variable) {
  InFlightDiagnostic diagnostic = op->emitOpError(what);
  if (!variable)
    return diagnostic << ", but no variable holds it";
  return diagnostic << ", " << FlatSymbolRefAttr::get(variable) << " is "
                    << stringifyRole(variable.getRole());
}

static LogicalResult verifyReads(Subject &subject, TaskOp task,
                                 const llvm::DenseSet<StringAttr> &versioned) {
  for (ReadOp read : task.getBody().getOps<ReadOp>()) {
    VariableOp variable;
    if (failed(verifyAccess(subject, task, read, read.getVariableAttr(),
                            read.getValue().getType(), variable)))
      return failure();
    // Evaluation stands between segments and sees the newest version.
    bool hasLag = versioned.contains(variable.getSymNameAttr()) &&
                  task.countsMicrobatches() &&
                  task.getKind() != TaskKind::Evaluate &&
                  variable.getRole() != Role::Gradient;
    if (!subject.isFrom(Level::Schedule) || read.getLag().has_value() == hasLag)
      continue;
    if (hasLag)
      return read.emitOpError("of ")
             << read.getVariableAttr()
             << ", which an update task writes, needs a lag at level schedule";
    return read.emitOpError("of ")
           << read.getVariableAttr() << " sees the newest value and has no lag";
  }
  for (CompensateOp op : task.getBody().getOps<CompensateOp>()) {
    VariableOp variable = getVariable(subject, op.getDelta());
    if (!variable || variable.getRole() != Role::Compensation)
      return reportRole(op, "needs a delta of role compensation", variable);
  }
  for (PredictOp op : task.getBody().getOps<PredictOp>()) {
    // What a function makes of the state need not be written.
    VariableOp variable = getVariable(subject, op.getVelocity());
    bool isComputed = op.getVelocity().getDefiningOp<func::CallOp>();
    if (variable ? variable.getRole() != Role::Optimizer : !isComputed)
      return reportRole(op, "needs a direction of role optimizer", variable);
  }
  return success();
}

/// C6 of one take or put.
static LogicalResult verifyMessage(Subject &subject, Operation *op,
                                   FlatSymbolRefAttr name, TypeRange types) {
  auto channel = subject.resolve<ChannelOp>(op, name);
  if (!channel)
    return failure();
  if (channel.getTypes().size() != types.size())
    return op->emitOpError("moves ")
           << types.size() << " values, channel " << name << " carries "
           << channel.getTypes().size();
  for (auto [index, type] : llvm::enumerate(types))
    if (channel.getTensorType(index) != type)
      return op->emitOpError("moves ")
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
               : LogicalResult(task.emitOpError("needs a body before level "
                                                "program"));
  if (failed(verifyReads(subject, task, versioned)))
    return failure();
  for (WriteOp write : task.getBody().getOps<WriteOp>()) {
    VariableOp variable;
    if (failed(verifyAccess(subject, task, write, write.getVariableAttr(),
                            write.getValue().getType(), variable)) ||
        failed(verifyWriter(subject, task, write, variable)))
      return failure();
  }
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
      return op->emitOpError("is the second end of channel ")
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
      return channel.emitOpError("has a source, but task @")
             << end.put.getSymName() << " puts into it";
    if (channel.getSink() && end.take)
      return channel.emitOpError("has a sink, but task @")
             << end.take.getSymName() << " takes from it";
    if (!channel.getSource() && !end.put)
      return channel.emitOpError("is taken by task @")
             << end.take.getSymName() << ", but no task" << set.of
             << " puts into it";
    if (!channel.getSink() && !end.take)
      return channel.emitOpError("is put by task @")
             << end.put.getSymName() << ", but no task" << set.of
             << " takes from it";
    if (end.put && end.take && isUpdateLike(end.put) != isUpdateLike(end.take))
      return channel.emitOpError("joins task @")
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
      return task.emitOpError("is the second ")
             << stringifyTaskKind(task.getKind()) << " task of its stage";
    known.push_back(task.getKind());
  }
  if (!subject.isFrom(Level::Training))
    return success();
  for (auto &[name, known] : kinds) {
    auto has = [&](TaskKind kind) { return llvm::is_contained(known, kind); };
    auto stage = subject.symbols.lookup<StageOp>(name);
    if (!has(TaskKind::Forward))
      return stage.emitOpError("has no forward task");
    bool hasGradient = llvm::any_of(
        subject.module.getOps<VariableOp>(), [&](VariableOp variable) {
          return variable.getRole() == Role::Gradient &&
                 variable.getStageAttr() &&
                 variable.getStageAttr().getAttr() == name;
        });
    bool whole = has(TaskKind::Backward);
    bool halves = has(TaskKind::InputGrad) || has(TaskKind::WeightGrad);
    if (whole && halves)
      return stage.emitOpError("has a backward task and halves of it");
    if (hasGradient && !whole && !has(TaskKind::WeightGrad))
      return stage.emitOpError("has gradients, but no task that makes them");
  }
  return success();
}

/// C19: one name, one type of number, one default.
static LogicalResult verifyHyperparameters(Subject &subject) {
  llvm::StringMap<HyperparameterOp> known;
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    for (HyperparameterOp op : task.getBody().getOps<HyperparameterOp>()) {
      auto [it, isFirst] = known.try_emplace(op.getName(), op);
      if (!isFirst &&
          it->second.getDefaultValueAttr() != op.getDefaultValueAttr())
        return op.emitOpError("declares '")
               << op.getName() << "' with another default than before";
      if (!isFirst &&
          it->second.getType().isInteger() != op.getType().isInteger())
        return op.emitOpError("declares '")
               << op.getName() << "' as " << op.getType() << ", but as "
               << it->second.getType() << " before";
    }
  }
  return success();
}

LogicalResult penstock::verifyTaskSet(Subject &subject, const TaskSet &set) {
  if (failed(verifyEnds(subject, set)))
    return failure();
  return set.evaluates ? success() : verifyStages(subject, set);
}

LogicalResult penstock::verifyTasks(Subject &subject) {
  for (VariableOp variable : subject.module.getOps<VariableOp>()) {
    if (variable.getStageAttr() &&
        !subject.resolve<StageOp>(variable, variable.getStageAttr()))
      return failure();
    if (subject.isFrom(Level::Stages) && !variable.getStageAttr())
      return variable.emitOpError("has no stage at level ")
             << getLevelName(subject.level);
    if (variable.getRole() == Role::Prepacked &&
        failed(verifyPrepacked(subject, variable)))
      return failure();
  }
  llvm::DenseSet<StringAttr> versioned = getVersioned(subject);
  for (TaskOp task : subject.module.getOps<TaskOp>())
    if (failed(verifyTask(subject, task, versioned)))
      return failure();
  if (subject.isFrom(Level::Program))
    return success();
  if (failed(verifyHyperparameters(subject)))
    return failure();
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
