//===- Clock.h - The clocks of two hosts ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Half of the shortest of several round trips is what the estimate may be wrong
// by.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_JOB_CLOCK_H
#define PENSTOCK_RUNTIME_JOB_CLOCK_H

#include "runtime/job/Control.h"

namespace penstock::runtime {

/// How far the clock of rank 0 is ahead of that of this process, at a time.
struct ClockOffset {
  int64_t time = 0, offset = 0, error = 0; // nanoseconds
};

/// Asks rank 0. On rank 0 itself there is nothing to ask.
ClockOffset measureClock(const Job &job, Control &control);

/// Returns a time of this process by the clock of rank 0: between two
/// measurements the clocks drift apart evenly.
int64_t toRootTime(int64_t time, const ClockOffset &first,
                   const ClockOffset &last);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_JOB_CLOCK_H
