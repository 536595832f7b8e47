//===- Deadlock.cpp - Why nothing moves
//------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every head of a queue that cannot move waits for another queue, its own
// device's or a peer's. Following that leads into a circle.
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace penstock::schedule {

/// The queue that must move before this one can, or none if that is not known.
std::optional<Executor::Place> Executor::waitsFor(const Place &place) {
  double time = 0;
  const Event *event = head(devices[place.device], place.queue);
  if (!event)
    return std::nullopt;
  auto getDevice = [&](int task, int64_t number) {
    ArrayRef<int> places = model.stages[model.tasks[task].stage].devices;
    return places[number % places.size()];
  };
  auto getQueue = [&](const Channel &channel) {
    return channel.hasPeer() ? &Device::transfer : &Device::io;
  };
  auto whoFrees = [&](const Users &users, int64_t size, int64_t step,
                      int device) -> std::optional<Place> {
    int64_t former = event->number - size * step;
    if (size == 0 || former < 0)
      return std::nullopt;
    for (int task : users.tasks)
      if (!isDone(taskDone[task], former, time))
        return Place{device, &Device::compute};
    for (int channel : users.sends)
      if (!isDone(sendDone[channel], former, time))
        return Place{device, getQueue(model.channels[channel])};
    return std::nullopt;
  };

  // 1. A run.
  if (place.queue == &Device::compute) {
    if (event->kind != EventKind::Run)
      return Place{place.device, getQueue(model.channels[event->id])};
    const Task &task = model.tasks[event->id];
    for (int id : task.takes) {
      const Channel &channel = model.channels[id];
      if (channel.local
              ? !isDone(taskDone[channel.producer], event->number, time)
              : !isTransferred(id, event->number, time))
        return Place{place.device,
                     channel.local ? &Device::compute : getQueue(channel)};
    }
    int64_t step = taskDone[event->id].onAll
                       ? 1
                       : int64_t(taskDone[event->id].counts.size());
    for (int id : task.puts) {
      const Channel &channel = model.channels[id];
      if (auto next =
              whoFrees(channel.local ? channel.slotUsers : channel.stagingUsers,
                       channel.local ? channel.slots : channel.staging, step,
                       place.device))
        return next;
    }
    if (!tables.groupsBefore[event->id].empty())
      return Place{place.device, &Device::transfer};
    return std::nullopt;
  }

  // 2. A transfer, or data and log.
  if (event->kind == EventKind::AllReduce) {
    for (int member : model.groups[event->id].devices) {
      const Event *other = head(devices[member], &Device::transfer);
      if (!other || other->kind != event->kind || other->id != event->id)
        return Place{member, other ? &Device::transfer : &Device::compute};
    }
    for (int member : model.groups[event->id].devices)
      if (head(devices[member], &Device::compute))
        return Place{member, &Device::compute};
    return std::nullopt;
  }
  const Channel &channel = model.channels[event->id];
  int receiver = place.device;
  if (channel.hasPeer()) {
    bool sending = event->kind == EventKind::Send;
    int peer = sending ? getReceiver(model, channel, event->number)
                       : getSender(model, channel, event->number);
    const Event *other = head(devices[peer], &Device::transfer);
    if (!other || other->id != event->id || other->number != event->number)
      return Place{peer, other ? &Device::transfer : &Device::compute};
    receiver = sending ? peer : place.device;
  }
  if (channel.producer >= 0 &&
      !isDone(taskDone[channel.producer], event->number, time))
    return Place{getDevice(channel.producer, event->number), &Device::compute};
  return whoFrees(channel.slotUsers, channel.slots,
                  recvDone[event->id].counts.size(), receiver);
}

std::string Executor::findCircle() {
  std::vector<Place> path;
  for (int device = 0; device < model.devices && path.empty(); ++device)
    for (auto queue : {&Device::compute, &Device::transfer, &Device::io})
      if (path.empty() && head(devices[device], queue))
        path.push_back({device, queue});
  while (!path.empty()) {
    std::optional<Place> next = waitsFor(path.back());
    if (!next || !head(devices[next->device], next->queue))
      break;
    auto seen = llvm::find_if(path, [&](const Place &place) {
      return place.device == next->device && place.queue == next->queue;
    });
    if (seen == path.end()) {
      path.push_back(*next);
      continue;
    }
    auto name = [&](const Place &place) {
      return describe(model, *head(devices[place.device], place.queue)) +
             " on device " + std::to_string(place.device);
    };
    if (std::next(seen) == path.end())
      return name(*seen) + " waits for what stands behind it";
    // The two that are the furthest apart say most: of one queue each.
    return name(*seen) + " and " + name(path.back()) + " wait for each other";
  }
  return "no device can go on";
}

std::string Executor::whyTransferWaits(int device, const Event &event) {
  if (event.kind == EventKind::AllReduce)
    return "the other devices";
  const Channel &channel = model.channels[event.id];
  bool sending = event.kind == EventKind::Send;
  int peerId = sending ? getReceiver(model, channel, event.number)
                       : getSender(model, channel, event.number);
  const Event *other = head(devices[peerId], &Device::transfer);
  if (!other || other->id != event.id || other->number != event.number)
    return "device " + std::to_string(peerId) + ", which is at " +
           (other ? describe(model, *other) : "the end of its transfers");
  double time = 0;
  if (!isDone(taskDone[channel.producer], event.number, time))
    return "the run of @" + model.tasks[channel.producer].name;
  return "a free slot of @" + channel.name;
}

std::vector<std::string> Executor::drawQueues() {
  std::vector<std::string> lines;
  for (auto [id, device] : llvm::enumerate(devices)) {
    std::string line = "device " + std::to_string(id) + ": compute queue: ";
    double time = 0;
    std::string why;
    if (const Event *event = head(device, &Device::compute)) {
      line += describe(model, *event);
      if (!canRun(*event, time, &why))
        line += " (waits for " + why + ")";
    } else {
      line += "empty";
    }
    line += "; transfer queue: ";
    if (const Event *event = head(device, &Device::transfer))
      line += describe(model, *event) + " (waits for " +
              whyTransferWaits(id, *event) + ")";
    else
      line += "empty";
    if (const Event *event = head(device, &Device::io))
      line += "; data and log: " + describe(model, *event);
    lines.push_back(std::move(line));
  }
  return lines;
}

} // namespace penstock::schedule
