//===- Channel.h - A rendezvous between two threads -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring of entries, one per outstanding message. Each side posts its address;
// whoever comes second has the receiver copy. No lock, no allocation, one
// atomic exchange per post. A source is a sender that looks at the ring by
// itself: whoever claims a posted receive first, the source thread or the
// waiting device, fills it. A source that only the device fills needs no
// exchange.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_THREADS_CHANNEL_H
#define PENSTOCK_RUNTIME_TRANSPORT_THREADS_CHANNEL_H

#include "penstock/abi.h"
#include "runtime/support/Wait.h"
#include "runtime/transport/DeviceMemory.h"

#include <memory>

namespace penstock::runtime {

/// The result of a post. All but Queued are internal errors of the compiled
/// program.
enum class PostResult { Queued, OutOfOrder, TooMany, Mismatch };

class Channel {
public:
  /// The posts of one side in this segment; touched by its device only.
  struct alignas(64) Side {
    int64_t base = 0;      // number of the first message
    int64_t posted = 0;    // messages posted
    int64_t completed = 0; // messages known to be done
  };

  Channel(const penstock_channel &description, uint32_t index);

  /// Makes the markers that order messages. The devices are open.
  void open();

  PostResult postReceive(int64_t n, Address slot);
  PostResult postSend(int64_t n, Address slot);

  bool isDone(int64_t i) const {
    return entry(i).state.hasReached(getState(i, Done));
  }
  void wait(int64_t i, WaitPolicy policy) {
    entry(i).state.wait(getState(i, Done), policy);
  }

  /// Sleeps until message i is done, but not longer.
  void nap(int64_t i, int64_t nanoseconds);

  /// For sources: takes posted receive i, if it is there and nobody else took
  /// it; finish() it after filling `slot`, which is behind order(i).free.
  bool claim(int64_t i, int64_t &n, Address &slot);
  /// For transports: takes posted receive i likewise, once `slot` is free,
  /// which may be later than the post.
  bool claimReceive(int64_t i, int64_t &n, Address &slot);
  /// For transports: takes posted send i, once the bytes are there; finish() it
  /// when they have left `slot`.
  bool claimSend(int64_t i, int64_t &n, Address &slot);
  /// Takes posted send i, whose bytes are there behind order(i).ready.
  bool takeSend(int64_t i, int64_t &n, Address &slot);
  void finish(int64_t i) {
    WaitWord &state = entry(i).state;
    isPrivate ? state.reset(getState(i, Done)) : state.set(getState(i, Done));
  }
  /// Returns the markers that order message i.
  const Handover &order(int64_t i) const {
    return handovers ? handovers[i & mask] : unordered;
  }
  /// Lets a device that knows message i to be done wait for what the message
  /// waits for.
  void follow(int64_t i, DeviceMemory &device) const {
    if (Marker *done = order(i).done.get())
      device.waitFor(*done);
  }
  /// Message i was claimed or is done.
  bool isTaken(int64_t i) const {
    return entry(i).state.hasReached(getState(i, Claimed));
  }

  /// Between segments, when no device runs.
  void reset();

  /// Messages that may be outstanding.
  uint32_t capacity() const { return mask + 1; }

  const penstock_channel &description;
  const uint32_t index;
  uint32_t input = 0; // of the data set, for a source
  /// The receiver's thread also fills it: nothing has to be atomic.
  bool isPrivate = false;
  /// The memory of sender and receiver, where these are devices of this
  /// process.
  DeviceMemory *from = nullptr, *to = nullptr;
  Side sender, receiver;

private:
  // The state of message i rises to done, which is empty for the message that
  // uses the entry next. Only one end posts where the other one claims.
  enum State : uint32_t { Empty, ReceivePosted, SendPosted, Claimed, Done };
  struct alignas(64) Entry {
    WaitWord state;
    int64_t receiveNumber, sendNumber;
    Address target, source;
  };

  Entry &entry(int64_t i) const { return entries[i & mask]; }
  uint32_t getState(int64_t i, State state) const {
    return Done * uint32_t(i >> shift) + state;
  }
  bool claim(int64_t i, State posted);
  static PostResult number(Side &side, int64_t n);

  std::unique_ptr<Entry[]> entries;
  /// Markers by entry; none where both devices are done with a call when it
  /// returns.
  std::unique_ptr<Handover[]> handovers;
  const Handover unordered = {};
  uint32_t mask, shift;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_THREADS_CHANNEL_H
