//===- Clock.cpp - The clocks of two hosts --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shortest trip was delayed the least, on both ways.
//===----------------------------------------------------------------------===//

#include "runtime/job/Clock.h"

using namespace penstock::runtime;

ClockOffset penstock::runtime::measureClock(const Job &job, Control &control) {
  ClockOffset best;
  if (job.rank == 0)
    return best;
  constexpr int kTrips = 16;
  for (int i = 0; i < kTrips; ++i) {
    auto trip = control.visitRoot();
    if (!trip)
      break;
    int64_t error = (trip->back - trip->left) / 2;
    int64_t middle = trip->left + error;
    if (i == 0 || error < best.error)
      best = {middle, trip->there - middle, error};
  }
  return best;
}

int64_t penstock::runtime::toRootTime(int64_t time, const ClockOffset &first,
                                      const ClockOffset &last) {
  if (last.time <= first.time)
    return time + first.offset;
  double share = double(time - first.time) / double(last.time - first.time);
  return time + first.offset +
         int64_t(share * double(last.offset - first.offset));
}
