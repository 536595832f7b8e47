//===- Watchdog.h - Does anything move? -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread that started the devices looks at their positions from time to
// time.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_WATCHDOG_H
#define PENSTOCK_RUNTIME_OBSERVE_WATCHDOG_H

#include "runtime/observe/Position.h"
#include "runtime/support/Wait.h"

namespace penstock::runtime {

/// Ends the process when no device makes progress for some seconds.
class Watchdog {
public:
  /// Never ends it where `seconds` is 0.
  Watchdog(const Positions &positions, double seconds)
      : positions(positions), limit(int64_t(seconds * 1e9)),
        since(nanoseconds()) {}
  void check();

private:
  const Positions &positions;
  int64_t limit; // 0: off
  int64_t since;
  uint64_t seen = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_WATCHDOG_H
