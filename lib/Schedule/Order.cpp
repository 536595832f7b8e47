//===- Order.cpp - Loop nests whose entries run ahead ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expansion is a cursor per open loop; numbers of microbatches are implied
// by how often an entry's task or channel has come up.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Order.h"

#include "Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>

using namespace llvm;

namespace penstock::schedule {

int64_t microbatchesPerUpdate(const Model &model, int device) {
  for (const Stage &stage : model.stages)
    if (llvm::is_contained(stage.devices, device))
      return std::max<int64_t>(1,
                               model.microbatches / int(stage.devices.size()));
  return model.microbatches;
}

namespace {

class Expansion : public EventStream {
public:
  Expansion(const Model &model, const Order &order, int64_t updates)
      : model(model), order(order),
        perUpdate(microbatchesPerUpdate(model, order.device)),
        updates(updates) {
    counts.resize(4);
    counts[0].resize(model.tasks.size());
    counts[1].resize(model.channels.size());
    counts[2].resize(model.channels.size());
    counts[3].resize(model.groups.size());
    if (!order.loops.empty())
      open(0);
  }

  bool next(Event &event) override {
    while (!stack.empty()) {
      Cursor &at = stack.back();
      const Loop &loop = order.loops[at.loop];
      if (at.item == loop.items.size()) {
        at.item = 0;
        if (++at.iteration > at.last)
          stack.pop_back();
        continue;
      }
      const Item &item = loop.items[at.item++];
      if (item.loop >= 0) {
        if (at.iteration >= 0 && at.iteration < at.count)
          open(item.loop);
        continue;
      }
      int64_t j = at.iteration + item.ahead;
      if (j < 0 || j >= at.count || (j + 1) % item.every != 0)
        continue;
      event.kind = item.kind;
      event.id = item.id;
      event.entry = item.entry;
      int64_t outermost = stack.front().iteration;
      event.update = order.loops.front().kind == LoopKind::Microbatches
                         ? llvm::divideFloorSigned(
                               outermost * order.loops.front().count, perUpdate)
                         : outermost;
      Count &count = counts[int(item.kind)][item.id];
      if (count.step == 0) {
        Numbering numbers =
            numberEvents(model, item.kind, item.id, order.device);
        count = {numbers.first, numbers.step};
      }
      event.number = count.number;
      count.number += count.step;
      return true;
    }
    return false;
  }

private:
  struct Cursor {
    int loop;
    int64_t count, iteration, last;
    size_t item;
  };
  struct Count {
    int64_t number = 0, step = 0;
  };

  void open(int index) {
    const Loop &loop = order.loops[index];
    int64_t count = loop.kind == LoopKind::Updates ? updates
                    : loop.kind == LoopKind::Microbatches
                        ? updates * perUpdate / loop.count
                        : loop.count;
    int64_t least = 0, most = 0;
    bool first = true;
    for (const Item &item : loop.items) {
      int64_t ahead = item.loop < 0 ? item.ahead : 0;
      least = first ? ahead : std::min(least, ahead);
      most = first ? ahead : std::max(most, ahead);
      first = false;
    }
    if (count > 0 && !first)
      stack.push_back({index, count, -most, count - 1 - least, 0});
  }

  const Model &model;
  const Order &order;
  int64_t perUpdate, updates;
  SmallVector<Cursor, 4> stack;
  /// Counts by kind of event and id.
  std::vector<std::vector<Count>> counts;
};

/// How often entries run per update, by kind and id.
struct Counter {
  const Order &order;
  int64_t perUpdate;
  std::vector<std::vector<int64_t>> counts;

