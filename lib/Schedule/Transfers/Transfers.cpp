//===- Transfers.cpp - Where sends and receives stand ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfers block both ends, so that all devices must agree on their sequence.
// A modulo schedule of the runs (one period, one offset per task) gives every
// transfer a time, the end of the run that it sends from; the sequence is by
// time, then by dataflow. A send stands behind its run. A receive is posted
// before the run that ends at that time, so that the sender need not wait for
// this device; as the runs have times too, nothing can wait in a circle.
// Orders in which a task stands several times go another way, and those that
// fill the pipe faster than so: see ByTime.cpp; loops that never flush, of
// stages of different width or of several microbatches: see ByRound.cpp.
// Transfers and sums once per update are in PerUpdate.cpp.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Transfers.h"

#include "lib/Schedule/ModuloSchedule.h"
#include "lib/Schedule/Tables.h"
#include "lib/Schedule/Transfers/Parts.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace llvm;

namespace penstock::schedule {

namespace {

/// A loop of a device; the loops at the same place of all orders are one phase.
struct PhaseLoop {
  size_t order;
  int loop;
};

/// Tasks in the order of the dataflow.
std::vector<int64_t> rankTasks(const Model &model) {
  std::vector<int64_t> rank(model.tasks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const Channel &channel : model.channels) {
      if (channel.isSource() || channel.isSink() || channel.ownQueue)
        continue;
      int64_t least = rank[channel.producer] + 1;
      if (rank[channel.consumer] < least && least <= int64_t(rank.size())) {
        rank[channel.consumer] = least;
        changed = true;
      }
    }
  }
  return rank;
}

class Placement {
public:
  Placement(const Model &model, std::vector<Order> &orders,
            ArrayRef<double> taskTimes)
      : model(model), orders(orders), taskTimes(taskTimes),
        rank(rankTasks(model)) {}

  std::optional<std::string> place();

private:
  bool placeInLoops();
  bool fillsFaster() const;
  std::optional<std::string> placeByTime();
  void findPhases();
  bool placePhase(ArrayRef<PhaseLoop> phase);
  bool checkEnds(ArrayRef<PhaseLoop> phase);
  bool findOffsets(ArrayRef<PhaseLoop> phase);
  void placeLoop(const PhaseLoop &at);

  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  int64_t duration(int task) const {
    const Task &it = model.tasks[task];
    return it.perUpdate() ? 0 : it.letter == 'B' ? 2 : 1;
  }

  const Model &model;
  std::vector<Order> &orders;
  ArrayRef<double> taskTimes;
  std::vector<int64_t> rank;
  std::vector<std::vector<PhaseLoop>> phases;
  /// Nodes by task of the phase that is placed, and their times.
  std::map<int, int> nodes;
  ModuloTimes times;
  std::string error;
};

} // namespace

void Placement::findPhases() {
  auto add = [&](size_t phase, PhaseLoop loop) {
    if (phases.size() <= phase)
      phases.resize(phase + 1);
    phases[phase].push_back(loop);
  };
  for (auto [index, order] : llvm::enumerate(orders)) {
    if (order.loops.empty())
      continue;
    if (order.loops.front().kind == LoopKind::Microbatches) {
      add(0, {index, 0});
      continue;
    }
    size_t phase = 0;
    for (const Item &item : order.loops.front().items)
      if (item.loop >= 0)
        add(phase++, {index, item.loop});
  }
}

