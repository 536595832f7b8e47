//===- ProgramTable.cpp - What the programs of devices refer to -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the channels, groups, tasks and hyperparameters that device
// functions use, and numbers them in the order in which they appear.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/ProgramTable.h"

#include "dialects/Pipeline/Replicas.h"
#include "penstock/Optimizers/RateSchedule.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Returns true if a transfer's channel joins replicas.
static bool isReplicated(Operation *op, FlatSymbolRefAttr name) {
  auto channel = SymbolTable::lookupNearestSymbolFrom<ChannelOp>(op, name);
  return channel && pipeline::getWays(channel) > 1;
}

LogicalResult ProgramTable::setEnd(Operation *op, FlatSymbolRefAttr channel,
                                   int64_t &end, int64_t device) {
  if (end >= 0 && end != device && !isReplicated(op, channel))
    return op->emitError() << "device " << device
                           << " is an end of this channel, but device " << end
                           << " is the same end elsewhere";
  end = device;
  return success();
}

/// Describes the target of a device for the runtime.
LogicalResult ProgramTable::addDevice(func::FuncOp function, int64_t number) {
  if (descriptions.count(number))
    return success();
  for (auto device : module.getOps<DeviceOp>()) {
    if (static_cast<int64_t>(device.getNumber()) != number)
      continue;
    TargetAttrInterface attribute = device.getTarget();
    const Target *target = Target::get(attribute);
    if (!target)
      return device.emitError("no device of this kind is known: ") << attribute;
    FailureOr<DeviceDescription> description =
        target->describe(attribute, device.getLoc());
    if (failed(description))
      return failure();
    descriptions[number] = *description;
    return success();
  }
  return function.emitError() << "device " << number
                              << " has no pipeline.device: run "
                                 "pipeline-declare-devices";
}

