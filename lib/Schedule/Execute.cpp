//===- Execute.cpp - All devices at once ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A work list of devices; each goes as far as it can and wakes the peers of the
// transfers that it ends. Times follow from what each step waits for.
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace llvm;

namespace penstock::schedule {

static size_t getReplicaCount(const Model &model, int stage) {
  return stage < 0 ? 1
                   : std::max<size_t>(1, model.stages[stage].devices.size());
}

Executor::Executor(const Model &model, StreamMaker streams, int64_t updates,
                   Awaits awaits, const Costs &costs, bool timed)
    : busy(model.devices), model(model), costs(costs), timed(timed),
      tables(model), devices(model.devices), taskDone(model.tasks.size()),
      sendDone(model.channels.size()), recvDone(model.channels.size()),
      reduceDone(model.groups.size()), inWork(model.devices) {
  for (auto [id, task] : llvm::enumerate(model.tasks)) {
    taskDone[id].counts.resize(getReplicaCount(model, task.stage));
    taskDone[id].onAll = task.perUpdate();
  }
  for (auto [id, channel] : llvm::enumerate(model.channels)) {
    sendDone[id].counts.resize(
        getReplicaCount(model, senderStage(model, channel)));
    recvDone[id].counts.resize(
        getReplicaCount(model, receiverStage(model, channel)));
  }
  for (Done &done : reduceDone)
    done.counts.resize(1);
  for (int device = 0; device < model.devices; ++device)
    devices[device].stream = streams(device, updates);
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

/// Fills the queues in order until this one has a head.
const Event *Executor::head(Device &device, Queue Device::*queue) {
  while ((device.*queue).events.empty()) {
    if (!device.ahead) {
      Event event;
      if (device.ended || !device.stream->next(event)) {
        device.ended = true;
        return nullptr;
      }
      device.ahead = event;
    }
    if (device.ahead->update > limit)
      return nullptr;
    Event event = *device.ahead;
    device.ahead.reset();
    bool transfer =
        event.kind != EventKind::Run && event.kind != EventKind::Await;
    if (!transfer)
      device.compute.events.push_back(event);
    else if (event.kind != EventKind::AllReduce &&
             model.channels[event.id].ownQueue)
      device.own[{event.id, event.kind == EventKind::Send}].events.push_back(
          event);
    else if (event.kind == EventKind::AllReduce ||
             model.channels[event.id].hasPeer())
      device.transfer.events.push_back(event);
    else
      device.io.events.push_back(event);
  }
  return &(device.*queue).events.front();
}

bool Executor::isDone(const Done &done, int64_t number, double &time) const {
  int64_t replicas = done.counts.size();
  if (replicas == 1 || done.onAll) {
    for (int64_t count : done.counts)
      if (count <= number)
        return false;
  } else if (done.counts[number % replicas] <= number / replicas) {
    return false;
  }
  if (timed)
    time = std::max(time, done.ends[number]);
  return true;
}

void Executor::setDone(Done &done, int64_t number, double time) {
  ++done.counts[number % done.counts.size()];
  if (!timed)
    return;
  if (done.ends.size() <= size_t(number))
    done.ends.resize(number + 1);
  done.ends[number] = time;
}

void Executor::setRunDone(int task, int device, int64_t number, double time) {
  Done &done = taskDone[task];
  if (!done.onAll)
    return setDone(done, number, time);
  ArrayRef<int> devices = model.stages[model.tasks[task].stage].devices;
  ++done.counts[llvm::find(devices, device) - devices.begin()];
  if (!timed)
    return;
  if (done.ends.size() <= size_t(number))
    done.ends.resize(number + 1);
  done.ends[number] = std::max(done.ends[number], time);
}

bool Executor::isTransferred(int channel, int64_t number, double &time) const {
  return isDone(recvDone[channel], number, time);
}

bool Executor::isFree(const Users &users, int64_t size, int64_t step,
                      int64_t number, double &time) const {
  int64_t former = number - size * step;
  if (size == 0 || former < 0)
    return true;
  for (int task : users.tasks)
    if (!isDone(taskDone[task], former, time))
      return false;
  for (int channel : users.sends)
    if (!isDone(sendDone[channel], former, time))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Executor::advance(int64_t lastUpdate) {
  limit = lastUpdate;
  for (int device = 0; device < model.devices; ++device) {
    work.push_back(model.devices - 1 - device);
    inWork[device] = true;
  }
  while (!work.empty()) {
    int device = work.back();
    work.pop_back();
    inWork[device] = false;
    while (stepDevice(device))
      ;
  }
}

bool Executor::stepDevice(int device) {
  bool moved = false;
  while (stepRun(device))
    moved = true;
  while (stepIo(device))
    moved = true;
  while (stepTransfer(device))
    moved = true;
  while (stepOwn(device))
    moved = true;
  return moved;
}

bool Executor::canRun(const Event &event, double &time,
                      std::string *why) const {
  auto waitFor = [&](const Channel &channel, const char *what) {
    if (why)
      *why = std::string(what) + " @" + channel.name;
    return false;
  };
  if (event.kind == EventKind::Await) {
    const Channel &channel = model.channels[event.id];
    if (event.number < 0)
      return true;
    if (!isDone(channel.isSource() ? recvDone[event.id] : sendDone[event.id],
                event.number, time))
      return waitFor(channel, "the transfer of");
    return true;
  }
  const Task &task = model.tasks[event.id];
  int64_t step =
      taskDone[event.id].onAll ? 1 : taskDone[event.id].counts.size();
  for (int id : task.takes) {
    const Channel &channel = model.channels[id];
    if (channel.local ? !isDone(taskDone[channel.producer], event.number, time)
                      : !isTransferred(id, event.number, time))
      return waitFor(channel, "the message of");
  }
  for (int id : task.puts) {
    const Channel &channel = model.channels[id];
    if (!(channel.local ? isFree(channel.slotUsers, channel.slots, step,
                                 event.number, time)
                        : isFree(channel.stagingUsers, channel.staging, step,
                                 event.number, time)))
      return waitFor(channel,
                     channel.local ? "a free slot of" : "free staging of");
  }
  for (int group : tables.groupsBefore[event.id])
    if (!isDone(reduceDone[group], event.number, time)) {
      if (why)
        *why = "all_reduce @" + model.groups[group].name;
      return false;
    }
  return true;
}

bool Executor::stepRun(int id) {
  Device &device = devices[id];
  const Event *event = head(device, &Device::compute);
  double start = device.compute.time;
  if (!event || !canRun(*event, start, nullptr))
    return false;
  ++steps;
  if (event->kind == EventKind::Run) {
    double cost = costOfTask(event->id);
    if (timed) {
      busy[id] += cost;
      runs.push_back({id, event->id, event->number, start, start + cost});
    }
    setRunDone(event->id, id, event->number, start + cost);
    start += cost;
  }
  device.compute.time = start;
  device.compute.events.pop_front();
  return true;
}

bool Executor::stepIo(int id) {
  Device &device = devices[id];
  const Event *event = head(device, &Device::io);
  if (!event)
    return false;
  const Channel &channel = model.channels[event->id];
  double time = device.io.time;
  if (event->kind == EventKind::Recv) {
    if (!isFree(channel.slotUsers, channel.slots,
                recvDone[event->id].counts.size(), event->number, time))
      return false;
  } else if (!isDone(taskDone[channel.producer], event->number, time)) {
    return false;
  }
  ++steps;
  time += costOfChannel(event->id);
  setDone(event->kind == EventKind::Recv ? recvDone[event->id]
                                         : sendDone[event->id],
          event->number, time);
  device.io.time = time;
  device.io.events.pop_front();
  return true;
}

bool Executor::stepTransfer(int id) {
  Device &device = devices[id];
  const Event *event = head(device, &Device::transfer);
  if (!event)
    return false;
  if (event->kind == EventKind::AllReduce)
    return stepReduce(id, *event);

  // 1. At the head of both queues?
  const Channel &channel = model.channels[event->id];
  bool sending = event->kind == EventKind::Send;
  int peerId = sending ? getReceiver(model, channel, event->number)
                       : getSender(model, channel, event->number);
  Device &peer = devices[peerId];
  const Event *other = head(peer, &Device::transfer);
  if (!other || other->id != event->id || other->number != event->number ||
      other->kind != (sending ? EventKind::Recv : EventKind::Send))
    return false;

  // 2. The run it sends from done, the slot it fills free?
  double time = std::max(device.transfer.time, peer.transfer.time);
  if (!isDone(taskDone[channel.producer], event->number, time) ||
      !isFree(channel.slotUsers, channel.slots,
              recvDone[event->id].counts.size(), event->number, time))
    return false;

  // 3. It ends on both sides together.
  ++steps;
  time += costOfChannel(event->id);
  setDone(sendDone[event->id], event->number, time);
  setDone(recvDone[event->id], event->number, time);
  device.transfer.time = peer.transfer.time = time;
  device.transfer.events.pop_front();
  peer.transfer.events.pop_front();
  if (!inWork[peerId]) {
    inWork[peerId] = true;
    work.push_back(peerId);
  }
  return true;
}

/// One transfer of a channel that waits for no other: both its ends have been
/// issued, the run it sends from is done and the slot it fills is free.
bool Executor::stepOwn(int id) {
  // Nobody fills these queues but those of the device.
  head(devices[id], &Device::compute);
  for (auto &[key, queue] : devices[id].own) {
    auto [channelId, sending] = key;
    const Channel &channel = model.channels[channelId];
    if (queue.events.empty())
      continue;
    Event event = queue.events.front();
    int peerId = sending ? getReceiver(model, channel, event.number)
                         : getSender(model, channel, event.number);
    auto found = devices[peerId].own.find({channelId, !sending});
    if (found == devices[peerId].own.end() || found->second.events.empty())
      continue;
    Queue &other = found->second;
    double time = std::max(queue.time, other.time);
    if (!isDone(taskDone[channel.producer], event.number, time) ||
        !isFree(channel.slotUsers, channel.slots, 1, event.number, time))
      continue;
    ++steps;
    time += costOfChannel(channelId);
    setDone(sendDone[channelId], event.number, time);
    setDone(recvDone[channelId], event.number, time);
    queue.time = other.time = time;
    queue.events.pop_front();
    other.events.pop_front();
    if (!inWork[peerId]) {
      inWork[peerId] = true;
      work.push_back(peerId);
    }
    return true;
  }
  return false;
}

bool Executor::stepReduce(int id, const Event &event) {
  const Group &group = model.groups[event.id];
  double time = 0;
  for (int member : group.devices) {
    const Event *other = head(devices[member], &Device::transfer);
    if (!other || other->kind != EventKind::AllReduce ||
        other->id != event.id || other->number != event.number)
      return false;
    time = std::max(time, devices[member].transfer.time);
  }
  for (int writer : tables.groupWriters[event.id]) {
    const Task &task = model.tasks[writer];
    int64_t due = task.perUpdate() ? 1 : model.microbatches;
    int64_t replicas = taskDone[writer].counts.size();
    for (int64_t q = 0; q < (task.perUpdate() ? 1 : replicas); ++q)
      if (!isDone(taskDone[writer], (event.number + 1) * due - 1 - q, time))
        return false;
  }
  ++steps;
  time += costOfGroup(event.id);
  setDone(reduceDone[event.id], event.number, time);
  for (int member : group.devices) {
    devices[member].transfer.time = time;
    devices[member].transfer.events.pop_front();
    if (member != id && !inWork[member]) {
      inWork[member] = true;
      work.push_back(member);
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What can be seen
//===----------------------------------------------------------------------===//

bool Executor::finished() {
  for (Device &device : devices)
    if (head(device, &Device::compute) || head(device, &Device::transfer) ||
        head(device, &Device::io) ||
        llvm::any_of(device.own, [](const auto &own) {
          return !own.second.events.empty();
        }))
      return false;
  return true;
}

std::vector<int64_t> Executor::snapshot(int64_t update) const {
  std::vector<int64_t> result;
  auto add = [&](const Done &done, bool countsUpdates,
                 bool countsWaves = false) {
    int64_t replicas = done.counts.size();
    for (int64_t count : done.counts)
      result.push_back(
          count -
          (countsWaves
               ? (update + 1) / model.wave
               : (update + 1) *
                     (countsUpdates ? 1 : model.microbatches / replicas)));
  };
  for (auto [id, task] : llvm::enumerate(model.tasks))
    add(taskDone[id], task.perUpdate(), task.perWave());
  for (auto [id, channel] : llvm::enumerate(model.channels)) {
    if (channel.local)
      continue;
    bool perUpdate = countsUpdates(model, channel);
    bool perWave = countsWaves(model, channel);
    if (!channel.isSource())
      add(sendDone[id], perUpdate, perWave);
    if (!channel.isSink())
      add(recvDone[id], perUpdate, perWave);
  }
  for (const Done &done : reduceDone)
    add(done, true);
  return result;
}

Execution execute(const Model &model, StreamMaker streams, int64_t updates,
                  Awaits awaits, const Costs &costs, bool recordRuns) {
  bool timed = recordRuns || !costs.task.empty() || !costs.channel.empty();
  Executor executor(model, streams, updates, awaits, costs, timed);
  executor.advance(std::numeric_limits<int64_t>::max());
  Execution result;
  result.steps = executor.steps;
  result.busy = std::move(executor.busy);
  if (!executor.finished()) {
    Violation violation;
    violation.rule = 7;
    violation.message = "deadlock in a segment of " +
                        formatCount(updates, "update") + ": " +
                        executor.findCircle();
    violation.notes = executor.drawQueues();
    result.violation = std::move(violation);
    return result;
  }
  double first = std::numeric_limits<double>::max(), last = 0;
  for (const Interval &run : executor.runs) {
    first = std::min(first, run.start);
    last = std::max(last, run.end);
  }
  result.makespan = executor.runs.empty() ? 0 : last - first;
  if (recordRuns)
    result.runs = std::move(executor.runs);
  return result;
}

} // namespace penstock::schedule
