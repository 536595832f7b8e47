//===- Bound.cpp - How many updates a segment has -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device that waits for a message need not come here for the agreement: what
// it has begun covers the iteration that it is in.
//===----------------------------------------------------------------------===//

#include "runtime/device/Bound.h"

#include <algorithm>

using namespace penstock::runtime;

bool Bound::haveAllAsked(std::span<const Begun *const> devices) {
  return std::all_of(devices.begin(), devices.end(),
                     [](const Begun *begun) { return begun->load() > 0; });
}

int64_t Bound::findMost(std::span<const Begun *const> devices) {
  int64_t most = 0;
  for (const Begun *begun : devices)
    most = std::max(most, begun->load(std::memory_order_seq_cst));
  return most;
}

int64_t Bound::hold(std::span<const Begun *const> devices) {
  state.store(Shrinking, std::memory_order_seq_cst);
  return findMost(devices);
}

void Bound::release(int64_t most) {
  // While entries of the last updates are still to come, devices count on.
  length.store(std::min(most, updates()), std::memory_order_relaxed);
  agreed.set(1);
}

void Bound::shrink(std::span<const Begun *const> devices) {
  // A device and the thread that observes may both want it.
  if (state.load(std::memory_order_relaxed) != Shrinking &&
      haveAllAsked(devices) &&
      state.exchange(Shrinking, std::memory_order_seq_cst) != Shrinking)
    release(findMost(devices));
}

void Bound::pause(int64_t nanoseconds) {
  pausedUntil.store(penstock::runtime::nanoseconds() + nanoseconds);
  uint32_t running = Running;
  state.compare_exchange_strong(running, Paused);
}

void Bound::waitForLength() {
  while (state.load() == Paused) {
    int64_t left = pausedUntil.load() - nanoseconds();
    uint32_t paused = Paused;
    if (left > 0)
      agreed.park(0, left);
    else
      state.compare_exchange_strong(paused, Running);
  }
  if (state.load() == Shrinking)
    agreed.wait(1, WaitPolicy());
}