/// Both ends of a channel must be in this phase, once.
bool Placement::checkEnds(ArrayRef<PhaseLoop> phase) {
  nodes.clear();
  for (const PhaseLoop &at : phase) {
    std::vector<int> here;
    for (const Item &item : orders[at.order].loops[at.loop].items) {
      if (item.loop >= 0)
        return fail("a loop within a loop over microbatches cannot be given "
                    "its transfers; write them out");
      if (llvm::is_contained(here, item.id))
        return fail("@" + model.tasks[item.id].name +
                    " stands in a loop twice; write its transfers out");
      here.push_back(item.id);
      nodes.try_emplace(item.id, int(nodes.size()));
    }
  }
  for (const Channel &channel : model.channels) {
    if (!channel.hasPeer())
      continue;
    bool sends = nodes.count(channel.producer);
    bool receives = nodes.count(channel.consumer);
    if (sends != receives)
      return fail("the ends of @" + channel.name +
                  " stand in loops at different places of their orders");
    // A device may be at both ends, of messages of different replicas. What
    // comes first then depends on their numbers.
    if (sends &&
        llvm::any_of(
            model.stages[senderStage(model, channel)].devices, [&](int device) {
              return llvm::is_contained(
                  model.stages[receiverStage(model, channel)].devices, device);
            }))
      return fail("@" + channel.name + " joins replicas on the same devices");
    if (sends && (model.stages[senderStage(model, channel)].devices.size() !=
                  model.stages[receiverStage(model, channel)].devices.size()))
      return fail("@" + channel.name +
                  " joins stages with different numbers of replicas");
  }
  return true;
}

bool Placement::findOffsets(ArrayRef<PhaseLoop> phase) {
  int64_t total = 1, most = 1;
  std::vector<Precedence> precedences;
  for (const PhaseLoop &at : phase) {
    ArrayRef<Item> items = orders[at.order].loops[at.loop].items;
    int64_t load = 0;
    for (auto [index, item] : llvm::enumerate(items)) {
      load += duration(item.id);
      // The entry before it; before the first, the last of the iteration
      // before.
      const Item &former = index ? items[index - 1] : items.back();
      precedences.push_back({nodes[former.id], nodes[item.id],
                             duration(former.id),
                             item.ahead - former.ahead + (index ? 0 : 1)});
    }
    most = std::max(most, load);
    total += load;
  }
  for (const Channel &channel : model.channels)
    if (!channel.isSource() && !channel.isSink() && !channel.ownQueue &&
        nodes.count(channel.producer) && nodes.count(channel.consumer))
      precedences.push_back({nodes[channel.producer], nodes[channel.consumer],
                             duration(channel.producer), 0});
  std::optional<ModuloTimes> found =
      findModuloTimes(int(nodes.size()), precedences, most, total);
  if (!found)
    return fail("the orders contradict the channels: some task waits for a "
                "later one");
  times = std::move(*found);
  return true;
}

void Placement::placeLoop(const PhaseLoop &at) {
  Loop &loop = orders[at.order].loops[at.loop];
  std::vector<ModuloEntry> entries;
  for (const Item &item : loop.items)
    entries.push_back({item, times.starts[nodes[item.id]], /*fetchAhead=*/1});
  ModuloLoop placed(model, entries, times.period, /*messages=*/1);
  // One message of each; it moves when the run ends that it is sent from.
  auto getTime = [&](int channel) {
    int producer = model.channels[channel].producer;
    return times.starts[nodes[producer]] + duration(producer);
  };
  for (auto [index, item] : llvm::enumerate(loop.items)) {
    const Task &task = model.tasks[item.id];
    for (int channel : task.puts)
      if (model.channels[channel].hasPeer())
        placed.addSend(index, channel, getTime(channel), rank[item.id], 0);
    for (int channel : task.takes)
      if (model.channels[channel].hasPeer())
        placed.addRecv(channel, getTime(channel),
                       rank[model.channels[channel].producer], 0);
  }
  loop.items = placed.write();
}

bool Placement::placePhase(ArrayRef<PhaseLoop> phase) {
  if (!checkEnds(phase) || !findOffsets(phase))
    return false;
  for (const PhaseLoop &at : phase)
    placeLoop(at);
  return true;
}

/// Places transfers by a modulo schedule, which keeps the loops of the orders.
bool Placement::placeInLoops() {
  for (const Order &order : orders) {
    if (order.loops.empty() || order.loops.front().kind != LoopKind::Updates)
      continue;
    // Transfers of what stands in no loop have no period.
    for (const Item &item : order.loops.front().items) {
      if (item.loop >= 0 || model.tasks[item.id].perUpdate())
        continue;
      const Task &task = model.tasks[item.id];
      for (ArrayRef<int> channels :
           {ArrayRef<int>(task.takes), ArrayRef<int>(task.puts)})
        if (llvm::any_of(channels, [&](int channel) {
              return !model.channels[channel].local;
            }))
          return false;
    }
  }
  findPhases();
  for (ArrayRef<PhaseLoop> phase : phases)
    if (!placePhase(phase))
      return false;
  return true;
}

