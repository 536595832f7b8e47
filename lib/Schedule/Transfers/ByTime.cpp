//===- ByTime.cpp - Transfers of orders of any form -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For orders that are no single loop: runs of one update are executed as early
// as they can, which gives every transfer a time, the end of the run it sends
// from. All devices agree on the sequence by time, so that nothing waits in a
// circle. What recurs in the result is written as loops again.
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Transfers/Parts.h"

#include "lib/Schedule/Compress.h"
#include "lib/Schedule/Dataflow.h"
#include "lib/Schedule/Tables.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace penstock::schedule {

namespace {

struct Transfer {
  double time;
  int64_t rank;
  /// A channel; a group, with the last rank.
  int id;
  int64_t number;
  EventKind kind;
  /// The run that it stands before.
  size_t position;
};

} // namespace

/// The last run that starts before a time: a receive is posted there, so that
/// the sender need not wait for this device.
static size_t lastBefore(ArrayRef<Interval> runs, double time) {
  auto after = llvm::partition_point(
      runs, [&](const Interval &run) { return run.start < time; });
  return after == runs.begin() ? 0 : after - runs.begin() - 1;
}

/// Returns the time of each message, by channel: that at which the run ends
/// that it is sent from. With several senders, one may be ahead of another;
/// their common receiver takes messages in order all the same.
static std::vector<std::vector<double>>
computeTimes(const Model &model, ArrayRef<std::vector<double>> ends) {
  std::vector<std::vector<double>> times(model.channels.size());
  for (auto [id, channel] : llvm::enumerate(model.channels)) {
    if (!channel.hasPeer())
      continue;
    times[id] = ends[channel.producer];
    size_t receivers =
        model.tasks[channel.producer].perUpdate()
            ? 1
            : model.stages[model.tasks[channel.consumer].stage].devices.size();
    for (size_t k = receivers; k < times[id].size(); ++k)
      times[id][k] = std::max(times[id][k], times[id][k - receivers]);
  }
  return times;
}

/// Sums of what microbatches leave: each when the last run that adds to it ends
/// on the last of its devices, while others may still be at their backwards.
static void addSums(const Model &model, const Tables &tables,
                    const Dataflow &flow, ArrayRef<std::vector<double>> ends,
                    int device, std::vector<Transfer> &transfers) {
  for (auto [id, group] : llvm::enumerate(model.groups)) {
    ArrayRef<int> writers = tables.groupWriters[id];
    if (!llvm::is_contained(group.devices, device) ||
        llvm::any_of(writers, [&](int writer) {
          return model.tasks[writer].perUpdate();
        }))
      continue;
    double time = 0;
    for (int writer : writers)
      for (double end : ends[writer])
        time = std::max(time, end);
    size_t position = 0;
    for (auto [index, run] : llvm::enumerate(flow.runs[device]))
      if (llvm::is_contained(writers, run.task))
        position = index + 1;
    transfers.push_back({time, std::numeric_limits<int64_t>::max(), int(id), 0,
                         EventKind::AllReduce, position});
  }
}

static std::vector<Transfer>
collectTransfers(const Model &model, const Tables &tables, const Dataflow &flow,
                 ArrayRef<std::vector<double>> ends,
                 ArrayRef<std::vector<double>> times, ArrayRef<int64_t> rank,
                 int device) {
  ArrayRef<Interval> runs = flow.runs[device];
  std::vector<Transfer> transfers;
  for (auto [index, run] : llvm::enumerate(runs)) {
    const Task &task = model.tasks[run.task];
    for (int channel : task.puts)
      if (model.channels[channel].hasPeer())
        transfers.push_back({times[channel][run.number], rank[run.task],
                             channel, run.number, EventKind::Send, index + 1});
    for (int channel : task.takes)
      if (model.channels[channel].hasPeer()) {
        int producer = model.channels[channel].producer;
        double time = times[channel][run.number];
        transfers.push_back({time, rank[producer], channel, run.number,
                             EventKind::Recv, lastBefore(runs, time)});
      }
  }
  addSums(model, tables, flow, ends, device, transfers);
  llvm::sort(transfers, [](const Transfer &a, const Transfer &b) {
    return std::tie(a.time, a.rank, a.id, a.number) <
           std::tie(b.time, b.rank, b.id, b.number);
  });
  // A receive must not overtake what comes before it in the sequence.
  size_t reached = 0;
  for (Transfer &transfer : transfers)
    reached = transfer.position = std::max(transfer.position, reached);
  return transfers;
}

