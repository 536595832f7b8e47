//===- VerifySchedules.cpp - Storage, devices and schedules ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C2, C7, C8, C20, C22 to C25 and C30.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/Replicas.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// C2: a ring belongs to a variable that updates write.
static LogicalResult verifyStorage(Subject &subject) {
  llvm::DenseSet<StringAttr> written, stored;
  bool hasBodies = false;
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    hasBodies = true;
    if (task.getKind() == TaskKind::Update || task.getKind() == TaskKind::Push)
      for (WriteOp write : task.getBody().getOps<WriteOp>())
        written.insert(write.getVariableAttr().getAttr());
  }
  for (Operation &op : subject.module.getBody()->getOperations()) {
    auto storage = dyn_cast<VersionStorageOpInterface>(op);
    if (!storage)
      continue;
    FlatSymbolRefAttr name = storage.getVariableAttr();
    if (!subject.resolve<VariableOp>(&op, name))
      return failure();
    if (hasBodies && !written.contains(name.getAttr()))
      return op.emitOpError("C2: keeps versions of ")
             << name << ", which no update task writes";
    if (!stored.insert(name.getAttr()).second)
      return op.emitOpError("C2: is the second version storage of ") << name;
  }
  return success();
}

/// C7: placed stages; those that share a device have equally many.
static LogicalResult verifyPlacement(Subject &subject) {
  llvm::MapVector<int64_t, StageOp> owner;
  for (StageOp stage : subject.module.getOps<StageOp>()) {
    ArrayRef<int64_t> devices =
        stage.getDevices().value_or(ArrayRef<int64_t>());
    if (devices.empty())
      return stage.emitOpError("C7: has no devices at level ")
             << getLevelName(subject.level);
    for (int64_t device : devices) {
      auto [it, isFirst] = owner.try_emplace(device, stage);
      if (!isFirst && it->second.getDevices()->size() != devices.size())
        return stage.emitOpError("C7: shares device ")
               << device << " with @" << it->second.getSymName()
               << ", but has another number of replicas";
    }
  }
  return success();
}

/// C34: a device is declared once, and the devices of a stage have one target.
static LogicalResult verifyTargets(Subject &subject) {
  llvm::DenseMap<uint64_t, DeviceOp> devices;
  for (DeviceOp device : subject.module.getOps<DeviceOp>())
    if (!devices.try_emplace(device.getNumber(), device).second)
      return device.emitOpError("C34: declares device ")
             << device.getNumber() << " again";
  for (StageOp stage : subject.module.getOps<StageOp>()) {
    TargetAttrInterface target;
    for (int64_t device : stage.getDevices().value_or(ArrayRef<int64_t>())) {
      DeviceOp own = devices.lookup(device);
      if (own && target && own.getTarget() != target)
        return stage.emitOpError(
                   "C34: has replicas on devices with the targets ")
               << target << " and " << own.getTarget()
               << ", but one function for all";
      if (own)
        target = own.getTarget();
    }
  }
  return success();
}

/// C8: members agree in types and belong to distinct stages.
static LogicalResult verifyGroup(Subject &subject, GroupOp group) {
  SmallVector<Type> types;
  llvm::DenseSet<Attribute> stages;
  for (Attribute member : group.getMembers()) {
    FlatSymbolRefAttr stage;
    for (auto [index, name] : llvm::enumerate(
             cast<ArrayAttr>(member).getAsRange<FlatSymbolRefAttr>())) {
      auto variable = subject.resolve<VariableOp>(group, name);
      if (!variable)
        return failure();
      if (types.size() <= index)
        types.push_back(variable.getType());
      if (types[index] != variable.getType())
        return group.emitOpError("C8: sums ")
               << types[index] << " and " << variable.getType();
      if (stage && stage != variable.getStageAttr())
        return group.emitOpError("C8: has a member on two stages");
      stage = variable.getStageAttr();
    }
    if (!stage || !stages.insert(stage).second)
      return group.emitOpError("C8: has two members on one stage");
  }
  return success();
}

/// C30: what evaluates runs evaluate tasks, and is called so where the program
/// trains as well.
static LogicalResult verifyRole(ScheduleOp schedule, bool evaluates,
                                bool trains) {
  ScheduleRole expected = !evaluates ? ScheduleRole::Train
                          : trains   ? ScheduleRole::Evaluate
                                     : ScheduleRole::Infer;
  if (schedule.getRole() == expected)
    return success();
  return schedule.emitOpError("C30: has the role ")
         << stringifyScheduleRole(schedule.getRole())
         << ", but what it runs is to " << stringifyScheduleRole(expected);
}

