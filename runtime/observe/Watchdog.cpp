//===- Watchdog.cpp - Does anything move? ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads relaxed counters of the devices; never makes one wait.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Watchdog.h"

#include "runtime/observe/Failure.h"

using namespace penstock::runtime;

void Watchdog::check() {
  if (limit == 0)
    return;
  uint64_t progress = 0;
  for (auto [device, position] : positions.devices)
    progress += position->progress.load(std::memory_order_relaxed);
  int64_t now = nanoseconds();
  if (progress != seen) {
    seen = progress;
    since = now;
  } else if (now - since > limit) {
    fail(positions, PENSTOCK_WATCHDOG,
         "watchdog: no device made progress for %g s", double(limit) * 1e-9);
  }
}