  void count(int index, int64_t times) {
    const Loop &loop = order.loops[index];
    times *= loop.kind == LoopKind::Updates        ? 1
             : loop.kind == LoopKind::Microbatches ? perUpdate / loop.count
                                                   : loop.count;
    for (const Item &item : loop.items) {
      if (item.loop >= 0)
        count(item.loop, times);
      else if (item.kind != EventKind::Await)
        counts[int(item.kind)][item.id] += times / item.every;
    }
  }
};

} // namespace

std::unique_ptr<EventStream> expand(const Model &model, const Order &order,
                                    int64_t updates) {
  return std::make_unique<Expansion>(model, order, updates);
}

std::optional<Violation> countEntries(const Model &model, const Order &order) {
  int64_t perUpdate = microbatchesPerUpdate(model, order.device);
  if (!order.loops.empty() &&
      order.loops.front().kind == LoopKind::Microbatches &&
      perUpdate % order.loops.front().count != 0)
    return Violation{1,
                     "device " + std::to_string(order.device) + " goes on by " +
                         std::to_string(order.loops.front().count) +
                         " microbatches, which do not divide its " +
                         std::to_string(perUpdate) + " of an update",
                     {},
                     order.device,
                     -1};
  Counter counter{order, perUpdate, {}};
  counter.counts.resize(4);
  size_t sizes[] = {model.tasks.size(), model.channels.size(),
                    model.channels.size(), model.groups.size()};
  for (auto [counts, size] : llvm::zip_equal(counter.counts, sizes))
    counts.resize(size);
  if (!order.loops.empty())
    counter.count(0, model.wave);

  static constexpr const char *kVerbs[] = {"runs @", "sends @", "receives @",
                                           "reduces @"};
  for (int kind = 0; kind < 4; ++kind)
    for (auto [id, count] : llvm::enumerate(counter.counts[kind])) {
      Numbering numbers =
          numberEvents(model, EventKind(kind), id, order.device);
      bool transfer = EventKind(kind) == EventKind::Send ||
                      EventKind(kind) == EventKind::Recv;
      int64_t expected = numbers.here ? numbers.count(model, model.wave) : 0;
      if (transfer && model.channels[id].local)
        expected = 0;
      if (count == expected)
        continue;
      const std::string &name = kind == 0  ? model.tasks[id].name
                                : transfer ? model.channels[id].name
                                           : model.groups[id].name;
      return Violation{
          1,
          "device " + std::to_string(order.device) + " " + kVerbs[kind] + name +
              " " + formatCount(count, "time") +
              (model.wave > 1 ? " per wave, not " : " per update, not ") +
              formatCount(expected, "time"),
          {},
          order.device,
          -1};
    }
  return std::nullopt;
}

int64_t getFillUpdates(const Model &model, ArrayRef<Order> orders) {
  int64_t fill = 1;
  for (const Order &order : orders) {
    int64_t perUpdate = microbatchesPerUpdate(model, order.device);
    int64_t replicas = model.microbatches / perUpdate;
    for (const Loop &loop : order.loops)
      for (const Item &item : loop.items) {
        int64_t step = loop.kind == LoopKind::Microbatches ? loop.count : 1;
        int64_t distance = std::abs(item.ahead) * step;
        if (item.loop < 0 && item.kind == EventKind::Run)
          // Until then, a read with a lag finds the first version.
          for (const Read &read : model.tasks[item.id].reads) {
            int64_t lag = read.lag.value_or(0);
            int64_t late =
                model.tasks[item.id].perWave()
                    ? (model.tasks[item.id].letter == 'P' ? lag
                                                          : lag * model.wave)
                : model.tasks[item.id].perUpdate()
                    ? lag * perUpdate
                    : llvm::divideCeilSigned(lag, replicas);
            distance = std::max(distance, late - item.ahead * step);
          }
        fill =
            std::max(fill, loop.kind == LoopKind::Updates
                               ? distance
                               : llvm::divideCeilSigned(distance, perUpdate));
      }
  }
  return fill;
}

/// Returns true if an update is over before the next begins, and reads its
/// weights only.
static bool flushes(const Model &model, ArrayRef<Order> orders) {
  for (const Order &order : orders) {
    if (order.loops.empty())
      continue;
    if (order.loops.front().kind != LoopKind::Updates)
      return false;
    for (const Item &item : order.loops.front().items)
      if (item.ahead != 0 || item.every != 1)
        return false;
  }
  for (const Task &task : model.tasks)
    for (const Read &read : task.reads)
      if (read.lag.value_or(0) != 0)
        return false;
  return true;
}

Proof verifyOrders(const Model &model, ArrayRef<Order> orders) {
  std::vector<Order> byDevice(model.devices);
  for (const Order &order : orders)
    byDevice[order.device] = order;
  for (int device = 0; device < model.devices; ++device) {
    byDevice[device].device = device;
    if (std::optional<Violation> violation =
            countEntries(model, byDevice[device])) {
      Proof proof;
      proof.violation = std::move(violation);
      return proof;
    }
  }
  return verifyAll(
      model,
      [&](int device, int64_t updates) {
        return expand(model, byDevice[device], updates);
      },
      getFillUpdates(model, orders), Awaits::Implied, flushes(model, orders));
}

} // namespace penstock::schedule
