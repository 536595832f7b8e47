//===- ProgramMachine.cpp - Executes traces of all devices ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No queue has a choice, so one execution decides. A buffer counts as free only
// once the device has waited for what moves through it: that a transfer happens
// to be done in this execution does not suffice.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

ProgramMachine::ProgramMachine(ModuleOp module, ScheduleOp schedule,
                               int64_t first, int64_t updates, int64_t newest)
    : symbols(module), module(module), schedule(schedule), first(first),
      updates(updates), newest(newest),
      microbatches(static_cast<int64_t>(schedule.getMicrobatches())),
      trains(pipeline::trains(module)) {}

void ProgramMachine::addDevice(int64_t number, std::vector<TraceEvent> trace,
                               const ArenaMap *map) {
  Device &device = devices.emplace_back();
  device.number = number;
  device.map = map;
  device.trace = std::move(trace);
  TaskOp task;
  for (TraceEvent &event : device.trace) {
    splitParts(event);
    if (event.kind == TraceEvent::Mark)
      task = symbols.lookup<TaskOp>(event.symbol);
    evaluates |= task && task.getKind() == TaskKind::Evaluate;
    if (event.kind != TraceEvent::Call || !task || task.countsMicrobatches())
      continue;
    for (const Access &access : event.accesses)
      if (access.writes)
        device.updatedVariables.insert(access.cell.symbol);
  }
}

InFlightDiagnostic ProgramMachine::report(const Device &device,
                                          const TraceEvent &event, int rule) {
  return event.op->emitError() << "S" << rule << ": device " << device.number
                               << " in a segment of " << updates << " updates ";
}

bool ProgramMachine::isExternal(StringAttr name) {
  auto channel = symbols.lookup<ChannelOp>(name);
  return channel && (channel.getSource() || channel.getSink());
}

//===----------------------------------------------------------------------===//
// Replicas
//===----------------------------------------------------------------------===//

Share ProgramMachine::getShare(const Device &device, TaskOp task) const {
  auto stage = symbols.lookup<StageOp>(task.getStageAttr().getAttr());
  if (!task.countsMicrobatches() || !stage)
    return {};
  return pipeline::getShare(stage, device.number, isOnFirst());
}

Share ProgramMachine::getShare(const Device &device,
                               const TraceEvent &event) const {
  auto channel = symbols.lookup<ChannelOp>(event.symbol);
  if (!channel || isOnFirst())
    return {};
  return pipeline::getShare(channel, device.number, !isSending(device, event));
}

bool ProgramMachine::isSending(const Device &device,
                               const TraceEvent &event) const {
  if (event.kind != TraceEvent::Await)
    return event.kind == TraceEvent::Send;
  // Of an await, the number tells, where replicas are at both ends.
  auto channel = symbols.lookup<ChannelOp>(event.symbol);
  if (!channel)
    return false;
  ArrayRef<int64_t> senders = getEnds(channel, kSendersAttr);
  if (isOnFirst() ||
      (senders.empty() && getEnds(channel, kReceiversAttr).empty()))
    return !device.queued.contains({event.symbol, false});
  if (senders.empty())
    return false;
  auto count = static_cast<int64_t>(senders.size());
  return senders[(event.number % count + count) % count] == device.number;
}

std::vector<size_t> &ProgramMachine::getQueued(Device &device,
                                               const TraceEvent &event) {
  return device.queued[{event.symbol, isSending(device, event)}];
}

void ProgramMachine::splitParts(TraceEvent &event) const {
  for (Access &access : event.accesses) {
    auto variable = symbols.lookup<VariableOp>(access.cell.symbol);
    if (!variable || getParts(variable) == 1)
      continue;
    access.cell.part =
        static_cast<int32_t>(access.cell.number % getParts(variable));
    access.cell.number /= microbatches;
  }
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// Performs every transfer that heads the queues of both its devices.
FailureOr<bool> ProgramMachine::exchange() {
  bool moved = false;
  for (Device &sender : devices) {
    while (!sender.waiting.empty()) {
      const TraceEvent &send = sender.trace[sender.waiting.front()];
      if (send.kind != TraceEvent::Send)
        break;
      auto receiver = llvm::find_if(devices, [&](Device &other) {
        if (&other == &sender || other.waiting.empty())
          return false;
        const TraceEvent &recv = other.trace[other.waiting.front()];
        // Who takes this message: one of several receivers, or the only one.
        auto channel = symbols.lookup<ChannelOp>(send.symbol);
        ArrayRef<int64_t> ends = channel && !isOnFirst()
                                     ? getEnds(channel, kReceiversAttr)
                                     : ArrayRef<int64_t>();
        return recv.kind == TraceEvent::Recv && recv.symbol == send.symbol &&
               (ends.empty() ||
                ends[send.number % ends.size()] == other.number);
      });
      if (receiver == devices.end())
        break;
      const TraceEvent &recv = receiver->trace[receiver->waiting.front()];
      // The message of another sender comes first.
      if (recv.number < send.number && getShare(sender, send).count > 1)
        break;
      if (recv.number != send.number) {
        report(*receiver, recv, 8)
            << "receives message " << recv.number << " of @"
            << recv.symbol.getValue() << " when device " << sender.number
            << " sends message " << send.number;
        return failure();
      }
      endFirst(sender);
      endFirst(*receiver);
      moved = true;
    }
  }
  return exchangeSums() || moved;
}

void ProgramMachine::endFirst(Device &device) {
  auto transfer = device.transfers.find(device.waiting.front());
  if (transfer != device.transfers.end())
    transfer->second.done = true;
  device.waiting.pop_front();
}

llvm::SmallSetVector<int64_t, 4> ProgramMachine::getDevices(StringAttr name) {
  llvm::SmallSetVector<int64_t, 4> result;
  auto group = symbols.lookup<GroupOp>(name);
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    auto variable = symbols.lookup<VariableOp>(
        cast<FlatSymbolRefAttr>(member[0]).getAttr());
    auto stage = symbols.lookup<StageOp>(*variable.getStage());
    result.insert(stage.getDevices()->begin(), stage.getDevices()->end());
  }
  return result;
}

