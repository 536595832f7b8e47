//===- Bound.h - How many updates a segment has -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A running segment can become shorter. Each device says how much it has begun,
// and all go on to the most that any of them has.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_BOUND_H
#define PENSTOCK_RUNTIME_DEVICE_BOUND_H

#include "runtime/support/Wait.h"

#include <span>

namespace penstock::runtime {

/// The number of updates of the shortest segment that has all that a device has
/// begun. Zero before it asks.
using Begun = std::atomic<int64_t>;

class Bound {
public:
  /// Before a segment; no device runs.
  void begin(int64_t updates) {
    length.store(updates, std::memory_order_relaxed);
    state.store(Running, std::memory_order_relaxed);
    agreed.reset(0);
  }

  /// penstock_bound(), on the thread of a device.
  int64_t get(Begun &begun, int64_t least) {
    // Either this device sees that the segment becomes shorter, or shrink()
    // sees what it begins.
    begun.store(least, std::memory_order_seq_cst);
    if (state.load(std::memory_order_seq_cst) != Running) [[unlikely]]
      waitForLength();
    return length.load(std::memory_order_relaxed);
  }

  /// Makes the segment as short as it can become, on any thread. Does nothing
  /// until all devices have asked: there are device functions that never do.
  void shrink(std::span<const Begun *const> devices);

  // The same in steps, where other processes have devices, too: all of all
  // processes have asked, each says how much its own have begun, which go no
  // further then, and all go on to the most of that.
  static bool haveAllAsked(std::span<const Begun *const> devices);
  int64_t hold(std::span<const Begun *const> devices);
  void release(int64_t most);
  /// On any thread: lets devices that ask wait for these steps, but not longer
  /// than that. The segment is as long as before.
  void pause(int64_t nanoseconds);

  /// Returns the number of updates of the last segment.
  int64_t updates() const { return length.load(std::memory_order_relaxed); }

private:
  enum State : uint32_t { Running, Paused, Shrinking };

  void waitForLength();
  static int64_t findMost(std::span<const Begun *const> devices);

  std::atomic<int64_t> length{0}, pausedUntil{0};
  std::atomic<uint32_t> state{Running};
  WaitWord agreed;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_BOUND_H
