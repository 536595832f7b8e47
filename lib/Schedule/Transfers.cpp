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
// Orders in which a task stands several times go another way: see
// TransfersByTime.cpp, and loops of stages of different width that never drain:
// see TransfersByTurn.cpp. What happens once per update is in UpdateItems.cpp.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Transfers.h"

#include "PlaceRecv.h"
#include "Tables.h"
#include "TransfersByTime.h"
#include "TransfersByTurn.h"
#include "UpdateItems.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace llvm;

namespace penstock::schedule {

namespace {

/// A loop of a device; the loops at the same place of all orders are one phase.
struct PhaseLoop {
  size_t order;
  int loop;
};

struct Transfer {
  int channel;
  bool send;
  /// When, modulo the period; then by rank of the producer.
  int64_t time, rank;
  /// Messages that the representative is ahead of number 0.
  int64_t shift = 0;
  /// iteration * (entries + 1) + entry that it stands before.
  int64_t position = 0;
};

/// Tasks in the order of the dataflow.
std::vector<int64_t> rankTasks(const Model &model) {
  std::vector<int64_t> rank(model.tasks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const Channel &channel : model.channels) {
      if (channel.isSource() || channel.isSink())
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
  Placement(const Model &model, std::vector<Order> &orders)
      : model(model), orders(orders), rank(rankTasks(model)) {}

  std::optional<std::string> place();

private:
  bool placeInLoops();
  void findPhases();
  bool placePhase(ArrayRef<PhaseLoop> phase);
  bool checkEnds(ArrayRef<PhaseLoop> phase);
  bool findOffsets(ArrayRef<PhaseLoop> phase);
  bool relax(ArrayRef<PhaseLoop> phase);
  void placeLoop(const PhaseLoop &at);
  std::vector<Transfer> transfersOf(int device, const Loop &loop);

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
  std::vector<int64_t> rank;
  std::vector<std::vector<PhaseLoop>> phases;
  /// Of the phase that is placed: its period, offsets by task.
  int64_t period = 1;
  std::map<int, int64_t> offset;
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
  offset.clear();
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
      offset[item.id] = 0;
    }
  }
  for (const Channel &channel : model.channels) {
    if (!channel.hasPeer())
      continue;
    bool sends = offset.count(channel.producer);
    bool receives = offset.count(channel.consumer);
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

/// Raises offsets to what the orders and channels ask for; false when they
/// still rise.
bool Placement::relax(ArrayRef<PhaseLoop> phase) {
  for (auto &entry : offset)
    entry.second = 0;
  bool changed = true;
  for (size_t round = 0; changed && round <= offset.size() + 1; ++round) {
    changed = false;
    auto raise = [&](int task, int64_t least) {
      int64_t &mine = offset[task];
      changed |= mine < least;
      mine = std::max(mine, least);
    };
    for (const PhaseLoop &at : phase) {
      ArrayRef<Item> items = orders[at.order].loops[at.loop].items;
      for (auto [index, item] : llvm::enumerate(items)) {
        // The entry before it; before the first, the last of the iteration
        // before.
        const Item &former = index ? items[index - 1] : items.back();
        int64_t wrap = index ? 0 : 1;
        raise(item.id, offset[former.id] + duration(former.id) +
                           period * (former.ahead - item.ahead - wrap));
      }
    }
    for (const Channel &channel : model.channels)
      if (!channel.isSource() && !channel.isSink() &&
          offset.count(channel.producer) && offset.count(channel.consumer))
        raise(channel.consumer,
              offset[channel.producer] + duration(channel.producer));
  }
  return !changed;
}

bool Placement::findOffsets(ArrayRef<PhaseLoop> phase) {
  int64_t total = 1;
  period = 1;
  for (const PhaseLoop &at : phase) {
    int64_t load = 0;
    for (const Item &item : orders[at.order].loops[at.loop].items)
      load += duration(item.id);
    period = std::max(period, load);
    total += load;
  }
  for (; period <= total; ++period)
    if (relax(phase))
      return true;
  return fail("the orders contradict the channels: some task waits for a "
              "later one");
}

/// The transfers of a loop, one message of each, in sequence within a period.
std::vector<Transfer> Placement::transfersOf(int device, const Loop &loop) {
  int64_t entries = loop.items.size();
  std::vector<Transfer> transfers;
  std::vector<int64_t> starts;
  for (const Item &item : loop.items)
    starts.push_back(period * item.ahead + offset[item.id]);
  auto add = [&](int channel, bool send, int64_t position) {
    int producer = model.channels[channel].producer;
    int64_t time = offset[producer] + duration(producer);
    if (!send)
      position = placeRecv(starts, period, time);
    int64_t shift = -llvm::divideFloorSigned(time, period);
    transfers.push_back({channel, send, time + period * shift, rank[producer],
                         shift, position + shift * (entries + 1)});
  };
  for (auto [index, item] : llvm::enumerate(loop.items)) {
    for (int channel : model.tasks[item.id].puts)
      if (model.channels[channel].hasPeer())
        add(channel, true, -item.ahead * (entries + 1) + int64_t(index) + 1);
    for (int channel : model.tasks[item.id].takes)
      if (model.channels[channel].hasPeer())
        add(channel, false, 0);
  }
  llvm::sort(transfers, [](const Transfer &a, const Transfer &b) {
    return std::tie(a.time, a.rank, a.channel) <
           std::tie(b.time, b.rank, b.channel);
  });
  // A receive must not overtake what comes before it in the sequence; twice
  // round, as the sequence is a circle.
  int64_t reached = std::numeric_limits<int64_t>::min() / 2;
  for (int round = 0; round < 2; ++round) {
    for (Transfer &transfer : transfers) {
      if (!transfer.send)
        transfer.position = std::max(transfer.position, reached);
      reached = std::max(reached, transfer.position);
    }
    reached -= entries + 1;
  }
  return transfers;
}

void Placement::placeLoop(const PhaseLoop &at) {
  Order &order = orders[at.order];
  Loop &loop = order.loops[at.loop];
  int64_t entries = loop.items.size();
  std::vector<Transfer> transfers = transfersOf(order.device, loop);

  // 1. By the entry that they stand before.
  struct Placed {
    int64_t iteration;
    size_t sequence;
    Item item;
  };
  std::vector<std::vector<Placed>> before(entries + 1);
  for (auto [sequence, transfer] : llvm::enumerate(transfers)) {
    int64_t iteration = llvm::divideFloorSigned(transfer.position, entries + 1);
    Item item;
    item.kind = transfer.send ? EventKind::Send : EventKind::Recv;
    item.id = transfer.channel;
    item.ahead = transfer.shift - iteration;
    before[transfer.position - iteration * (entries + 1)].push_back(
        {iteration, sequence, item});
  }
  // Of two that stand together, the one of the earlier period comes first.
  for (std::vector<Placed> &placed : before)
    llvm::sort(placed, [](const Placed &a, const Placed &b) {
      return std::tie(b.iteration, a.sequence) <
             std::tie(a.iteration, b.sequence);
    });

  // 2. The loop anew. Data come one microbatch ahead, results leave at once.
  std::vector<Item> items;
  for (int64_t index = 0; index <= entries; ++index) {
    auto addLocal = [&](const Item &run, bool send) {
      const Task &task = model.tasks[run.id];
      for (int channel : send ? task.puts : task.takes) {
        const Channel &c = model.channels[channel];
        if (!(send ? c.isSink() : c.isSource()))
          continue;
        Item item;
        item.kind = send ? EventKind::Send : EventKind::Recv;
        item.id = channel;
        item.ahead = run.ahead + (send ? 0 : 1);
        items.push_back(item);
      }
    };
    if (index > 0)
      addLocal(loop.items[index - 1], /*send=*/true);
    for (const Placed &placed : before[index])
      items.push_back(placed.item);
    if (index == entries)
      break;
    addLocal(loop.items[index], /*send=*/false);
    items.push_back(loop.items[index]);
  }
  loop.items = std::move(items);
}

bool Placement::placePhase(ArrayRef<PhaseLoop> phase) {
  if (!checkEnds(phase) || !findOffsets(phase))
    return false;
  for (const PhaseLoop &at : phase)
    placeLoop(at);
  return true;
}

/// By modulo schedule, which keeps the loops of the orders.
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

std::optional<std::string> Placement::place() {
  bool drains = true;
  for (const Order &order : orders) {
    drains &=
        order.loops.empty() || order.loops.front().kind == LoopKind::Updates;
    for (const Loop &loop : order.loops)
      for (const Item &item : loop.items)
        if (item.loop < 0 && item.kind != EventKind::Run)
          return "the orders have transfers already";
  }
  std::vector<Order> written = orders;
  if (!drains && joinsWidths(model)) {
    if (auto why = placeTransfersByTurn(model, rank, orders))
      return why;
  } else if (!placeInLoops()) {
    if (!drains)
      return error;
    orders = std::move(written);
    if (auto why = placeTransfersByTime(model, rank, orders))
      return why;
  } else {
    placeUpdateTransfers(model, rank, orders);
  }
  placeSums(model, orders);
  return std::nullopt;
}

std::optional<std::string> placeTransfers(const Model &model,
                                          std::vector<Order> &orders) {
  return Placement(model, orders).place();
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
