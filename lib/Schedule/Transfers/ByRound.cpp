//===- ByRound.cpp - Transfers between stages of any width ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where stages have different numbers of replicas, a device meets its
// neighbors at a different point of every microbatch, until all have taken
// their turns. So a loop repeats once per round of microbatches: an update,
// or what divides one if it is long. As for loops of one microbatch, a modulo
// schedule gives every run of a round a time, and every transfer the time at
// which the run ends that it sends from. A sum over replicas has a time, too,
// behind the last run that adds to it and before the first that needs it: no
// replica is past an update that another one still works for. All devices
// agree on the sequence by time, so that nothing waits in a circle.
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Transfers/Parts.h"

#include "lib/Schedule/ModuloSchedule.h"
#include "lib/Schedule/Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace llvm;

namespace penstock::schedule {

/// More microbatches are a round only if their numbers of replicas want it.
static constexpr int64_t kLongestRound = 64;

namespace {

/// An entry of a loop that repeats once per round; in iteration j it is the
/// run of round j + item.ahead.
struct Entry {
  Item item;
  int node;
};

struct RoundLoop {
  Order *order;
  /// Numbers of its device: microbatches per round, between two of them, and
  /// the first.
  int64_t slots = 1, width = 1, index = 0;
  std::vector<Entry> entries;
};

class RoundPlacement {
public:
  RoundPlacement(const Model &model, ArrayRef<int64_t> rank,
                 std::vector<Order> &orders)
      : model(model), rank(rank), tables(model), orders(orders) {}

  std::optional<std::string> place();

private:
  int64_t getRound() const;
  void addNodes();
  bool unroll(Order &order);
  void addEdges();
  bool findPeriod();
  void findTransferTimes();
  void addTransfers(const RoundLoop &loop, ModuloLoop &placed) const;
  void write(RoundLoop &loop) const;

  /// A stage is as wide as it has work: all stages take a microbatch in the
  /// same time.
  int64_t duration(int task) const {
    const Task &it = model.tasks[task];
    int64_t width = model.stages[it.stage].devices.size();
    return it.perUpdate() ? 0 : width * (it.letter == 'B' ? 2 : 1);
  }
  /// Returns the node of a microbatch of a round; of an action once per update,
  /// the node of a replica.
  int getNode(int task, int64_t number) const {
    return firstNodes[task] + int(number);
  }

