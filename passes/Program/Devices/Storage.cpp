//===- Storage.cpp - Where the values of tasks live -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value lives where it was received or read; else, when it is put, in the
// first local channel that it is put into, or in the staging slots of the
// channel that sends it; else in the variable that it is written to.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/Storage.h"

#include "penstock/Support/Assert.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

MemRefType penstock::getMemRefType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), type.getElementType());
}

FailureOr<Storage> Storage::get(ScheduleOp schedule) {
  Storage storage;
  if (failed(storage.collect(schedule)))
    return failure();
  return storage;
}

LogicalResult Storage::collect(ScheduleOp schedule) {
  module = schedule->getParentOfType<ModuleOp>();
  trains = pipeline::trains(module);
  // 1. What there is.
  for (auto op : module.getOps<VersionStorageOpInterface>()) {
    auto variable = lookup<VariableOp>(op, op.getVariableAttr());
    if (!variable)
      return failure();
    versions[variable] = op.getVersions();
  }
  if (failed(collectTasks(schedule)))
    return failure();
  for (Operation *op : tasks)
    if (failed(collectUses(schedule, cast<TaskOp>(op))))
      return failure();
  for (Operation *variable : byWaves)
    if (byUpdates.contains(variable))
      folded.insert(variable);

  // 2. What is transferred, and where it waits for that.
  if (failed(collectReceived(schedule)) || failed(collectSent(schedule)) ||
      failed(checkOrigins()))
    return failure();
  for (Operation *channel : sent) {
    FailureOr<Buffer> buffer = getSendBuffer(cast<ChannelOp>(channel));
    if (failed(buffer))
      return failure();
    PENSTOCK_ASSERT(!buffer->isVariable(),
                    "what is put is not stored in a variable");
    sendBuffers[channel] = *buffer;
  }
  return success();
}

