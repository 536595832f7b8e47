//===- Parts.h - The parts of placeTransfers --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `rank` is the place of every task in the dataflow. What returns a text says
// why it cannot.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_TRANSFERS_PARTS_H
#define PENSTOCK_LIB_SCHEDULE_TRANSFERS_PARTS_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// Returns true if some message goes from a stage to one of another width.
bool joinsWidths(const Model &model);

/// For orders of one loop over microbatches.
std::optional<std::string> placeTransfersByRound(const Model &model,
                                                 llvm::ArrayRef<int64_t> rank,
                                                 std::vector<Order> &orders);

/// For orders over updates that flush, of any form. `taskTimes` are as
/// placeTransfers has them. Lines behind the first draw where the devices are
/// stuck.
std::optional<std::string>
placeTransfersByTime(const Model &model, llvm::ArrayRef<int64_t> rank,
                     std::vector<Order> &orders,
                     llvm::ArrayRef<double> taskTimes = {});

/// The transfers of the tasks that run once per update, in orders over updates.
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

#endif // PENSTOCK_LIB_SCHEDULE_TRANSFERS_PARTS_H
