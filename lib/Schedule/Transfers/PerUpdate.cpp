//===- PerUpdate.cpp - Transfers and sums once per update -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These stand in the loop over updates, outside of those over microbatches.
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Transfers/Parts.h"

#include "penstock/Schedule/Transfers.h"

#include "lib/Schedule/Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

/// The transfers of some tasks that stand outside of loops over microbatches: a
/// send stands behind its run, a receive before the run that takes. All devices
/// have them in the sequence of the dataflow, and none of a microbatch in
/// between, so that nothing can wait in a circle. What stands there already
/// stays.
static void placeTransfersWhere(llvm::function_ref<bool(const Task &)> isWanted,
                                const Model &model, ArrayRef<int64_t> rank,
                                Loop &loop) {
  auto inSequence = [&](ArrayRef<int> channels) {
    SmallVector<int> result;
    for (int channel : channels)
      if (!model.channels[channel].local)
        result.push_back(channel);
    llvm::sort(result, [&](int a, int b) {
      auto place = [&](int id) {
        const Channel &channel = model.channels[id];
        return std::pair(channel.isSource() ? -1 : rank[channel.producer], id);
      };
      return place(a) < place(b);
    });
    return result;
  };
  std::vector<Item> items;
  for (const Item &item : loop.items) {
    auto add = [&](int channel, EventKind kind) {
      if (llvm::any_of(loop.items, [&](const Item &other) {
            return other.loop < 0 && other.kind == kind && other.id == channel;
          }))
        return;
      Item transfer;
      transfer.kind = kind;
      transfer.id = channel;
      items.push_back(transfer);
    };
    bool isRun = item.loop < 0 && item.kind == EventKind::Run &&
                 isWanted(model.tasks[item.id]);
    if (isRun)
      for (int channel : inSequence(model.tasks[item.id].takes))
        add(channel, EventKind::Recv);
    items.push_back(item);
    if (isRun)
      for (int channel : inSequence(model.tasks[item.id].puts))
        add(channel, EventKind::Send);
  }
  loop.items = std::move(items);
}

/// Returns true if an entry of the outermost loop stands for an action once per
/// update.
static bool isPerUpdate(const Model &model, const Item &item) {
  if (item.loop >= 0)
    return false;
  switch (item.kind) {
  case EventKind::Run:
    return model.tasks[item.id].perUpdate();
  case EventKind::AllReduce:
    return true;
  default: {
    int producer = model.channels[item.id].producer;
    return producer >= 0 && model.tasks[producer].perUpdate();
  }
  }
}

/// Sums of what microbatches leave, unless they have a place in the sequence of
/// transfers, stand before all else of an update, in one order on all devices:
/// a norm that one of them waits for may need a sum that another takes part in.
/// Where updates stand between microbatches, before the first task that needs
/// them, and so do sums of what norms make.
static void placeSums(const Model &model, const Tables &tables, Order &order) {
  Loop &loop = order.loops.front();
  size_t tail = loop.items.size();
  while (tail > 0 && isPerUpdate(model, loop.items[tail - 1]))
    --tail;
  std::vector<Item> items;
  std::vector<int> placed;
  for (const Item &item : loop.items)
    if (item.loop < 0 && item.kind == EventKind::AllReduce)
      placed.push_back(item.id);
  auto place = [&](const Item &user, bool ofUpdates) {
    for (int group : tables.groupsBefore[user.id]) {
      bool isOfUpdate =
          llvm::any_of(tables.groupWriters[group], [&](int writer) {
            return model.tasks[writer].perUpdate();
          });
      if ((isOfUpdate && !ofUpdates) || llvm::is_contained(placed, group) ||
          !llvm::is_contained(model.groups[group].devices, order.device))
        continue;
      placed.push_back(group);
      Item sum;
      sum.kind = EventKind::AllReduce;
      sum.id = group;
      sum.ahead = user.ahead;
      sum.every = user.every;
      items.push_back(sum);
    }
  };
  auto isRun = [](const Item &item) {
    return item.loop < 0 && item.kind == EventKind::Run;
  };
  for (auto [index, item] : llvm::enumerate(loop.items)) {
    if (index == tail) {
      size_t first = items.size();
      for (const Item &user : ArrayRef<Item>(loop.items).drop_front(tail))
        if (isRun(user))
          place(user, /*ofUpdates=*/false);
      std::sort(items.begin() + first, items.end(),
                [](const Item &a, const Item &b) { return a.id < b.id; });
    }
    if (isRun(item))
      place(item, /*ofUpdates=*/true);
    items.push_back(item);
  }
  loop.items = std::move(items);
}

static void placeTransfersWhere(llvm::function_ref<bool(const Task &)> isWanted,
                                const Model &model, ArrayRef<int64_t> rank,
                                std::vector<Order> &orders) {
  for (Order &order : orders)
    if (!order.loops.empty() && order.loops.front().kind == LoopKind::Updates)
      placeTransfersWhere(isWanted, model, rank, order.loops.front());
}

void placeUpdateTransfers(const Model &model, ArrayRef<int64_t> rank,
                          std::vector<Order> &orders) {
  placeTransfersWhere([](const Task &task) { return task.perUpdate(); }, model,
                      rank, orders);
}

void placeTransfersOutsideOfLoops(const Model &model, ArrayRef<int64_t> rank,
                                  std::vector<Order> &orders) {
  placeTransfersWhere([](const Task &) { return true; }, model, rank, orders);
}

/// Those of pushes behind them; a wave that this device folds may arrive when
/// its own has been made.
static void placeWaves(const Model &model, Loop &loop) {
  std::vector<Item> items;
  auto add = [&](EventKind kind, int channel, const Item &push) {
    if (!model.channels[channel].ownQueue || model.channels[channel].local)
      return;
    Item transfer;
    transfer.kind = kind;
    transfer.id = channel;
    transfer.ahead = push.ahead;
    transfer.every = push.every;
    items.push_back(transfer);
  };
  for (const Item &item : loop.items) {
    bool pushes = item.loop < 0 && item.kind == EventKind::Run &&
                  model.tasks[item.id].letter == 'P';
    if (pushes)
      for (const Task &task : model.tasks)
        if (task.letter == 'S' && task.stage == model.tasks[item.id].stage)
          for (int channel : task.takes)
            add(EventKind::Recv, channel, item);
    items.push_back(item);
    if (pushes)
      for (int channel : model.tasks[item.id].puts)
        add(EventKind::Send, channel, item);
  }
  loop.items = std::move(items);
}

void placeWaves(const Model &model, std::vector<Order> &orders) {
  for (Order &order : orders)
    if (!order.loops.empty())
      placeWaves(model, order.loops.front());
}

void placeSums(const Model &model, std::vector<Order> &orders) {
  Tables tables(model);
  for (Order &order : orders)
    if (!order.loops.empty())
      placeSums(model, tables, order);
}

} // namespace penstock::schedule
