//===- Order.h - Loop nests whose entries run ahead -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One device's order as plain numbers, and its expansion into events, one at a
// time: a segment is never written out.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_ORDER_H
#define PENSTOCK_SCHEDULE_ORDER_H

#include "penstock/Schedule/Engine.h"

namespace penstock::schedule {

enum class LoopKind : uint8_t { Updates, Microbatches, Times };

/// An entry, or a loop inside a loop.
struct Item {
  /// Position in Order::loops, or -1: an entry.
  int loop = -1;
  EventKind kind = EventKind::Run;
  int id = -1;
  int64_t ahead = 0, every = 1;
  /// Copied to Event::entry.
  int entry = -1;
};

struct Loop {
  LoopKind kind = LoopKind::Times;
  /// Iterations of a loop of times; of one over microbatches, how many of the
  /// device it goes on by in one iteration.
  int64_t count = 1;
  std::vector<Item> items;
};

/// An entry with ahead a in a loop of c iterations runs in iteration j exactly
/// when 0 <= j + a < c, and j spans every value for which some entry runs;
/// every m keeps those with (j + a + 1) mod m = 0.
struct Order {
  int device = -1;
  /// The first is the outermost, over updates or microbatches. Empty: nothing
  /// to do.
  std::vector<Loop> loops;
};

/// Microbatches per update on a device: M / r.
int64_t microbatchesPerUpdate(const Model &model, int device);

std::unique_ptr<EventStream> expand(const Model &model, const Order &order,
                                    int64_t updates);

/// S1 for all N at once: how often each entry runs, as a multiple of N, against
/// what the tasks, sends and receives of the device ask for.
std::optional<Violation> countEntries(const Model &model, const Order &order);

/// The most updates that an entry of these orders runs ahead or behind, or
/// until the reads of its task have left the first version behind them.
int64_t getFillUpdates(const Model &model, llvm::ArrayRef<Order> orders);

/// verifyAll for orders; those of all devices, in any sequence.
Proof verifyOrders(const Model &model, llvm::ArrayRef<Order> orders);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_ORDER_H
