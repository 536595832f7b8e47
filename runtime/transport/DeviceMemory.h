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

namespace penstock::runtime {

/// A byte in the memory of a device. Only the device turns it into a pointer.
using Address = uint64_t;

class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;

  virtual void upload(Address at, const void *host, uint64_t bytes) = 0;
  virtual void download(void *host, Address at, uint64_t bytes) = 0;
  /// Takes bytes from another device: the hand-over of a message, on the thread
  /// of whichever of the two came second.
  virtual void copy(Address at, DeviceMemory &from, Address fromAt,
                    uint64_t bytes) = 0;
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