/// At level program, functions mark the tasks that they execute.
static LogicalResult verifyMarked(Subject &subject, ScheduleOp schedule) {
  bool executes = false, evaluates = true;
  for (auto function : subject.module.getOps<func::FuncOp>()) {
    auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    if (!name || name.getAttr() != schedule.getSymNameAttr())
      continue;
    function.walk([&](MarkOp mark) {
      executes = true;
      if (auto task = subject.symbols.lookup<TaskOp>(mark.getTask()))
        evaluates &= task.getKind() == TaskKind::Evaluate;
    });
  }
  return executes ? verifyRole(schedule, evaluates,
                               penstock::pipeline::trains(subject.module))
                  : success();
}

/// C46: training counts its tasks (S1), but evaluation may be no schedule at
/// all.
static LogicalResult verifyEvaluated(Subject &subject) {
  llvm::DenseSet<Attribute> executed;
  for (Operation &op : *subject.module.getBody())
    if (isa<ScheduleOp, func::FuncOp>(op))
      op.walk([&](Operation *inner) {
        if (auto run = dyn_cast<RunOp>(inner))
          executed.insert(run.getTaskAttr().getAttr());
        else if (auto mark = dyn_cast<MarkOp>(inner))
          executed.insert(mark.getTaskAttr().getAttr());
      });
  if (executed.empty())
    return success();
  for (auto task : subject.module.getOps<TaskOp>())
    if (task.getKind() == TaskKind::Evaluate &&
        !executed.contains(task.getSymNameAttr()))
      return task.emitOpError("C46: evaluates, but no schedule runs it");
  return success();
}

namespace {
/// One schedule under check.
class ScheduleRules {
public:
  ScheduleRules(Subject &subject, ScheduleOp schedule)
      : subject(subject), schedule(schedule),
        set{{}, (" of schedule @" + schedule.getSymName()).str()} {}
  LogicalResult verify();

private:
  LogicalResult verifyOverwrites();
  LogicalResult verifyRun(RunOp run, int64_t device);
  LogicalResult verifyTransfer(Operation *op, FlatSymbolRefAttr name,
                               int64_t device, bool isSend);
  LogicalResult verifyAllReduce(AllReduceOp op, int64_t device);
  LogicalResult verifyOrders();
  LogicalResult verifyGroups();
  LogicalResult verifyEvery(Operation *op, std::optional<uint64_t> every,
                            size_t replicas, bool isOfWave = false);
  StageOp getStage(TaskOp task) {
    return subject.symbols.lookup<StageOp>(task.getStage());
  }
  /// Returns the devices of a stage that has been placed.
  ArrayRef<int64_t> getDevices(StageOp stage) const {
    return getPlaces(stage, set.evaluates && trains);
  }

  Subject &subject;
  ScheduleOp schedule;
  TaskSet set;
  /// The program that the schedule is of.
  bool trains = true;
  llvm::DenseMap<StringAttr, StageOp> putter, taker;
};
} // namespace

/// C23: every(m) with m = M / r, or that by as many as an iteration goes on.
LogicalResult ScheduleRules::verifyEvery(Operation *op,
                                         std::optional<uint64_t> every,
                                         size_t replicas, bool isOfWave) {
  uint64_t step = cast<RepeatOp>(op->getParentOp()).getCount().value_or(1);
  uint64_t period = schedule.getMicrobatches() / replicas;
  if (isOfWave) {
    period *= schedule.getWave();
    if (every.value_or(1) * step != period)
      return op->emitOpError("C23: of a wave has every(")
             << every.value_or(1) << "), expected every(" << period / step
             << ")";
    return success();
  }
  if (every && *every * step != period)
    return op->emitOpError("C23: has every(")
           << *every << "), expected every(" << period / step
           << "): M / replicas" << (step > 1 ? ", by iterations" : "");
  return success();
}

LogicalResult ScheduleRules::verifyRun(RunOp run, int64_t device) {
  auto task = subject.resolve<TaskOp>(run, run.getTaskAttr());
  if (!task)
    return failure();
  StageOp stage = getStage(task);
  if (!llvm::is_contained(getDevices(stage), device))
    return run.emitOpError("C22: of ")
           << run.getTaskAttr() << " on device " << device << ", but stage @"
           << stage.getSymName() << " is not there";
  return verifyEvery(run, run.getEvery(), getDevices(stage).size(),
                     task.countsWaves());
}