  const Model &model;
  ArrayRef<int64_t> rank;
  Tables tables;
  std::vector<Order> &orders;
  int64_t round = 1;
  std::vector<RoundLoop> loops;
  /// The first nodes by task, and by group.
  std::vector<int> firstNodes, groupNodes;
  int nodes = 0;
  std::vector<Precedence> edges;
  ModuloTimes found;
  /// Times by channel and microbatch of a round.
  std::vector<std::vector<int64_t>> times;
};

} // namespace

int64_t RoundPlacement::getRound() const {
  int64_t M = model.microbatches, least = 1;
  for (const Stage &stage : model.stages)
    least = std::lcm(least, std::max<int64_t>(1, stage.devices.size()));
  int64_t longest = least;
  for (int64_t length = least; length <= std::min(M, kLongestRound);
       length += least)
    if (M % length == 0)
      longest = length;
  return longest;
}

void RoundPlacement::addNodes() {
  for (const Task &task : model.tasks) {
    firstNodes.push_back(nodes);
    nodes += task.perUpdate() ? int(model.stages[task.stage].devices.size())
                              : int(round);
  }
  for (size_t group = 0; group < model.groups.size(); ++group)
    groupNodes.push_back(nodes++);
}

/// The entries of one round; false if it is no plain loop over microbatches, or
/// over rounds with each microbatch written out.
bool RoundPlacement::unroll(Order &order) {
  RoundLoop loop;
  loop.order = &order;
  for (const Stage &stage : model.stages) {
    const int *place = llvm::find(stage.devices, order.device);
    if (place == stage.devices.end())
      continue;
    loop.width = stage.devices.size();
    loop.index = place - stage.devices.begin();
  }
  loop.slots = round / loop.width;
  int64_t perUpdate = microbatchesPerUpdate(model, order.device);
  int64_t written = order.loops.front().count;
  if (order.loops.size() != 1 || (written != 1 && written != loop.slots))
    return false;
  if (written != 1) {
    std::map<int, int64_t> counts;
    for (const Item &item : order.loops.front().items) {
      int64_t local = counts[item.id]++;
      bool once = model.tasks[item.id].perUpdate();
      if (once && item.ahead != 0)
        return false;
      loop.entries.push_back(
          {item,
           getNode(item.id, (once ? 0 : local * loop.width) + loop.index)});
    }
    loops.push_back(std::move(loop));
    return true;
  }
  for (int64_t slot = 0; slot < loop.slots; ++slot)
    for (Item item : order.loops.front().items) {
      if (model.tasks[item.id].perUpdate()) {
        if (item.ahead != 0 || item.every != perUpdate)
          return false;
        item.every = perUpdate / loop.slots;
        if (slot + 1 == loop.slots)
          loop.entries.push_back({item, getNode(item.id, loop.index)});
        continue;
      }
      int64_t n = slot + item.ahead;
      item.ahead = llvm::divideFloorSigned(n, loop.slots);
      int64_t local = n - item.ahead * loop.slots;
      loop.entries.push_back(
          {item, getNode(item.id, local * loop.width + loop.index)});
    }
  loops.push_back(std::move(loop));
  return true;
}

void RoundPlacement::addEdges() {
  // 1. Behind each other on their device.
  for (const RoundLoop &loop : loops)
    for (auto [index, entry] : llvm::enumerate(loop.entries)) {
      const Entry &former =
          index ? loop.entries[index - 1] : loop.entries.back();
      edges.push_back({former.node, entry.node, duration(former.item.id),
                       entry.item.ahead - former.item.ahead + (index ? 0 : 1)});
    }
  // 2. What is taken has been put.
  for (const Channel &channel : model.channels)
    if (!channel.isSource() && !channel.isSink() &&
        !model.tasks[channel.producer].perUpdate())
      for (int64_t k = 0; k < round; ++k)
        edges.push_back({getNode(channel.producer, k),
                         getNode(channel.consumer, k),
                         duration(channel.producer), 0});
  // 3. What is summed has been made, by all.
  auto forAll = [&](int task, function_ref<void(int)> visit) {
    int end = size_t(task) + 1 < firstNodes.size() ? firstNodes[task + 1]
              : groupNodes.empty()                 ? nodes
                                                   : groupNodes.front();
    for (int node = firstNodes[task]; node < end; ++node)
      visit(node);
  };
  for (auto [group, node] : llvm::enumerate(groupNodes)) {
    int sum = node;
    for (int writer : tables.groupWriters[group])
      forAll(writer, [&](int run) {
        edges.push_back({run, sum, duration(writer), 0});
      });
    for (auto [task, groups] : llvm::enumerate(tables.groupsBefore))
      if (llvm::is_contained(groups, int(group)))
        forAll(int(task), [&](int run) { edges.push_back({sum, run, 0, 0}); });
  }
}

bool RoundPlacement::findPeriod() {
  int64_t most = 1, total = 1;
  for (const RoundLoop &loop : loops) {
    int64_t load = 0;
    for (const Entry &entry : loop.entries)
      load += duration(entry.item.id);
    most = std::max(most, load);
    total += load;
  }
  std::optional<ModuloTimes> times = findModuloTimes(nodes, edges, most, total);
  if (times)
    found = std::move(*times);
  return times.has_value();
}

/// A message moves when the run that it is sent from ends; with several
/// senders, one may be ahead of another, and their common receiver takes
/// messages in order all the same.
void RoundPlacement::findTransferTimes() {
  times.resize(model.channels.size());
  for (auto [id, channel] : llvm::enumerate(model.channels)) {
    if (!channel.hasPeer() || model.tasks[channel.producer].perUpdate())
      continue;
    std::vector<int64_t> &list = times[id];
    for (int64_t k = 0; k < round; ++k)
      list.push_back(found.starts[getNode(channel.producer, k)] +
                     duration(channel.producer));
    int64_t width =
        model.stages[model.tasks[channel.consumer].stage].devices.size();
    for (bool changed = true; changed;) {
      changed = false;
      for (int64_t k = 0; k < round; ++k) {
        int64_t former = k < width ? list[k - width + round] - found.period
                                   : list[k - width];
        changed |= list[k] < former;
        list[k] = std::max(list[k], former);
      }
    }
  }
}

void RoundPlacement::addTransfers(const RoundLoop &loop,
                                  ModuloLoop &placed) const {
  std::vector<int> summed;
  for (auto [index, entry] : llvm::enumerate(loop.entries)) {
    const Task &task = model.tasks[entry.item.id];
    for (int group : tables.groupsBefore[entry.item.id])
      if (!llvm::is_contained(summed, group) &&
          llvm::is_contained(model.groups[group].devices, loop.order->device)) {
        summed.push_back(group);
        placed.addSum(index, group, found.starts[groupNodes[group]]);
      }
    if (task.perUpdate())
      continue;
    int64_t number = entry.node - firstNodes[entry.item.id];
    for (int channel : task.puts)
      if (model.channels[channel].hasPeer())
        placed.addSend(index, channel, times[channel][number],
                       rank[entry.item.id], number);
    for (int channel : task.takes)
      if (model.channels[channel].hasPeer())
        placed.addRecv(channel, times[channel][number],
                       rank[model.channels[channel].producer], number);
  }
}

void RoundPlacement::write(RoundLoop &roundLoop) const {
  // Data come one microbatch ahead of the run that takes them.
  std::vector<ModuloEntry> entries;
  for (const Entry &entry : roundLoop.entries) {
    int64_t number = entry.node - firstNodes[entry.item.id];
    bool isLast = number / roundLoop.width + 1 == roundLoop.slots;
    entries.push_back({entry.item, found.starts[entry.node], isLast ? 1 : 0});
  }
  ModuloLoop placed(model, entries, found.period, round);
  addTransfers(roundLoop, placed);
  roundLoop.order->loops = {
      {LoopKind::Microbatches, roundLoop.slots, placed.write()}};
}

std::optional<std::string> RoundPlacement::place() {
  round = getRound();
  addNodes();
  for (Order &order : orders)
    if (!order.loops.empty() && !unroll(order))
      return "stages of different width need one plain loop per device; write "
             "the transfers out";
  addEdges();
  if (!findPeriod())
    return "the orders contradict the channels: some task waits for a later "
           "one";
  findTransferTimes();
  for (RoundLoop &loop : loops)
    write(loop);
  return std::nullopt;
}

bool joinsWidths(const Model &model) {
  return llvm::any_of(model.channels, [&](const Channel &channel) {
    return channel.hasPeer() &&
           model.stages[senderStage(model, channel)].devices.size() !=
               model.stages[receiverStage(model, channel)].devices.size();
  });
}

std::optional<std::string> placeTransfersByRound(const Model &model,
                                                 ArrayRef<int64_t> rank,
                                                 std::vector<Order> &orders) {
  return RoundPlacement(model, rank, orders).place();
}

} // namespace penstock::schedule
