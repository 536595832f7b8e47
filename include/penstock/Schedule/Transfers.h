//===- Transfers.h - Where sends and receives stand -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds the transfers to orders that have only runs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_TRANSFERS_H
#define PENSTOCK_SCHEDULE_TRANSFERS_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// Places them, or says why it cannot. `taskTimes`, by task, say in which
/// sequence they come, but for orders whose loops can keep their period; a
/// whole backward takes two units without them, all else one.
std::optional<std::string>
placeTransfers(const Model &model, std::vector<Order> &orders,
               llvm::ArrayRef<double> taskTimes = {});

/// Adds the messages of updates and the sums, once per update, to orders that
/// have the transfers of their microbatches. Returns true if there were any.
bool completeTransfers(const Model &model, std::vector<Order> &orders);

/// Adds those of channels with queues of their own, which push tasks put into:
/// sent at once, received as soon as there is room for a wave more than is
/// folded.
void placeWaves(const Model &model, std::vector<Order> &orders);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_TRANSFERS_H