/// C24: the device is the end of a channel that leaves it. Returns true if some
/// microbatch is on this device at both ends.
static bool meets(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                  int64_t device) {
  return llvm::any_of(
      llvm::seq<size_t>(0, from.size() * to.size()), [&](size_t k) {
        return from[k % from.size()] == device && to[k % to.size()] == device;
      });
}

LogicalResult ScheduleRules::verifyTransfer(Operation *op,
                                            FlatSymbolRefAttr name,
                                            int64_t device, bool isSend) {
  auto channel = subject.resolve<ChannelOp>(op, name);
  if (!channel)
    return failure();
  StageOp from = putter.lookup(name.getAttr());
  StageOp to = taker.lookup(name.getAttr());
  StageOp here = isSend ? from : to, there = isSend ? to : from;
  if (!here || !llvm::is_contained(getDevices(here), device))
    return op->emitOpError("C24: of ") << name << " on device " << device
                                       << ", which is not that end of it";
  // Without another end it has a source or a sink, or breaks C4.
  if (there && meets(getDevices(here), getDevices(there), device))
    return op->emitOpError("C24: of ")
           << name << ", whose both ends are on device " << device;
  if (channel.getTypes().size() != 1)
    return op->emitOpError("C24: of ")
           << name << ", which carries " << channel.getTypes().size()
           << " tensors; a transfer is one tensor";
  auto entry = cast<ScheduleEntryOpInterface>(op);
  if (channel.getOwnQueue())
    return verifyEvery(op, entry.getPeriod(), 1, /*isOfWave=*/true);
  if (entry.getPeriod())
    return op->emitOpError("C24: of ")
           << name << " has every(" << *entry.getPeriod()
           << "), but carries a message per microbatch or update";
  return success();
}

/// C25: a member's stage is on this device.
LogicalResult ScheduleRules::verifyAllReduce(AllReduceOp op, int64_t device) {
  auto group = subject.resolve<GroupOp>(op, op.getGroupAttr());
  if (!group)
    return failure();
  for (Attribute member : group.getMembers()) {
    auto name = cast<FlatSymbolRefAttr>(cast<ArrayAttr>(member)[0]);
    auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
    auto stage = subject.symbols.lookup<StageOp>(*variable.getStage());
    if (llvm::is_contained(getDevices(stage), device))
      return verifyEvery(op, op.getEvery(), getDevices(stage).size());
  }
  return op.emitOpError("C25: of ") << op.getGroupAttr() << " on device "
                                    << device << ", which has no member of it";
}

/// C20, the other part: an order for every device that has a stage, and for no
/// other.
LogicalResult ScheduleRules::verifyOrders() {
  llvm::MapVector<int64_t, StageOp> used;
  for (StageOp stage : subject.module.getOps<StageOp>())
    for (int64_t device : getDevices(stage))
      used.try_emplace(device, stage);
  llvm::DenseSet<int64_t> ordered;
  for (OrderOp order : schedule.getBody().getOps<OrderOp>()) {
    if (!used.contains(order.getDevice()))
      return order.emitOpError("C20: is for device ")
             << order.getDevice() << ", where no stage is";
    ordered.insert(order.getDevice());
  }
  for (auto [device, stage] : used)
    if (!ordered.contains(device))
      return schedule.emitOpError("C20: has no order for device ")
             << device << ", where stage @" << stage.getSymName() << " is";
  return success();
}

/// C8, the other part: all replicas of the members' stages take part in a sum.
LogicalResult ScheduleRules::verifyGroups() {
  llvm::MapVector<GroupOp, llvm::DenseSet<int64_t>> summed;
  schedule.walk([&](AllReduceOp op) {
    summed[subject.symbols.lookup<GroupOp>(op.getGroup())].insert(
        op->getParentOfType<OrderOp>().getDevice());
  });
  for (auto &[group, devices] : summed)
    for (Attribute member : group.getMembers()) {
      auto name = cast<FlatSymbolRefAttr>(cast<ArrayAttr>(member)[0]);
      auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
      auto stage = subject.symbols.lookup<StageOp>(*variable.getStage());
      for (int64_t device : getDevices(stage))
        if (!devices.contains(device))
          return schedule.emitOpError("C8: sums @")
                 << group.getSymName() << " without device " << device
                 << ", where stage @" << stage.getSymName() << " is";
    }
  return success();
}

