//===- Generators.h - Orders of known schedules -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs only; transfers are placed between them afterwards.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_GENERATORS_H
#define PENSTOCK_SCHEDULE_GENERATORS_H

#include "penstock/Schedule/Order.h"

#include "llvm/ADT/StringRef.h"

namespace penstock::schedule {

/// What a device runs, in the order of its stages.
struct DeviceTasks {
  int device = -1;
  llvm::SmallVector<int, 2> forward, backward, update, evaluate;
};

/// The devices that have tasks, in the order of their first stages.
std::vector<DeviceTasks> tasksByDevice(const Model &model);

/// Names of the schedules that `generate` knows.
llvm::ArrayRef<llvm::StringLiteral> scheduleNames();

/// Orders by name, or none if there is no such schedule.
std::optional<std::vector<Order>> generate(const Model &model,
                                           llvm::StringRef name);

/// 1F1B that never drains within a segment, for any depth and M: one loop over
/// the microbatches of all updates.
std::vector<Order> generateOpen(const Model &model);

/// By stage: the most microbatches, over all replicas, that its forward is
/// ahead of its backward in these orders.
std::vector<int64_t> forwardLeads(const Model &model,
                                  llvm::ArrayRef<Order> orders);

/// Evaluate tasks, one microbatch after the other.
std::vector<Order> generateEvaluation(const Model &model);

/// One device: all forward, all backward in reverse, every update.
std::vector<Order> generateReplay(const Model &model);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_GENERATORS_H
