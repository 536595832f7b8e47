//===- ByTime.h - Transfers of orders of any form ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What placeTransfers falls back to.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_TRANSFERS_BYTIME_H
#define PENSTOCK_LIB_SCHEDULE_TRANSFERS_BYTIME_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// For orders over updates that flush. `rank` is the place of every task in the
/// dataflow, `taskTimes` as placeTransfers has them. The first line of what is
/// returned says why it cannot; more lines draw where the devices are stuck.
std::optional<std::string>
placeTransfersByTime(const Model &model, llvm::ArrayRef<int64_t> rank,
                     std::vector<Order> &orders,
                     llvm::ArrayRef<double> taskTimes = {});

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_TRANSFERS_BYTIME_H
