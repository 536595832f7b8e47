//===- VerifyVariables.cpp - Who reads and writes which variable ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C1, C11, C12, C15 to C18, C29, C35 and C36.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

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
  case Role::Master:
  case Role::Prepacked:
    allowed = kind == TaskKind::Update || kind == TaskKind::Fold;
    break;
  case Role::Compensation:
    allowed = kind == TaskKind::Update || task.countsWaves();
    break;
  case Role::Optimizer:
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
    return write.emitOpError("C12: in a ")
           << stringifyTaskKind(kind) << " task writes " << stringifyRole(role)
           << " " << write.getVariableAttr();
  if (role == Role::Gradient && kind != TaskKind::Update &&
      !hasRead(task, write.getVariableAttr()) &&
      !isOverwritten(task, write.getVariableAttr()))
    return write.emitOpError("C12: of gradient ")
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
    return op->emitOpError("C16: has type ")
           << type << ", but " << name << " is " << variable.getType();
  if (variable.getStageAttr() && variable.getStageAttr() != task.getStageAttr())
    return op->emitOpError("C11: of ")
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

/// Returns the value that a task writes to a variable; null if it does not.
static Value findWritten(TaskOp task, VariableOp variable) {
  for (WriteOp write : task.getBody().getOps<WriteOp>())
    if (write.getVariable() == variable.getSymName())
      return write.getValue();
  return {};
}

/// C36: a master has the shape of the bf16 parameter that is rounded from it,
/// and one function computes both.
static LogicalResult verifyMaster(Subject &subject, VariableOp master) {
  auto name = master->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto parameter =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  if (!parameter || parameter.getRole() != Role::Parameter)
    return master.emitOpError("C36: does not say by '")
           << kParameterAttr << "' which parameter is rounded from it";
  RankedTensorType from = master.getTensorType(),
                   to = parameter.getTensorType();
  if (!from.getElementType().isF32() || !to.getElementType().isBF16() ||
      from.getShape() != to.getShape())
    return master.emitOpError("C36: holds ")
           << from << " for " << name << ", which is " << to;
  if (parameter.getStageAttr() != master.getStageAttr())
    return master.emitOpError("C36: is of another stage than ") << name;
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    Value weights = findWritten(task, master),
          rounded = findWritten(task, parameter);
    if (!weights && !rounded)
      continue;
    auto call =
        weights ? weights.getDefiningOp<func::CallOp>() : func::CallOp();
    if (!rounded || !call || rounded.getDefiningOp() != call)
      return task.emitOpError("C36: does not write ")
             << FlatSymbolRefAttr::get(master) << " and " << name
             << " as results of one function";
  }
  return success();
}

/// C29: prepacked weights are written by whoever writes the weights, as a
/// function of what it writes.
static LogicalResult verifyPrepacked(Subject &subject, VariableOp prepacked) {
  auto name = prepacked->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto weights =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  if (!weights || !prepacked->hasAttr(kernel::kPackingAttr))
    return prepacked.emitOpError("C29: does not say by '")
           << kParameterAttr << "' and '" << kernel::kPackingAttr
           << "' what is prepacked for what";
  if (weights.getStageAttr() != prepacked.getStageAttr())
    return prepacked.emitOpError("C29: is of another stage than ") << name;
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    Value from = findWritten(task, weights), to = findWritten(task, prepacked);
    auto call = to ? to.getDefiningOp<func::CallOp>() : func::CallOp();
    if (from || to)
      if (!from || !call ||
          llvm::to_vector(call.getOperands()) != SmallVector<Value>{from})
        return task.emitOpError("C29: does not write ")
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
    // C31 knows what they read.
    if (task.countsWaves())
      continue;
    // What an update blends with is older than what it makes.
    if (task.getKind() == TaskKind::Update && read.getLag() &&
        versioned.contains(variable.getSymNameAttr()) &&
        variable.getRole() == Role::Parameter) {
      if (*read.getLag() == 0)
        return read.emitOpError("C15: of ")
               << read.getVariableAttr()
               << " in an update task needs a lag of at least 1";
      continue;
    }
    // Evaluation stands between segments and sees the newest version.
    bool hasLag = versioned.contains(variable.getSymNameAttr()) &&
                  task.countsMicrobatches() &&
                  task.getKind() != TaskKind::Evaluate &&
                  variable.getRole() != Role::Gradient;
    if (!subject.isFrom(Level::Schedule) || read.getLag().has_value() == hasLag)
      continue;
    if (hasLag)
      return read.emitOpError("C15: of ")
             << read.getVariableAttr()
             << ", which an update task writes, needs a lag at level schedule";
    return read.emitOpError("C15: of ")
           << read.getVariableAttr() << " sees the newest value and has no lag";
  }
  for (CompensateOp op : task.getBody().getOps<CompensateOp>()) {
    VariableOp variable = getVariable(subject, op.getDelta());
    if (!variable || variable.getRole() != Role::Compensation)
      return reportRole(op, "C17: needs a delta of role compensation",
                        variable);
  }
  for (BlendOp op : task.getBody().getOps<BlendOp>()) {
    VariableOp newer = getVariable(subject, op.getWeight());
    VariableOp older = getVariable(subject, op.getOlder());
    if (!newer || newer != older || newer.getRole() != Role::Parameter)
      return op.emitOpError("C35: needs two versions of one parameter, the "
                            "newer as it is written");
    auto weight = op.getSignificance().getDefiningOp<func::CallOp>();
    auto staleness = weight && weight.getNumOperands() == 1
                         ? weight.getOperand(0).getDefiningOp<StalenessOp>()
                         : StalenessOp();
    std::optional<uint64_t> lag =
        op.getOlder().getDefiningOp<ReadOp>().getLag();
    if (!staleness || staleness.getLag() != lag)
      return op.emitOpError("C35: weighs by a number that no function makes of "
                            "the staleness of what is ")
             << *lag << " updates older";
  }
  for (PredictOp op : task.getBody().getOps<PredictOp>()) {
    // What a function makes of the state need not be written.
    VariableOp variable = getVariable(subject, op.getVelocity());
    bool isComputed = op.getVelocity().getDefiningOp<func::CallOp>();
    if (variable ? variable.getRole() != Role::Optimizer : !isComputed)
      return reportRole(op, "C18: needs a direction of role optimizer",
                        variable);
  }
  return success();
}

LogicalResult
penstock::verifyAccesses(Subject &subject, TaskOp task,
                         const llvm::DenseSet<StringAttr> &versioned) {
  if (failed(verifyReads(subject, task, versioned)))
    return failure();
  for (WriteOp write : task.getBody().getOps<WriteOp>()) {
    VariableOp variable;
    if (failed(verifyAccess(subject, task, write, write.getVariableAttr(),
                            write.getValue().getType(), variable)) ||
        failed(verifyWriter(subject, task, write, variable)))
      return failure();
  }
  return success();
}

LogicalResult penstock::verifyVariables(Subject &subject) {
  for (VariableOp variable : subject.module.getOps<VariableOp>()) {
    if (variable.getStageAttr() &&
        !subject.resolve<StageOp>(variable, variable.getStageAttr()))
      return failure();
    if (subject.isFrom(Level::Stages) && !variable.getStageAttr())
      return variable.emitOpError("C1: has no stage at level ")
             << getLevelName(subject.level);
    if (variable.getRole() == Role::Prepacked &&
        failed(verifyPrepacked(subject, variable)))
      return failure();
    if (variable.getRole() == Role::Master &&
        failed(verifyMaster(subject, variable)))
      return failure();
  }
  return success();
}
