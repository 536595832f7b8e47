//===- SinkRing.h - Scalars on their way to the log -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device drops a loss or a count here and goes on; the observing thread picks
// it up, formats and writes. One producer, one consumer, no lock.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_SINKRING_H
#define PENSTOCK_RUNTIME_OBSERVE_SINKRING_H

#include "runtime/support/Wait.h"

#include <functional>
#include <memory>
#include <sched.h>

namespace penstock::runtime {

class SinkRing {
public:
  struct Item {
    int64_t n;
    int64_t time; // nanoseconds() of the last value of an update, else 0
    uint64_t bits;
  };

  /// Called with the number of each float that is not finite, by whoever pushes
  /// it; none where values are integers.
  std::function<void(int64_t n)> onNotFinite;

  /// Between segments: an update has so many values from now on.
  void begin(uint64_t valuesOfUpdate) {
    period = valuesOfUpdate;
    pushed = 0;
  }

  void push(int64_t n, uint64_t bits) {
    uint64_t at = head.load(std::memory_order_relaxed);
    // The consumer looks often enough, but where values suddenly come faster;
    // then the producer waits.
    while (at - tail.load(std::memory_order_acquire) == kSize)
      sched_yield();
    bool isLast = ++pushed == period;
    if (isLast)
      pushed = 0;
    items[at % kSize] = {n, isLast ? nanoseconds() : 0, bits};
    head.store(at + 1, std::memory_order_release);
    constexpr uint32_t kNotFinite = 0x7f800000; // the exponent of f32
    if ((bits & kNotFinite) == kNotFinite && onNotFinite) [[unlikely]]
      onNotFinite(n);
  }

  /// Returns true if a push would wait.
  bool isFull() const {
    return head.load(std::memory_order_relaxed) -
               tail.load(std::memory_order_acquire) ==
           kSize;
  }

  /// Returns true if values come so fast that the ring could be full soon.
  bool isFilling() const {
    return head.load(std::memory_order_relaxed) -
               tail.load(std::memory_order_relaxed) >
           kSize / 8;
  }

  bool pop(Item &item) {
    uint64_t at = tail.load(std::memory_order_relaxed);
    if (at == head.load(std::memory_order_acquire))
      return false;
    item = items[at % kSize];
    tail.store(at + 1, std::memory_order_release);
    return true;
  }

private:
  static constexpr uint64_t kSize = 8192;

  uint64_t period = 1, pushed = 0;
  std::unique_ptr<Item[]> items = std::make_unique<Item[]>(kSize);
  alignas(64) std::atomic<uint64_t> head{0};
  alignas(64) std::atomic<uint64_t> tail{0};
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_SINKRING_H