/// Returns true if a forward runs ahead of one it sends to by more than a
/// microbatch for each stage between them, in loops of orders that flush. An
/// iteration of a loop has one message of each channel: while the pipeline
/// fills, a stage that goes back already receives one in the time of two runs,
/// and all stages before it, which have only forwards yet, would send no
/// faster, at every update.
bool Placement::fillsFaster() const {
  std::map<int, int64_t> ahead;
  for (const Order &order : orders)
    for (const Loop &loop : order.loops)
      for (const Item &item : loop.items)
        if (item.loop < 0 && model.tasks[item.id].letter == 'F')
          ahead[item.id] = item.ahead;
  return llvm::any_of(model.channels, [&](const Channel &channel) {
    if (!channel.hasPeer())
      return false;
    auto from = ahead.find(channel.producer), to = ahead.find(channel.consumer);
    return from != ahead.end() && to != ahead.end() &&
           from->second - to->second > model.tasks[channel.consumer].stage -
                                           model.tasks[channel.producer].stage;
  });
}

/// With the times of these stages, unless they have no period in common: what
/// runs ahead of stages that nothing holds back would make the program grow
/// with its microbatches. Even stages have one.
std::optional<std::string> Placement::placeByTime() {
  constexpr size_t kMost = 4;
  auto size = [](ArrayRef<Order> orders) {
    size_t items = 0;
    for (const Order &order : orders)
      for (const Loop &loop : order.loops)
        items += loop.items.size();
    return items;
  };
  std::vector<Order> timed = orders;
  if (auto why = placeTransfersByTime(model, rank, orders))
    return why;
  if (!taskTimes.empty() &&
      !placeTransfersByTime(model, rank, timed, taskTimes) &&
      size(timed) <= kMost * size(orders))
    orders = std::move(timed);
  return std::nullopt;
}

std::optional<std::string> Placement::place() {
  bool flushes = true;
  for (const Order &order : orders) {
    flushes &=
        order.loops.empty() || order.loops.front().kind == LoopKind::Updates;
    for (const Loop &loop : order.loops)
      for (const Item &item : loop.items)
        if (item.loop < 0 && item.kind != EventKind::Run)
          return "the orders have transfers already";
  }
  std::vector<Order> written = orders;
  bool inRounds = llvm::any_of(orders, [](const Order &order) {
    return !order.loops.empty() &&
           order.loops.front().kind == LoopKind::Microbatches &&
           order.loops.front().count > 1;
  });
  if (!flushes && (inRounds || joinsWidths(model))) {
    if (auto why = placeTransfersByRound(model, rank, orders))
      return why;
  } else if (flushes && fillsFaster() &&
             !placeTransfersByTime(model, rank, written, taskTimes)) {
    orders = std::move(written);
  } else if (written = orders; !placeInLoops()) {
    if (!flushes)
      return error;
    orders = std::move(written);
    if (auto why = placeByTime())
      return why;
  } else {
    placeTransfersOutsideOfLoops(model, rank, orders);
  }
  placeSums(model, orders);
  placeWaves(model, orders);
  return std::nullopt;
}

std::optional<std::string> placeTransfers(const Model &model,
                                          std::vector<Order> &orders,
                                          ArrayRef<double> taskTimes) {
  return Placement(model, orders, taskTimes).place();
}

bool completeTransfers(const Model &model, std::vector<Order> &orders) {
  auto size = [&] {
    size_t items = 0;
    for (const Order &order : orders)
      items += order.loops.empty() ? 0 : order.loops.front().items.size();
    return items;
  };
  size_t before = size();
  placeUpdateTransfers(model, rankTasks(model), orders);
  placeSums(model, orders);
  return size() != before;
}

} // namespace penstock::schedule