/// The tasks that a schedule runs, each on a device that has its stage.
LogicalResult Storage::collectTasks(ScheduleOp schedule) {
  WalkResult result = schedule.walk([&](RunOp run) {
    auto task = lookup<TaskOp>(run, run.getTaskAttr());
    if (!task)
      return WalkResult::interrupt();
    if (!lookup<StageOp>(task, task.getStageAttr()))
      return WalkResult::interrupt();
    auto device =
        static_cast<int64_t>(run->getParentOfType<OrderOp>().getDevice());
    if (!llvm::is_contained(getPlaces(task), device)) {
      run.emitError() << "runs " << run.getTaskAttr() << " on device " << device
                      << ", where its stage is not";
      return WalkResult::interrupt();
    }
    tasks.insert(task);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Collects the values that a task puts, takes and writes.
LogicalResult Storage::collectUses(ScheduleOp schedule, TaskOp task) {
  if (task.isBodyless())
    return task.emitError()
           << "is run by " << schedule.getSymNameAttr() << " but has no body";
  for (Operation &inner : task.getBody().front()) {
    if (auto put = dyn_cast<PutOp>(inner)) {
      auto channel = lookup<ChannelOp>(put, put.getChannelAttr());
      if (!channel)
        return failure();
      puts.insert({channel, put});
    } else if (auto take = dyn_cast<TakeOp>(inner)) {
      auto channel = lookup<ChannelOp>(take, take.getChannelAttr());
      if (!channel)
        return failure();
      takes.insert({channel, take});
    } else if (auto write = dyn_cast<WriteOp>(inner)) {
      auto variable = lookup<VariableOp>(write, write.getVariableAttr());
      if (!variable)
        return failure();
      if (!write.getValue().getDefiningOp<func::CallOp>())
        return write.emitError("only a result of a call can be written: "
                               "nothing is ever copied");
      if (task.getKind() == TaskKind::Update)
        byUpdates.insert(variable);
      if (task.countsWaves())
        byWaves.insert(variable);
      if (!task.countsMicrobatches())
        updated.insert(variable);
      if (task.getKind() == TaskKind::Norm)
        ofNorms.insert(variable);
    }
  }
  return success();
}

/// Channels that bring something from outside or from other devices; what
/// another task puts there is sent, too.
LogicalResult Storage::collectReceived(ScheduleOp schedule) {
  for (auto &[channel, take] : takes) {
    auto put = puts.find(channel);
    if (cast<ChannelOp>(channel).getSource()) {
      received.insert(channel);
    } else if (put == puts.end()) {
      return take.emitError()
             << "takes from " << take.getChannelAttr() << ", into which "
             << schedule.getSymNameAttr() << " runs no task that puts";
    } else if (getPlaces(put->second) != getPlaces(take)) {
      received.insert(channel);
      sent.insert(channel);
    }
  }
  return success();
}

/// Channels that lead outside. All that is put is taken, or leaves.
LogicalResult Storage::collectSent(ScheduleOp schedule) {
  for (auto &[channel, put] : puts) {
    for (Value value : put.getValues())
      if (!value.getDefiningOp() ||
          !isa<TakeOp, func::CallOp>(value.getDefiningOp()))
        return put.emitError("only taken values and results of calls can be "
                             "put: nothing is ever copied");
    if (cast<ChannelOp>(channel).getSink())
      sent.insert(channel);
    else if (!takes.contains(channel))
      return put.emitError()
             << "puts into " << put.getChannelAttr() << ", from which "
             << schedule.getSymNameAttr() << " runs no task that takes";
  }
  return success();
}

/// A value that tasks pass on was received or made by some of them.
LogicalResult Storage::checkOrigins() {
  size_t most = 0;
  for (auto &[channel, put] : puts)
    most += put.getValues().size();
  for (auto &[channel, put] : puts) {
    for (Value value : put.getValues()) {
      size_t steps = 0;
      while (auto take = value.getDefiningOp<TakeOp>()) {
        auto from = lookup<ChannelOp>(take, take.getChannelAttr());
        auto origin = puts.find(from);
        unsigned field = cast<OpResult>(value).getResultNumber();
        if (received.contains(from) || origin == puts.end() ||
            field >= origin->second.getValues().size())
          break;
        if (++steps > most)
          return put.emitError(
              "puts a value that tasks pass on in a circle and none makes");
        value = origin->second.getValues()[field];
      }
    }
  }
  return success();
}

ArrayRef<int64_t> Storage::getPlaces(Operation *op) const {
  auto task = dyn_cast<TaskOp>(op);
  if (!task)
    task = op->getParentOfType<TaskOp>();
  auto stage =
      symbols->lookupNearestSymbolFrom<StageOp>(task, task.getStageAttr());
  return pipeline::getPlaces(stage, isOnFirst(task));
}

Share Storage::getShare(TaskOp task, int64_t device) const {
  auto stage =
      symbols->lookupNearestSymbolFrom<StageOp>(task, task.getStageAttr());
  return pipeline::getShare(stage, device, isOnFirst(task));
}

Share Storage::getSendShare(ChannelOp channel, int64_t device) const {
  auto put = puts.find(channel);
  return put == puts.end()
             ? Share()
             : getShare(put->second->getParentOfType<TaskOp>(), device);
}

Share Storage::getReceiveShare(ChannelOp channel, int64_t device) const {
  auto take = takes.find(channel);
  return take == takes.end()
             ? Share()
             : getShare(take->second->getParentOfType<TaskOp>(), device);
}

bool Storage::hasBothEnds(ChannelOp channel, int64_t device) const {
  if (!received.contains(channel) || !sent.contains(channel))
    return false;
  return llvm::is_contained(getPlaces(puts.lookup(channel)), device) &&
         llvm::is_contained(getPlaces(takes.lookup(channel)), device);
}

void Storage::markEnds() const {
  ModuleOp program = module;
  Builder builder(program.getContext());
  for (auto channel : program.getOps<ChannelOp>()) {
    auto put = puts.find(channel);
    auto take = takes.find(channel);
    ArrayRef<int64_t> senders, receivers;
    if (put != puts.end())
      senders = getPlaces(put->second);
    if (take != takes.end())
      receivers = getPlaces(take->second);
    if (senders.size() < 2 && receivers.size() < 2)
      continue;
    if (!received.contains(channel) && !sent.contains(channel))
      continue;
    if (!senders.empty())
      channel->setAttr(kSendersAttr, builder.getDenseI64ArrayAttr(senders));
    if (!receivers.empty())
      channel->setAttr(kReceiversAttr, builder.getDenseI64ArrayAttr(receivers));
  }
}

FailureOr<Buffer> Storage::getReceiveBuffer(ChannelOp channel) const {
  if (!channel.getSlots())
    return channel.emitError("has no slots: run pipeline-size-storage first");
  return Buffer{channel, 0, static_cast<int64_t>(*channel.getSlots())};
}

FailureOr<Buffer> Storage::getSendBuffer(ChannelOp channel) const {
  auto put = puts.find(channel);
  if (put == puts.end())
    return channel.emitError("is sent, but no task of the schedule puts");
  PutOp op = put->second;
  return getBuffer(op.getValues().front());
}

SmallVector<ChannelOp> Storage::getSends(const Buffer &buffer) const {
  SmallVector<ChannelOp> channels;
  for (auto &[channel, from] : sendBuffers)
    if (from.getRing() == buffer.getRing())
      channels.push_back(cast<ChannelOp>(channel));
  return channels;
}

/// Storage of a value that a function makes. Channels that share it need as
/// much as the longest-lived of them.
FailureOr<Buffer> Storage::getHome(Value value) const {
  Buffer local, staging, variable;
  for (Operation *user : value.getUsers()) {
    auto write = dyn_cast<WriteOp>(user);
    if (!write)
      continue;
    if (variable)
      return write.emitError("writes a value that is written twice");
    auto op = lookup<VariableOp>(write, write.getVariableAttr());
    if (!op)
      return failure();
    variable = Buffer{op, 0, getVersions(op)};
  }
  // In the order of the block: the first channel owns it.
  SmallVector<OpOperand *> fields;
  for (OpOperand &use : value.getUses())
    if (isa<PutOp>(use.getOwner()) &&
        use.getOwner()->getBlock() == value.getParentBlock())
      fields.push_back(&use);
  llvm::sort(fields, [](OpOperand *a, OpOperand *b) {
    return a->getOwner() == b->getOwner()
               ? a->getOperandNumber() < b->getOperandNumber()
               : a->getOwner()->isBeforeInBlock(b->getOwner());
  });
  for (OpOperand *use : fields) {
    auto put = cast<PutOp>(use->getOwner());
    auto channel = lookup<ChannelOp>(put, put.getChannelAttr());
    if (!channel)
      return failure();
    bool isSent = sent.contains(channel);
    Buffer &owner = isSent ? staging : local;
    auto ring = static_cast<int64_t>(
        (isSent ? channel.getStaging() : channel.getSlots()).value_or(0));
    if (!owner)
      owner = Buffer{channel,
                     use->getOperandNumber() -
                         int64_t(put.getValues().getBeginOperandIndex()),
                     ring, isSent};
    owner.ring = std::max(owner.ring, ring);
  }
  if (variable && (local || staging))
    return emitError(value.getLoc())
           << "a value cannot be written to a variable and put into a channel";
  Buffer home = variable ? variable : local ? local : staging;
  if (!home)
    return emitError(value.getLoc())
           << "a result of a task's function must be put or written";
  if (home.ring == 0)
    return home.symbol->emitError()
           << "has no " << (home.staging ? "staging" : "slots")
           << ": run pipeline-size-storage first";
  return home;
}

FailureOr<Buffer> Storage::getBuffer(Value value) const {
  auto result = dyn_cast<OpResult>(value);
  Operation *op = value.getDefiningOp();
  if (auto read = dyn_cast_or_null<ReadOp>(op)) {
    auto variable = lookup<VariableOp>(read, read.getVariableAttr());
    if (!variable)
      return failure();
    return Buffer{variable, 0, getVersions(variable)};
  }
  if (auto take = dyn_cast_or_null<TakeOp>(op)) {
    auto channel = lookup<ChannelOp>(take, take.getChannelAttr());
    if (!channel)
      return failure();
    if (received.contains(channel))
      return getReceiveBuffer(channel);
    auto put = puts.find(channel);
    PutOp from = put == puts.end() ? PutOp() : put->second;
    if (!from || result.getResultNumber() >= from.getValues().size())
      return take.emitError("takes what no task of the schedule puts");
    return getBuffer(from.getValues()[result.getResultNumber()]);
  }
  auto call = dyn_cast_or_null<func::CallOp>(op);
  if (!call)
    return emitError(value.getLoc())
           << "only taken and read values and results of calls have storage";

  // Stored into an argument's buffer?
  auto callee = lookup<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee)
    return failure();
  for (unsigned i : llvm::seq(callee.getNumArguments())) {
    auto into = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr);
    if (!into || into.getInt() != result.getResultNumber())
      continue;
    FailureOr<Buffer> buffer = getBuffer(call.getOperand(i));
    if (failed(buffer))
      return failure();
    for (Operation *user : value.getUsers()) {
      auto write = dyn_cast<WriteOp>(user);
      if (isa<func::CallOp>(user) ||
          (write && buffer->isVariable() && buffer->ring == 1 &&
           write.getVariable() == SymbolTable::getSymbolName(buffer->symbol)))
        continue;
      return user->emitError()
             << "stores a value of " << call.getCalleeAttr()
             << " elsewhere than its argument " << i
             << ", which the function changes in place; only a variable with "
                "one version can be changed in place";
    }
    return buffer;
  }
  return getHome(value);
}
