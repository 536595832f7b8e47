//===- Dataflow.cpp - Runs as early as their orders allow -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices take turns, each going as far as it can. Where nobody can go on, some
// wait for each other in a circle.
//===----------------------------------------------------------------------===//

#include "Dataflow.h"

#include "Tables.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <deque>

using namespace llvm;

namespace penstock::schedule {

namespace {

class Flow {
public:
  Flow(const Model &model, ArrayRef<Order> orders,
       function_ref<double(int)> duration, double transfer, int64_t updates);
  Dataflow run();

private:
  struct Device {
    std::vector<Event> events;
    size_t position = 0;
    double time = 0;
  };

  bool step(int device);
  /// The run of this task and number that is not done yet, by what an event
  /// takes; false when all are.
  bool missing(const Event &event, int &task) const;
  void explain(Dataflow &result) const;

  const Model &model;
  double transfer;
  std::vector<Device> devices;
  /// End times by task and number; negative: not done.
  std::vector<std::vector<double>> ends;
  std::vector<double> durations;
  Dataflow result;
};

} // namespace

Flow::Flow(const Model &model, ArrayRef<Order> orders,
           function_ref<double(int)> duration, double transfer, int64_t updates)
    : model(model), transfer(transfer), devices(model.devices) {
  for (const Order &order : orders) {
    std::unique_ptr<EventStream> stream = expand(model, order, updates);
    Event event;
    while (stream->next(event))
      if (event.kind == EventKind::Run)
        devices[order.device].events.push_back(event);
  }
  for (auto [id, task] : llvm::enumerate(model.tasks)) {
    ends.emplace_back(updates * (task.perUpdate() ? 1 : model.microbatches),
                      -1.0);
    durations.push_back(duration(id));
  }
  result.runs.resize(model.devices);
}

bool Flow::missing(const Event &event, int &task) const {
  for (int id : model.tasks[event.id].takes) {
    task = model.channels[id].producer;
    if (task >= 0 && ends[task][event.number] < 0)
      return true;
  }
  return false;
}

bool Flow::step(int id) {
  Device &device = devices[id];
  if (device.position == device.events.size())
    return false;
  const Event &event = device.events[device.position];
  double start = device.time;
  for (int channel : model.tasks[event.id].takes) {
    int producer = model.channels[channel].producer;
    if (producer < 0)
      continue;
    double end = ends[producer][event.number];
    if (end < 0)
      return false;
    start =
        std::max(start, end + (model.channels[channel].local ? 0.0 : transfer));
  }
  device.time = start + durations[event.id];
  ends[event.id][event.number] = device.time;
  result.runs[id].push_back({id, event.id, event.number, start, device.time});
  ++device.position;
  return true;
}

Dataflow Flow::run() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (int device = 0; device < model.devices; ++device)
      while (step(device))
        moved = true;
  }
  explain(result);
  return std::move(result);
}

/// Follows from a device that waits to the one that should do what it waits
/// for, until a device comes up again.
void Flow::explain(Dataflow &result) const {
  auto getHead = [&](int device) -> const Event * {
    const Device &it = devices[device];
    return it.position < it.events.size() ? &it.events[it.position] : nullptr;
  };
  auto waiting = [&](const Event &event, Event &other, int &device) {
    int task = -1;
    if (!missing(event, task))
      return false;
    ArrayRef<int> places = model.stages[model.tasks[task].stage].devices;
    other = {EventKind::Run, task, event.number, event.update, -1};
    device = places[event.number % places.size()];
    return true;
  };
  int start = 0;
  while (start < model.devices && !getHead(start))
    ++start;
  if (start == model.devices)
    return;

  // 1. The circle.
  std::vector<int> path = {start};
  while (true) {
    const Event *head = getHead(path.back());
    Event other;
    int next = -1;
    if (!head || !waiting(*head, other, next)) {
      result.circle = "device " + std::to_string(path.back()) +
                      " never comes to what others wait for";
      break;
    }
    auto seen = llvm::find(path, next);
    if (seen == path.end()) {
      path.push_back(next);
      continue;
    }
    path.erase(path.begin(), seen);
    const Event *first = getHead(path.front());
    const Event *last = getHead(path.back());
    result.circle = describe(model, *first) + " on device " +
                    std::to_string(path.front()) + " and ";
    if (path.size() == 1) {
      waiting(*first, other, next);
      result.circle +=
          describe(model, other) + ", which stands behind it there,";
    } else {
      result.circle +=
          describe(model, *last) + " on device " + std::to_string(path.back());
    }
    result.circle += " wait for each other";
    if (path.size() > 2)
      result.circle +=
          ", over devices " +
          llvm::join(
              llvm::map_range(
                  path, [](int device) { return std::to_string(device); }),
              ", ");
    break;
  }

  // 2. The state.
  for (int id = 0; id < model.devices; ++id) {
    std::string line = "device " + std::to_string(id) + ":";
    const Device &device = devices[id];
    auto name = [&](const Event &event) {
      const Task &task = model.tasks[event.id];
      return " @" + task.name +
             (task.perUpdate() ? "" : "[" + std::to_string(event.number) + "]");
    };
    constexpr size_t kShown = 6;
    size_t from = device.position > kShown ? device.position - kShown : 0;
    if (from > 0)
      line += " ...";
    for (size_t k = from; k < device.position; ++k)
      line += name(device.events[k]);
    if (const Event *head = getHead(id)) {
      line += " |" + name(*head);
      Event other;
      int there = -1;
      if (waiting(*head, other, there))
        line +=
            " waits for" + name(other) + " of device " + std::to_string(there);
    } else {
      line += " | done";
    }
    result.stuck.push_back(std::move(line));
  }
}

Dataflow flow(const Model &model, ArrayRef<Order> orders,
              function_ref<double(int)> duration, double transfer,
              int64_t updates) {
  return Flow(model, orders, duration, transfer, updates).run();
}

} // namespace penstock::schedule
