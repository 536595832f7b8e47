//===- Transport.cpp - Waiting for another process ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whoever waits may also be the one who has to move the message, so it sleeps
// in short steps.
//===----------------------------------------------------------------------===//

#include "runtime/transport/Transport.h"

#include <algorithm>
#include <sched.h>

using namespace penstock::runtime;

void penstock::runtime::waitFar(Transport &transport, Channel &channel,
                                int64_t i, WaitPolicy policy) {
  constexpr int64_t kShortestNap = 100000, kLongestNap = 1000000;
  int64_t end = nanoseconds() + policy.spinNanoseconds, nap = kShortestNap;
  int yields = policy.spinNanoseconds > 0 ? 0 : 16;
  while (!channel.isDone(i)) {
    if (transport.progress())
      continue;
    if (yields > 0) {
      --yields;
      sched_yield();
    } else if (nanoseconds() < end) {
      __builtin_ia32_pause();
    } else {
      channel.nap(i, nap);
      nap = std::min(2 * nap, kLongestNap);
    }
  }
}