LogicalResult ProgramTable::collect(ModuleOp programModule) {
  module = programModule;
  SymbolTable symbols(module);
  trains = pipeline::trains(module);
  for (auto arena : module.getOps<ArenaOp>())
    arenas[arena.getDevice()] = arena;
  for (auto stage : module.getOps<StageOp>())
    stages.insert(stage.getSymName());
  for (auto task : module.getOps<TaskOp>())
    tasks[task.getSymName()] = task;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function->hasAttr(kRateAttr))
      rate = function.getSymName().str();
    auto number = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    auto schedule = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    if (!number || !schedule)
      continue;
    int64_t device = number.getInt();
    if (!arenas.count(device))
      return function.emitError() << "device " << device
                                  << " has no pipeline.arena: run "
                                     "pipeline-plan-memory";
    if (failed(addDevice(function, device)))
      return failure();
    functions[schedule.getValue()][device] = function.getSymName().str();
    WalkResult result = function.walk([&](Operation *op) {
      LogicalResult ok = success();
      if (auto slot = dyn_cast<SlotOp>(op)) {
        if (!slot.getAt())
          ok = slot.emitError("has no place: run pipeline-plan-memory");
        else if (symbols.lookup<VariableOp>(slot.getSymbolAttr().getAttr()))
          placements[slot.getSymbol()][device] = {*slot.getAt(),
                                                  slot.getStride().value_or(0),
                                                  slot.getRing().value_or(1)};
      } else if (auto send = dyn_cast<StartSendOp>(op)) {
        ok = setEnd(op, send.getChannelAttr(),
                    channels[send.getChannel()].sender, device);
      } else if (auto recv = dyn_cast<StartRecvOp>(op)) {
        ok = setEnd(op, recv.getChannelAttr(),
                    channels[recv.getChannel()].receiver, device);
      } else if (auto sum = dyn_cast<StartAllReduceOp>(op)) {
        groups.insert(sum.getGroup());
      } else if (auto await = dyn_cast<AwaitOp>(op)) {
        if (!symbols.lookup<GroupOp>(await.getChannelAttr().getAttr()))
          channels.insert({await.getChannel(), Ends()});
      } else if (auto parameter = dyn_cast<HyperparameterOp>(op)) {
        double value = 0;
        if (auto given = parameter.getDefaultValue())
          value = given->convertToDouble();
        auto [it, inserted] =
            hyperparameters.insert({parameter.getName(), value});
        if (!inserted && it->second != value)
          ok = parameter.emitError() << "has the value " << value << ", but "
                                     << it->second << " elsewhere";
      } else if (auto mark = dyn_cast<MarkOp>(op)) {
        if (!tasks.contains(mark.getTask()))
          ok = mark.emitError() << "names no task: @" << mark.getTask();
      }
      return failed(ok) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  for (auto &[name, ends] : channels) {
    auto channel = symbols.lookup<ChannelOp>(name);
    if (!channel)
      return module.emitError() << "there is no channel @" << name;
    if (channel.getTypes().size() != 1)
      return channel.emitError("is transferred, but carries several tensors");
    ends.ways = pipeline::getWays(channel);
    if (auto turn = channel->getAttrOfType<DenseI64ArrayAttr>(kTurnAttr)) {
      ends.turn = turn[0];
      ends.turns = turn[1];
      ends.isSink = bool(channel.getSink());
    }
  }
  return sortTurns();
}

/// Sorts the channels: those of a sink that workers share stand together, in
/// their order.
LogicalResult ProgramTable::sortTurns() {
  std::vector<std::pair<StringRef, Ends>> order(channels.begin(),
                                                channels.end());
  auto getSink = [&](StringRef name) {
    return module.lookupSymbol<ChannelOp>(name).getSinkAttr();
  };
  channels.clear();
  for (auto &[name, ends] : order) {
    if (ends.isSink && ends.turn != 0)
      continue;
    channels[name] = ends;
    for (int64_t turn : llvm::seq<int64_t>(1, ends.isSink ? ends.turns : 1)) {
      auto other = llvm::find_if(order, [&](const auto &entry) {
        return entry.second.turn == turn && entry.second.turns == ends.turns &&
               getSink(entry.first) == getSink(name);
      });
      if (other == order.end())
        return module.lookupSymbol<ChannelOp>(name).emitError()
               << "is shared by " << ends.turns << " workers, but number "
               << turn << " has none";
      channels[other->first] = other->second;
    }
  }
  if (channels.size() != order.size())
    return module.emitError("has channels of workers without the first one's");
  return success();
}

uint32_t ProgramTable::getEndpoint(StringRef name) const {
  uint32_t number = 0;
  for (auto &[channel, ends] : channels) {
    if (channel == name)
      return number;
    number += count(ends);
  }
  return number + getGroup(name);
}

int64_t ProgramTable::count(const Ends &ends) const {
  return ends.ways + (trains && ends.isBeforeEvaluation());
}

uint32_t ProgramTable::getEvaluationEndpoint(StringRef name) const {
  const auto *channel = channels.find(name);
  if (channel == channels.end())
    return getEndpoint(name);
  const Ends &ends = channel->second;
  int64_t behind = ends.ways > 1     ? ends.ways
                   : ends.turns == 1 ? 0
                   : ends.isSink     ? ends.turns - ends.turn
                                     : 1;
  return getEndpoint(name) + behind;
}

int64_t ProgramTable::getWays(StringRef name) const {
  const auto *channel = channels.find(name);
  return channel == channels.end() ? 1 : channel->second.ways;
}

uint32_t ProgramTable::getGroup(StringRef name) const {
  return llvm::find(groups, name) - groups.begin();
}

uint32_t ProgramTable::getTask(StringRef name) const {
  return tasks.find(name) - tasks.begin();
}

uint32_t ProgramTable::getHyperparameter(StringRef name) const {
  return hyperparameters.find(name) - hyperparameters.begin();
}

int64_t ProgramTable::getStage(StringRef name) const {
  const auto *stage = llvm::find(stages, name);
  return stage == stages.end() ? 0 : stage - stages.begin();
}
