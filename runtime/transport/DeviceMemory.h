//===- DeviceMemory.h - The memory of a device, from outside ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What transports, files and sums need of a device. Its bytes may be where the
// host cannot look, so they have addresses, not pointers, and whoever wants one
// moves it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_DEVICEMEMORY_H
#define PENSTOCK_RUNTIME_TRANSPORT_DEVICEMEMORY_H

#include <cstdint>
#include <memory>
#include <span>

namespace penstock::runtime {

/// A byte in the memory of a device. Only the device turns it into a pointer.
using Address = uint64_t;

/// A point in the work of a device whose calls return before they are done. It
/// may be set again once everyone who has to wait for it has said so.
class Marker {
public:
  virtual ~Marker() = default;

  /// Returns when all work before it is done; at once if it was never set.
  virtual void synchronize() = 0;
  /// Returns true if all work before it is done.
  virtual bool isReached() = 0;
  /// Returns the event that devices of its own kind wait for without the host;
  /// null if it is none of `kind`.
  virtual void *getNative(const void *kind) { return nullptr; }
};

/// Markers that order a message. Null where calls are done when they return.
struct Handover {
  /// Marker of the sender: the message is there.
  std::unique_ptr<Marker> ready;
  /// Marker of the receiver: its slot is free.
  std::unique_ptr<Marker> free;
  /// Marker of the receiver: the message has arrived; of the sender, where the
  /// receiver is in another process: the message has left.
  std::unique_ptr<Marker> done;
  /// True for a channel with a queue of its own: no message of another channel
  /// waits for it.
  bool isApart = false;
};

class DeviceMemory;

/// Elements at one place in the values of a sum, in the order of its summands.
struct SumPart {
  struct Value {
    DeviceMemory *memory;
    Address at;
    uint32_t reset; // PENSTOCK_SUM_*
  };
  std::span<const Value> values;
  bool isDouble = false;
  uint64_t bytes = 0;
};

class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;

  // Both are done when they return, and know nothing of work that the device
  // has issued before: whoever needs that waits for a marker.
  virtual void upload(Address at, const void *host, uint64_t bytes) = 0;
  virtual void download(void *host, Address at, uint64_t bytes) = 0;
  /// Takes bytes from another device: the hand-over of a message, on the thread
  /// of whichever of the two came second. It comes after `ready` and `free`,
  /// and sets `done`.
  virtual void copy(Address at, DeviceMemory &from, Address fromAt,
                    uint64_t bytes, const Handover &order) = 0;
  /// Takes a message of a source, of which `host` is free when it returns.
  virtual void receive(Address at, const void *host, uint64_t bytes,
                       const Handover &order) {
    upload(at, host, bytes);
  }

  /// Returns a marker of this device; null where its calls are done when they
  /// return. The device is open.
  virtual std::unique_ptr<Marker> createMarker() { return nullptr; }
  /// Sets one of its markers behind all that it has issued.
  virtual void mark(Marker &marker) {}
  /// Makes all that it issues from now on wait for a marker of any device.
  virtual void waitFor(Marker &marker) { marker.synchronize(); }

  // Sums of values that no host need see.

  /// Makes ready to add up with values of another device, or this one; false
  /// where it does not reach them.
  virtual bool reaches(DeviceMemory &other) { return false; }
  /// Adds up values that it reaches, behind `ready` markers of all devices that
  /// have some, and gives the sum to all that receive it or add to it. Sets
  /// `done`, a marker of its own.
  virtual void sum(const SumPart &part, std::span<Marker *const> ready,
                   Marker &done) {}
  /// Sets bytes to zero, behind all that it has issued.
  virtual void clear(Address at, uint64_t bytes) {}

  /// Returns what devices of its own kind know it as; null if it is none of
  /// `kind`.
  virtual void *getNative(const void *kind) { return nullptr; }

  /// Where the host may read and write the byte itself, or null.
  virtual void *hostAddress(Address at) { return nullptr; }

  /// The address of the first byte, once there is memory.
  Address getOrigin() const { return origin; }
  bool isHostAddressable() { return hostAddress(origin) != nullptr; }

protected:
  Address origin = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_DEVICEMEMORY_H
