//===- Dataflow.h - Runs as early as their orders allow ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runs of one update without queues of transfers: each starts when the one
// before it on its device has ended and what it takes is there.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_DATAFLOW_H
#define PENSTOCK_LIB_SCHEDULE_DATAFLOW_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

struct Dataflow {
  /// The intervals of each device in the order of their runs.
  std::vector<std::vector<Interval>> runs;
  /// Why the orders cannot run to their ends, and a line per device with what
  /// it did and what it waits for; or nothing.
  std::string circle;
  std::vector<std::string> stuck;
};

/// `duration` and the lag of transfers between devices; runs of `updates`.
Dataflow flow(const Model &model, llvm::ArrayRef<Order> orders,
              llvm::function_ref<double(int task)> duration, double transfer,
              int64_t updates = 1);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_DATAFLOW_H
