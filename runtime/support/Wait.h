//===- Wait.h - Spin briefly, then park -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A 32-bit word that rises (modulo 2^32) and that threads wait for. A waiter
// spins for a bounded time, then sleeps in the kernel; whoever raises the word
// enters the kernel only when someone sleeps there.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_WAIT_H
#define PENSTOCK_RUNTIME_SUPPORT_WAIT_H

#include <atomic>
#include <cstdint>
#include <ctime>

namespace penstock::runtime {

inline int64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

/// How long to spin before parking. Zero where threads outnumber cores: the
/// thread waited for may need this core.
struct WaitPolicy {
  int64_t spinNanoseconds = 0;
};

class WaitWord {
public:
  uint32_t load() const { return word.load(std::memory_order_acquire); }

  /// Not concurrent with anything.
  void reset(uint32_t value) { word.store(value, std::memory_order_relaxed); }

  /// True when the word was `expected`; else `expected` becomes its value.
  bool exchange(uint32_t &expected, uint32_t value) {
    return word.compare_exchange_strong(
        expected, value, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  /// Sets the word and wakes its waiters.
  void set(uint32_t value) {
    word.store(value, std::memory_order_seq_cst);
    if (parked.load(std::memory_order_seq_cst) != 0)
      wakeAll();
  }

  /// Adds one; wakes waiters only when `wake`.
  void bump(bool wake) {
    word.fetch_add(1, std::memory_order_seq_cst);
    if (wake && parked.load(std::memory_order_seq_cst) != 0)
      wakeAll();
  }

  static bool hasReached(uint32_t value, uint32_t target) {
    return int32_t(value - target) >= 0;
  }
  bool hasReached(uint32_t target) const { return hasReached(load(), target); }

  /// Returns once the word has reached `target`.
  void wait(uint32_t target, WaitPolicy policy);

  /// Parks until the word differs from `value`, or the time is up (when it is
  /// positive).
  void park(uint32_t value, int64_t nanoseconds = 0);

private:
  void wakeAll();

  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> parked{0};
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_WAIT_H