/// A gradient that is written without being read loses all microbatches but the
/// last.
LogicalResult ScheduleRules::verifyOverwrites() {
  if (schedule.getMicrobatches() == 1)
    return success();
  for (TaskOp task : set.tasks)
    for (WriteOp write : task.getBody().getOps<WriteOp>()) {
      auto variable = subject.symbols.lookup<VariableOp>(write.getVariable());
      bool makes = task.getKind() == TaskKind::Backward ||
                   task.getKind() == TaskKind::WeightGrad;
      bool isSum =
          llvm::any_of(task.getBody().getOps<ReadOp>(), [&](ReadOp read) {
            return read.getVariableAttr() == write.getVariableAttr();
          });
      if (makes && !isSum && variable && variable.getRole() == Role::Gradient)
        return write.emitOpError("C12: overwrites gradient ")
               << write.getVariableAttr() << ", but @" << schedule.getSymName()
               << " has " << schedule.getMicrobatches()
               << " microbatches per update";
    }
  return success();
}

LogicalResult ScheduleRules::verify() {
  trains = penstock::pipeline::trains(subject.module);
  // The ends of channels, among the tasks that this schedule runs.
  schedule.walk([&](RunOp run) {
    auto task = subject.symbols.lookup<TaskOp>(run.getTask());
    if (!task || task.isBodyless() || llvm::is_contained(set.tasks, task))
      return;
    set.tasks.push_back(task);
    set.evaluates |= task.getKind() == TaskKind::Evaluate;
    for (TakeOp take : task.getBody().getOps<TakeOp>())
      taker[take.getChannelAttr().getAttr()] = getStage(task);
    for (PutOp put : task.getBody().getOps<PutOp>())
      putter[put.getChannelAttr().getAttr()] = getStage(task);
  });
  for (StageOp stage : subject.module.getOps<StageOp>())
    if (schedule.getMicrobatches() % getDevices(stage).size() != 0)
      return schedule.emitOpError("C20: has ")
             << schedule.getMicrobatches() << " microbatches for "
             << getDevices(stage).size() << " replicas of stage @"
             << stage.getSymName() << ": not a multiple";
  if ((!set.tasks.empty() &&
       failed(verifyRole(schedule, set.evaluates, trains))) ||
      failed(verifyOverwrites()))
    return failure();
  for (OrderOp order : schedule.getBody().getOps<OrderOp>()) {
    int64_t device = order.getDevice();
    auto result = order.walk([&](Operation *op) -> WalkResult {
      if (auto run = dyn_cast<RunOp>(op))
        return verifyRun(run, device);
      if (auto send = dyn_cast<SendOp>(op))
        return verifyTransfer(op, send.getChannelAttr(), device, true);
      if (auto recv = dyn_cast<RecvOp>(op))
        return verifyTransfer(op, recv.getChannelAttr(), device, false);
      if (auto reduce = dyn_cast<AllReduceOp>(op))
        return verifyAllReduce(reduce, device);
      return success();
    });
    if (result.wasInterrupted())
      return failure();
  }
  if (failed(verifyOrders()) || failed(verifyGroups()) ||
      (!set.evaluates && failed(verifyWaves(subject, schedule, set.tasks))))
    return failure();
  return verifyTaskSet(subject, set);
}

LogicalResult penstock::verifySchedules(Subject &subject) {
  if (failed(verifyStorage(subject)))
    return failure();
  for (GroupOp group : subject.module.getOps<GroupOp>())
    if (failed(verifyGroup(subject, group)))
      return failure();
  if (!subject.isFrom(Level::Schedule))
    return success();
  if (failed(verifyPlacement(subject)) || failed(verifyTargets(subject)))
    return failure();
  llvm::SmallDenseSet<ScheduleRole> roles;
  for (ScheduleOp schedule : subject.module.getOps<ScheduleOp>()) {
    // C30: the runtime finds it by its role.
    if (subject.isFrom(Level::Program) &&
        !roles.insert(schedule.getRole()).second)
      return schedule.emitOpError("C30: is the second schedule with the role ")
             << stringifyScheduleRole(schedule.getRole());
    if (schedule.isBodyless()) {
      if (!subject.isFrom(Level::Program))
        return schedule.emitOpError("C43: needs orders before level program");
      if (failed(verifyMarked(subject, schedule)))
        return failure();
      continue;
    }
    if (failed(ScheduleRules(subject, schedule).verify()))
      return failure();
  }
  return verifyEvaluated(subject);
}