/// A sum ends when it heads the queues of all its devices.
bool ProgramMachine::exchangeSums() {
  bool moved = false;
  for (Device &one : devices) {
    if (one.waiting.empty())
      continue;
    const TraceEvent &sum = one.trace[one.waiting.front()];
    if (sum.kind != TraceEvent::Sum)
      continue;
    SmallVector<Device *> ready;
    llvm::SmallSetVector<int64_t, 4> members = getDevices(sum.symbol);
    for (Device &device : devices) {
      if (!members.contains(device.number) || device.waiting.empty())
        continue;
      const TraceEvent &head = device.trace[device.waiting.front()];
      if (head.kind == TraceEvent::Sum && head.symbol == sum.symbol &&
          head.number == sum.number)
        ready.push_back(&device);
    }
    if (ready.size() != members.size())
      continue;
    for (Device *device : ready)
      endFirst(*device);
    moved = true;
  }
  return moved;
}

static std::string describe(const TraceEvent &event) {
  static const char *const kNames[] = {"run",  "call",  "receive",
                                       "send", "await", "sum"};
  return std::string(kNames[event.kind]) + " @" + event.symbol.str() + "[" +
         std::to_string(event.number) + "]";
}

LogicalResult ProgramMachine::reportDeadlock() {
  const Device *stuck = nullptr;
  for (const Device &device : devices)
    if (!stuck && device.position < device.trace.size())
      stuck = &device;
  InFlightDiagnostic diagnostic =
      stuck ? report(*stuck, stuck->trace[stuck->position], 7) << "deadlocks"
            : schedule.emitError()
                  << "S6: transfers are left over in a segment of " << updates
                  << " updates";
  for (const Device &device : devices) {
    std::string text = "device " + std::to_string(device.number) + ": ";
    text += device.position < device.trace.size()
                ? "at " + describe(device.trace[device.position])
                : std::string("at the end");
    text += device.waiting.empty()
                ? std::string(", no transfer")
                : ", next transfer " +
                      describe(device.trace[device.waiting.front()]);
    diagnostic.attachNote(schedule.getLoc()) << text;
  }
  return diagnostic;
}

/// S1 and S6: everything ran, nothing is left over.
LogicalResult ProgramMachine::finish() {
  for (auto task : module.getOps<TaskOp>()) {
    if ((task.getKind() == TaskKind::Evaluate) != evaluates)
      continue;
    int64_t runs = 0;
    for (Device &device : devices)
      runs += device.runs.lookup(task.getSymNameAttr());
    // All replicas make all updates.
    auto stage = symbols.lookup<StageOp>(task.getStageAttr().getAttr());
    int64_t replicas =
        stage && stage.getDevices() ? stage.getDevices()->size() : 1;
    int64_t expected =
        updates * (task.countsMicrobatches() ? microbatches : replicas);
    if (runs != expected)
      return task.emitError() << "S1: runs " << runs << " times instead of "
                              << expected << " in a segment of " << updates
                              << " updates of " << schedule.getSymNameAttr();
  }
  for (Device &device : devices) {
    endRun(device);
    if (!device.waiting.empty())
      return reportDeadlock();
    for (auto &[key, ring] : device.rings)
      for (auto &[index, cell] : ring.cells)
        if (!ring.isVariable && !cell.used)
          return schedule.emitError()
                 << "S6: on device " << device.number << ", message "
                 << *cell.content << " of @"
                 << cast<StringAttr>(key.first).getValue()
                 << " is never used in a segment of " << updates << " updates";
  }
  return success();
}

LogicalResult ProgramMachine::run() {
  while (true) {
    bool moved = false;
    for (Device &device : devices) {
      while (device.position < device.trace.size()) {
        FailureOr<bool> done = step(device);
        if (failed(done))
          return failure();
        if (!*done)
          break;
        ++device.position;
        moved = true;
      }
    }
    FailureOr<bool> exchanged = exchange();
    if (failed(exchanged))
      return failure();
    if (moved || *exchanged)
      continue;
    for (const Device &device : devices)
      if (device.position < device.trace.size())
        return reportDeadlock();
    return finish();
  }
}
