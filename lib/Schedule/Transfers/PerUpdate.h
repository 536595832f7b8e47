//===- PerUpdate.h - Transfers and sums once per update ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of placeTransfers that are not about microbatches.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_TRANSFERS_PERUPDATE_H
#define PENSTOCK_LIB_SCHEDULE_TRANSFERS_PERUPDATE_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// The transfers of the tasks that run once per update, in orders over updates.
/// `rank` is the place of every task in the dataflow.
void placeUpdateTransfers(const Model &model, llvm::ArrayRef<int64_t> rank,
                          std::vector<Order> &orders);

/// The transfers of all tasks that stand in orders over updates outside of
/// their loops over microbatches, at the places that placeUpdateTransfers has.
void placeTransfersOutsideOfLoops(const Model &model,
                                  llvm::ArrayRef<int64_t> rank,
                                  std::vector<Order> &orders);

/// The sums over devices, before the tasks that need them.
void placeSums(const Model &model, std::vector<Order> &orders);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_TRANSFERS_PERUPDATE_H
