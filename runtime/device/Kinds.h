//===- Kinds.h - The kinds of devices that are linked -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each kind is a library that registers itself by one constant. An executable
// links the kinds that its program uses, by the names of these constants.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_KINDS_H
#define PENSTOCK_RUNTIME_DEVICE_KINDS_H

#include "runtime/device/Device.h"
#include "runtime/job/Job.h"

namespace penstock::runtime {

/// How devices of a kind exchange messages with those of other processes by
/// themselves. Each process has one device then.
struct PeerTransport {
  const char *name;
  /// Names the places that devices of this process take in turn: those of
  /// `chosen`, or all. No two processes of a host may have the same.
  Error (*listPlaces)(std::span<const int> chosen,
                      std::vector<std::string> &names);
  /// Loads what it needs, and says which one that is: "NCCL 2.28.9".
  Error (*load)(std::string &version);
  /// Creates the transport from the loaded library. Connecting may take so many
  /// seconds.
  std::unique_ptr<Transport> (*create)(const Job &job, double seconds);
};

/// A kind of device. Lives as long as the process.
class DeviceKind {
public:
  using Check = Error (*)(const penstock_device_descriptor &device);
  using Create = std::unique_ptr<penstock_device> (*)(Context &context,
                                                      uint32_t index);

  using Describe = std::string (*)();

  /// Registers the kind.
  DeviceKind(const char *name, Check check, Create create,
             bool isInHostMemory = true, Describe describe = nullptr,
             const PeerTransport *peerTransport = nullptr);

  const char *const name;
  /// Fails where this machine cannot run the code of such a device.
  const Check check;
  const Create create;
  /// Arenas are memory of the host.
  const bool isInHostMemory;
  /// Says which library computes; null where bits depend on none.
  const Describe describe;
  /// Null where there is none.
  const PeerTransport *const peerTransport;

private:
  friend const DeviceKind *findDeviceKind(const char *name);
  const DeviceKind *next;
};

/// Returns the kind of that name, or null where it is not linked.
const DeviceKind *findDeviceKind(const char *name);

/// Fails where a kind that the program uses is not linked, or this machine
/// cannot run its code.
Error checkDevices(const penstock_program &program);

/// Returns how many of the first `limit` devices of a program are of that kind.
uint32_t countDevices(const penstock_program &program, const char *kind,
                      uint32_t limit);

/// Makes a device of a program for which checkDevices() succeeded.
std::unique_ptr<penstock_device> createDevice(Context &context, uint32_t index);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_KINDS_H
