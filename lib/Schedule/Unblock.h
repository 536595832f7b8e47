//===- Unblock.h - Orders that wait for each other --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A generator knows devices of equal width. Orders of stages of different width
// are put together from several of its schedules, and may wait in a circle:
// behind a narrow stage, each replica of a wide one wants a microbatch more.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_UNBLOCK_H
#define PENSTOCK_LIB_SCHEDULE_UNBLOCK_H

#include "penstock/Schedule/Order.h"

#include <string>

namespace penstock::schedule {

/// Executes orders of runs that flush at every update; where all devices
/// wait, the run that a forward waits for goes ahead of others on its device.
/// Every task still runs for its microbatches in order. Orders that do not wait
/// in a circle stay as they are.
void unblock(const Model &model, std::vector<Order> &orders);

/// A schedule keeps to its memory among stages of one width; what wider ones
/// want of a narrow one may be more. Says which device has more microbatches of
/// a stage between forward and backward than `memoryLimit` (0: any number), or
/// is empty.
std::string refuseInFlight(const Model &model, llvm::ArrayRef<Order> orders,
                           double memoryLimit);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_UNBLOCK_H