static Item makeItem(EventKind kind, int id) {
  Item item;
  item.kind = kind;
  item.id = id;
  return item;
}

/// One update of a device, runs and transfers. Data come one microbatch ahead,
/// results leave at once.
static std::vector<Item> makeItems(const Model &model, ArrayRef<Interval> runs,
                                   ArrayRef<Transfer> transfers) {
  std::vector<Item> items;
  std::vector<int64_t> left(model.tasks.size());
  for (const Interval &run : runs)
    ++left[run.task];
  std::vector<char> begun(model.tasks.size());
  const Transfer *next = transfers.begin();
  for (size_t index = 0; index <= runs.size(); ++index) {
    for (; next != transfers.end() && next->position == index; ++next)
      items.push_back(makeItem(next->kind, next->id));
    if (index == runs.size())
      break;
    const Interval &run = runs[index];
    const Task &task = model.tasks[run.task];
    int64_t fetched = (begun[run.task] ? 0 : 1) + (left[run.task] > 1 ? 1 : 0);
    begun[run.task] = true;
    --left[run.task];
    for (int channel : task.takes)
      if (model.channels[channel].isSource())
        for (int64_t k = 0; k < fetched; ++k)
          items.push_back(makeItem(EventKind::Recv, channel));
    items.push_back(makeItem(EventKind::Run, run.task));
    for (int channel : task.puts)
      if (model.channels[channel].isSink())
        items.push_back(makeItem(EventKind::Send, channel));
  }
  return items;
}

std::optional<std::string> placeTransfersByTime(const Model &model,
                                                ArrayRef<int64_t> rank,
                                                std::vector<Order> &orders,
                                                ArrayRef<double> taskTimes) {
  for (const Order &order : orders)
    if (!order.loops.empty() && order.loops.front().kind != LoopKind::Updates)
      return "the orders do not flush at every update";
  // Sums of whole numbers are exact: what comes at one time does so in every
  // period, and recurs.
  constexpr double kLongest = 1 << 20;
  double longest = taskTimes.empty() ? 0 : *llvm::max_element(taskTimes);
  auto duration = [&](int task) {
    const Task &it = model.tasks[task];
    return it.perUpdate()     ? 0.0
           : longest > 0      ? std::round(taskTimes[task] / longest * kLongest)
           : it.letter == 'B' ? 2.0
                              : 1.0;
  };
  Dataflow result = flow(model, orders, duration, 0);
  if (!result.circle.empty()) {
    std::string why = result.circle;
    for (const std::string &line : result.stuck)
      why += "\n" + line;
    return why;
  }

  std::vector<std::vector<double>> ends;
  for (const Task &task : model.tasks)
    ends.emplace_back(task.perUpdate() ? 1 : model.microbatches);
  for (ArrayRef<Interval> runs : result.runs)
    for (const Interval &run : runs)
      ends[run.task][run.number] = run.end;
  std::vector<std::vector<double>> times = computeTimes(model, ends);
  Tables tables(model);
  for (Order &order : orders) {
    if (order.loops.empty())
      continue;
    std::vector<Transfer> transfers = collectTransfers(
        model, tables, result, ends, times, rank, order.device);
    order.loops.resize(1);
    order.loops.front().items.clear();
    appendCompressed(order,
                     makeItems(model, result.runs[order.device], transfers));
  }
  return std::nullopt;
}

} // namespace penstock::schedule
