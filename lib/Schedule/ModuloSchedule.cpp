//===- ModuloSchedule.cpp - Loops whose iterations overlap ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ModuloSchedule.h. Positions of a loop go round in a circle: one behind
// the last entry of an iteration is one before the first of the next.
//===----------------------------------------------------------------------===//

#include "ModuloSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace llvm;

namespace penstock::schedule {

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// Raises starts to what is asked for; false when they still rise.
static bool relax(ArrayRef<Precedence> precedences, int64_t period,
                  std::vector<int64_t> &starts) {
  llvm::fill(starts, 0);
  for (size_t round = 0; round <= starts.size(); ++round) {
    bool changed = false;
    for (const Precedence &edge : precedences) {
      int64_t least = starts[edge.from] + edge.weight - period * edge.periods;
      changed |= starts[edge.to] < least;
      starts[edge.to] = std::max(starts[edge.to], least);
    }
    if (!changed)
      return true;
  }
  return false;
}

std::optional<ModuloTimes> findModuloTimes(int nodes,
                                           ArrayRef<Precedence> precedences,
                                           int64_t shortest, int64_t longest) {
  ModuloTimes times;
  times.starts.resize(nodes);
  // More time helps unless something waits for itself within a period.
  if (!relax(precedences, longest, times.starts))
    return std::nullopt;
  while (shortest < longest) {
    int64_t middle = shortest + (longest - shortest) / 2;
    if (relax(precedences, middle, times.starts))
      longest = middle;
    else
      shortest = middle + 1;
  }
  times.period = shortest;
  (void)relax(precedences, shortest, times.starts);
  return times;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void ModuloLoop::add(EventKind kind, int id, int64_t time, int64_t rank,
                     int64_t number, int64_t position) {
  int64_t shift = -llvm::divideFloorSigned(time, period);
  transfers.push_back({kind, id, time + period * shift, rank,
                       number + messages * shift, shift,
                       position + shift * int64_t(entries.size() + 1)});
}

void ModuloLoop::addSend(size_t entry, int channel, int64_t time, int64_t rank,
                         int64_t number) {
  add(EventKind::Send, channel, time, rank, number,
      -entries[entry].item.ahead * int64_t(entries.size() + 1) +
          int64_t(entry) + 1);
}

void ModuloLoop::addRecv(int channel, int64_t time, int64_t rank,
                         int64_t number) {
  add(EventKind::Recv, channel, time, rank, number, findRecvPosition(time));
}

void ModuloLoop::addSum(size_t entry, int group, int64_t time) {
  add(EventKind::AllReduce, group, time, std::numeric_limits<int64_t>::max(), 0,
      int64_t(entry));
}

/// Before the last entry that starts earlier than the transfer. That of
/// iteration 0 starts `ahead` periods after that of period 0.
int64_t ModuloLoop::findRecvPosition(int64_t time) const {
  int64_t best = std::numeric_limits<int64_t>::min(), position = 0;
  for (auto [index, entry] : llvm::enumerate(entries)) {
    int64_t start = entry.start + period * entry.item.ahead;
    int64_t ahead = llvm::divideFloorSigned(start - time, period) + 1;
    int64_t distance = start - period * ahead;
    int64_t candidate = -ahead * int64_t(entries.size() + 1) + int64_t(index);
    if (distance > best || (distance == best && candidate > position)) {
      best = distance;
      position = candidate;
    }
  }
  return position;
}

/// Into the sequence, which nothing may overtake; twice round, as it is a
/// circle.
void ModuloLoop::arrange() {
  llvm::sort(transfers, [](const Transfer &a, const Transfer &b) {
    return std::tie(a.time, a.rank, a.id, a.number) <
           std::tie(b.time, b.rank, b.id, b.number);
  });
  int64_t reached = std::numeric_limits<int64_t>::min() / 2;
  for (int round = 0; round < 2; ++round) {
    for (Transfer &transfer : transfers)
      reached = transfer.position = std::max(transfer.position, reached);
    reached -= int64_t(entries.size()) + 1;
  }
}

std::vector<std::vector<ModuloLoop::Placed>> ModuloLoop::placeBefore() const {
  int64_t count = entries.size();
  std::vector<std::vector<Placed>> before(count + 1);
  for (auto [sequence, transfer] : llvm::enumerate(transfers)) {
    int64_t iteration = llvm::divideFloorSigned(transfer.position, count + 1);
    int64_t index = transfer.position - iteration * (count + 1);
    Item item;
    item.kind = transfer.kind;
    item.id = transfer.id;
    item.ahead = transfer.shift - iteration;
    // A sum is as rare as what it stands before.
    if (transfer.kind == EventKind::AllReduce)
      item.every = entries[index].item.every;
    before[index].push_back({iteration, sequence, item});
  }
  // Of two that stand together, the one of the earlier period comes first.
  for (std::vector<Placed> &placed : before)
    llvm::sort(placed, [](const Placed &a, const Placed &b) {
      return std::tie(b.iteration, a.sequence) <
             std::tie(a.iteration, b.sequence);
    });
  return before;
}

std::vector<Item> ModuloLoop::write() {
  arrange();
  std::vector<std::vector<Placed>> before = placeBefore();
  std::vector<Item> items;
  auto add = [&](EventKind kind, int channel, int64_t ahead) {
    Item &item = items.emplace_back();
    item.kind = kind;
    item.id = channel;
    item.ahead = ahead;
  };
  for (size_t index = 0; index <= entries.size(); ++index) {
    if (index > 0) {
      const Item &run = entries[index - 1].item;
      for (int channel : model.tasks[run.id].puts)
        if (model.channels[channel].isSink())
          add(EventKind::Send, channel, run.ahead);
    }
    for (const Placed &placed : before[index])
      items.push_back(placed.item);
    if (index == entries.size())
      break;
    const ModuloEntry &entry = entries[index];
    for (int channel : model.tasks[entry.item.id].takes)
      if (model.channels[channel].isSource())
        add(EventKind::Recv, channel, entry.item.ahead + entry.fetchAhead);
    items.push_back(entry.item);
  }
  return items;
}

} // namespace penstock::schedule
