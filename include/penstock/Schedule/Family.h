//===- Family.h - What makes a schedule -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row of the table of schedules, and the functions that generators write
// orders with. Our own rows are in lib/Schedule/Generators; a plug-in adds
// others.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_FAMILY_H
#define PENSTOCK_SCHEDULE_FAMILY_H

#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::schedule {

/// A row of the table of schedules.
struct Family : SpecKind {
  Placement placement;
  bool splitsBackward;
  int (*chunks)(const ScheduleSpec &spec);
  /// A sentence that says which numbers would do, or "". May be null.
  std::string (*check)(const Problem &problem);
  std::vector<Order> (*generate)(const Problem &problem);
  /// True if every update ends before the next one begins. Other schedules are
  /// loops over the microbatches of all updates, for methods that are
  /// asynchronous.
  bool flushes = true;
};

/// Adds a row to the table of schedules, for a plug-in: before any command line
/// or program is parsed, and for as long as the process lives.
void addSchedule(const Family &family);

/// Values of keys are below.
inline constexpr double kMostOfKey = 1e6 + 1;

/// One stage per device.
inline int oneChunk(const ScheduleSpec &) { return 1; }

//===----------------------------------------------------------------------===//
// Writing orders
//===----------------------------------------------------------------------===//

/// An order of one loop, without entries yet.
Order openOrder(int device, LoopKind kind);

void append(Loop &loop, llvm::ArrayRef<int> tasks, int64_t ahead = 0,
            int64_t every = 1);

/// Puts a loop at the end of the outermost one. An empty one is left out.
void appendLoop(Order &order, Loop loop);

/// The updates of all stages of the order's device.
void appendUpdates(const Problem &problem, Order &order);

/// An order of one update from runs that were written out.
Order buildOrder(const Problem &problem, int device, llvm::ArrayRef<int> runs);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_FAMILY_H
