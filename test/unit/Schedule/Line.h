//===- Line.h - A line of stages to try schedules on ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage i has F, B and U, residuals, a weight with its gradient; the first
// takes data, the last puts losses.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_SCHEDULE_LINE_H
#define PENSTOCK_TEST_UNIT_SCHEDULE_LINE_H

#include "penstock/Schedule/Order.h"

#include "llvm/ADT/StringRef.h"

namespace penstock::schedule {

struct Line {
  /// With `skip`, a value also goes from the first stage to the last, and its
  /// cotangent back.
  Line(int stages, int64_t microbatches, bool skip = false);

  Model model;
  /// Task numbers by stage.
  std::vector<int> forward, backward, update, weight;

  int channel(llvm::StringRef name) const;
  /// Sets every size to what the orders need; what is wrong with them, or "".
  std::string size(llvm::ArrayRef<Order> orders);
};

/// One device's loop nest: times < 0: entries directly in the outer loop.
Order makeOrder(int device, LoopKind outer, int64_t times,
                std::vector<Item> inner, std::vector<Item> after = {});
Item entry(EventKind kind, int id, int64_t ahead = 0, int64_t every = 1);

/// All events of a device in a segment.
std::vector<Event> eventsOf(const Model &model, const Order &order,
                            int64_t updates);

/// "F0 F1 B0 ...": runs only.
std::string runsOf(const Model &model, const Order &order, int64_t updates);

/// S1 to S7 for one segment, by the definition.
bool holdsFor(const Model &model, llvm::ArrayRef<Order> orders,
              int64_t updates);

} // namespace penstock::schedule

#endif // PENSTOCK_TEST_UNIT_SCHEDULE_LINE_H
