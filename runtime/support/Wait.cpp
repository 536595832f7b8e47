//===- Wait.cpp - Spin briefly, then park ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built on the futex call itself: std::atomic::wait of the oldest library we
// build with has a spin loop of its own, which hurts when cores are few.
//===----------------------------------------------------------------------===//

#include "runtime/support/Wait.h"

#include <climits>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace penstock::runtime;

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// A yield to a runnable thread costs less than half of a sleep and a wake.
constexpr int kYields = 16;

void WaitWord::wakeAll() {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void WaitWord::park(uint32_t value, int64_t nanoseconds) {
  timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  parked.fetch_add(1, std::memory_order_seq_cst);
  if (word.load(std::memory_order_seq_cst) == value)
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value,
            nanoseconds > 0 ? &limit : nullptr, nullptr, 0);
  parked.fetch_sub(1, std::memory_order_seq_cst);
}

void WaitWord::wait(uint32_t target, WaitPolicy policy) {
  if (policy.spinNanoseconds > 0) {
    int64_t end = nanoseconds() + policy.spinNanoseconds;
    do {
      for (int i = 0; i < 32; ++i) {
        if (hasReached(target))
          return;
        __builtin_ia32_pause();
      }
    } while (nanoseconds() < end);
  } else {
    // The other side may be runnable and need only this core.
    for (int i = 0; i < kYields && !hasReached(target); ++i)
      sched_yield();
  }
  for (uint32_t value = load(); !hasReached(value, target); value = load())
    park(value);
}
