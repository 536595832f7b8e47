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
#include <utility>

using namespace penstock::runtime;

template <typename IsDone, typename Nap>
static void wait(Transport &transport, WaitPolicy policy, IsDone isDone,
                 Nap sleep) {
  // A device that has its core for itself loses nothing by looking; one that
  // shares it lets others run, and sleeps for a part of what it has waited.
  constexpr int64_t kShortestNap = 50000, kLongestNap = 1000000;
  constexpr int64_t kSpins = 40; // of the time that a wait of threads spins
  const int64_t spin = kSpins * policy.spinNanoseconds;
  int64_t begin = nanoseconds();
  int yields = spin > 0 ? 0 : 16;
  bool hasMoved = false;
  while (!isDone()) {
    if (transport.progress()) {
      hasMoved = true;
      continue;
    }
    int64_t now = nanoseconds();
    // A sum goes on piece by piece: what counts is how long nothing has moved.
    if (std::exchange(hasMoved, false))
      begin = now;
    int64_t waited = now - begin;
    if (yields > 0) {
      --yields;
      sched_yield();
    } else if (waited < spin) {
      __builtin_ia32_pause();
    } else {
      sleep(std::clamp(waited / 32, kShortestNap, kLongestNap));
    }
  }
}

void penstock::runtime::waitFar(Transport &transport, Channel &channel,
                                int64_t i, WaitPolicy policy) {
  wait(
      transport, policy, [&] { return channel.isDone(i); },
      [&](int64_t nanoseconds) { channel.nap(i, nanoseconds); });
}

void penstock::runtime::waitFar(Transport &transport, AllReduce &sum,
                                AllReduce::Side &side, WaitPolicy policy) {
  wait(
      transport, policy, [&] { return sum.isDone(side); },
      [&](int64_t nanoseconds) { sum.nap(side, nanoseconds); });
  ++side.completed;
}
