//===- ByRound.h - Between stages of any width ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What placeTransfers does with loops over microbatches whose stages have
// different numbers of replicas.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_TRANSFERS_BYROUND_H
#define PENSTOCK_LIB_SCHEDULE_TRANSFERS_BYROUND_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// Returns true if some message goes from a stage to one of another width.
bool joinsWidths(const Model &model);

/// For orders of one loop over microbatches. `rank` is the place of every task
/// in the dataflow. Says why it cannot.
std::optional<std::string> placeTransfersByRound(const Model &model,
                                                 llvm::ArrayRef<int64_t> rank,
                                                 std::vector<Order> &orders);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_TRANSFERS_BYROUND_H
