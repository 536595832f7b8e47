//===- Transport.h - What moves messages between processes ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels between devices of this process need nothing but themselves. Where
// one end of a channel is far, the transport plays that end: it claims what the
// device posted, moves it, and says that it is done. Devices see no difference.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_TRANSPORT_H
#define PENSTOCK_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/observe/Position.h"
#include "runtime/transport/Endpoint.h"
#include "runtime/transport/threads/AllReduce.h"

#include <functional>
#include <string_view>

namespace penstock::runtime {

/// One process's counts of a far channel, or of the sums of a far group, in
/// this segment.
struct TransferCount {
  /// A channel, or from the number of channels on a group.
  uint32_t id;
  /// True if message `done` is the next that this process transfers, and waits
  /// for nothing but the others. Of transports that issue all in one order.
  uint32_t isNext;
  int64_t begun, done;
};

/// The transport of one instance. What is called while devices run is called
/// by all of their threads.
class Transport {
public:
  virtual ~Transport() = default;

  /// Makes ready for the endpoints and sums that are far. All stay where they
  /// are, and there is no traffic yet. `positions` are for messages;
  /// `isOversubscribed`: the devices of this host have fewer cores than
  /// threads.
  virtual Error open(Endpoints &endpoints, const std::vector<AllReduce *> &sums,
                     const Positions &positions, bool isOversubscribed) = 0;
  /// Allocates memory of the device of this process that messages can use
  /// without a copy; 0 where there is none. On the thread of the device.
  virtual Address allocate(uint64_t bytes) { return 0; }
  /// Frees what allocate() returned, also after leave(); false for other
  /// memory.
  virtual bool release(Address memory) { return false; }
  /// Returns true if connect() is to be called.
  virtual bool connects() const { return false; }
  /// Creates, in rank 0, the invitation that all need to connect.
  virtual Error invite(std::string &invitation) { return {}; }
  /// Reaches the other processes, in all of which the devices are open.
  /// `device` is the one of this process. `haveAll` returns true in all of them
  /// if each passes true.
  virtual Error connect(DeviceMemory &device, std::string_view invitation,
                        const std::function<bool(bool)> &haveAll) {
    return {};
  }
  /// Begins a segment: channels are empty, and no device runs yet.
  virtual void begin() = 0;
  /// A device has posted on a channel that is far. The message may only be
  /// there, or its slot free, later than that.
  virtual void posted(Channel &channel) = 0;
  /// A device has posted in a sum that is far.
  virtual void posted(AllReduce &sum) = 0;
  /// Called by whoever waits for something far; true if something moved.
  virtual bool progress() = 0;
  /// Called from time to time by the thread that observes, while devices run.
  virtual void poll() {}
  /// Ends a segment: the devices are done, and when it returns nothing of
  /// theirs is under way.
  virtual Error end() = 0;
  /// Ends for good. Nothing is called after it but release().
  virtual void leave() noexcept = 0;
  /// Stops what is under way: the process ends. On a thread that may be lost
  /// with it.
  virtual void abort() noexcept {}
  /// Returns what is under way, as far as this process knows. Any thread.
  virtual std::vector<TransferCount> count() const { return {}; }
  /// Returns the bytes that it has for itself.
  virtual uint64_t getBytes() const { return 0; }
};

/// Returns the transport of devices that are all in this process.
std::unique_ptr<Transport> createThreads();

/// Returns once message i of a far channel is done.
void waitFar(Transport &transport, Channel &channel, int64_t i,
             WaitPolicy policy);
/// Returns once the oldest sum of a side of a far group is done, which counts
/// as completed then.
void waitFar(Transport &transport, AllReduce &sum, AllReduce::Side &side,
             WaitPolicy policy);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_TRANSPORT_H
