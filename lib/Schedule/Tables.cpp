//===- Tables.cpp - What the walk and the execution look up ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Tables.h.
//===----------------------------------------------------------------------===//

#include "Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace penstock::schedule {

int senderStage(const Model &model, const Channel &channel) {
  return channel.producer < 0 ? -1 : model.tasks[channel.producer].stage;
}

int receiverStage(const Model &model, const Channel &channel) {
  return channel.consumer < 0 ? -1 : model.tasks[channel.consumer].stage;
}

bool countsUpdates(const Model &model, const Channel &channel) {
  int task = channel.producer < 0 ? channel.consumer : channel.producer;
  return task >= 0 && model.tasks[task].perUpdate();
}

bool countsWaves(const Model &model, const Channel &channel) {
  int task = channel.producer < 0 ? channel.consumer : channel.producer;
  return task >= 0 && model.tasks[task].perWave();
}

static int getDevice(const Model &model, int stage, int64_t number) {
  if (stage < 0)
    return -1;
  ArrayRef<int> devices = model.stages[stage].devices;
  return devices.empty() ? -1 : devices[number % devices.size()];
}

int getReceiver(const Model &model, const Channel &channel, int64_t number) {
  return getDevice(model, receiverStage(model, channel), number);
}

int getSender(const Model &model, const Channel &channel, int64_t number) {
  return getDevice(model, senderStage(model, channel), number);
}

static Numbering numberAt(const Model &model, int stage, bool perUpdate,
                          bool perWave, int device) {
  Numbering result;
  result.perWave = perWave;
  if (stage < 0)
    return result;
  ArrayRef<int> devices = model.stages[stage].devices;
  auto *place = llvm::find(devices, device);
  if (place == devices.end())
    return result;
  result.here = true;
  if (perUpdate)
    return result;
  result.first = place - devices.begin();
  result.step = devices.size();
  result.perUpdate = model.microbatches / result.step;
  return result;
}

Numbering numberRuns(const Model &model, int task, int device) {
  return numberAt(model, model.tasks[task].stage, model.tasks[task].perUpdate(),
                  model.tasks[task].perWave(), device);
}

Numbering numberEvents(const Model &model, EventKind kind, int id, int device) {
  switch (kind) {
  case EventKind::Run:
    return numberRuns(model, id, device);
  case EventKind::Send: {
    const Channel &channel = model.channels[id];
    return numberAt(model, senderStage(model, channel),
                    countsUpdates(model, channel), countsWaves(model, channel),
                    device);
  }
  case EventKind::Recv: {
    const Channel &channel = model.channels[id];
    return numberAt(model, receiverStage(model, channel),
                    countsUpdates(model, channel), countsWaves(model, channel),
                    device);
  }
  case EventKind::AllReduce: {
    Numbering result;
    result.here = llvm::is_contained(model.groups[id].devices, device);
    return result;
  }
  case EventKind::Await:
    break;
  }
  return {};
}

Tables::Tables(const Model &model)
    : writersFor(model.tasks.size()), groupWriters(model.groups.size()),
      groupsBefore(model.tasks.size()) {
  std::vector<SmallVector<int, 2>> writers(model.variables.size());
  for (auto [id, task] : llvm::enumerate(model.tasks))
    for (int variable : task.writes)
      writers[variable].push_back(id);
  std::vector<SmallVector<int, 1>> groupsOf(model.variables.size());
  for (auto [id, group] : llvm::enumerate(model.groups))
    for (int variable : group.members) {
      groupsOf[variable].push_back(id);
      for (int writer : writers[variable])
        if (model.tasks[writer].letter != 'U' &&
            !llvm::is_contained(groupWriters[id], writer))
          groupWriters[id].push_back(writer);
    }
  for (auto [id, task] : llvm::enumerate(model.tasks)) {
    // What pushes and folds read has a rule of its own.
    if (!task.perUpdate() || task.perWave())
      continue;
    for (const Read &read : task.reads) {
      for (int writer : writers[read.variable])
        if (writer != int(id) && !model.tasks[writer].perWave() &&
            !llvm::is_contained(writersFor[id], writer))
          writersFor[id].push_back(writer);
      for (int group : groupsOf[read.variable])
        if (!llvm::is_contained(groupWriters[group], int(id)) &&
            !llvm::is_contained(groupsBefore[id], group))
          groupsBefore[id].push_back(group);
    }
  }
}

std::string describeNumber(bool update, int64_t number) {
  return (Twine(update ? "update " : "microbatch ") + Twine(number)).str();
}

std::string formatCount(int64_t count, const char *noun) {
  return (Twine(count) + " " + noun + (count == 1 ? "" : "s")).str();
}

std::string describe(const Model &model, const Event &event) {
  auto channel = [&](const char *verb) {
    const Channel &c = model.channels[event.id];
    return std::string(verb) + " @" + c.name + " of " +
           (countsWaves(model, c)
                ? "wave " + std::to_string(event.number)
                : describeNumber(countsUpdates(model, c), event.number));
  };
  switch (event.kind) {
  case EventKind::Run: {
    const Task &task = model.tasks[event.id];
    return "run @" + task.name + " of " +
           (task.perWave() ? "wave " + std::to_string(event.number)
                           : describeNumber(task.perUpdate(), event.number));
  }
  case EventKind::Send:
    return channel("send");
  case EventKind::Recv:
    return channel("recv");
  case EventKind::Await:
    return channel("await");
  case EventKind::AllReduce:
    return "all_reduce @" + model.groups[event.id].name + " of " +
           describeNumber(true, event.number);
  }
  return "";
}

} // namespace penstock::schedule
