//===- AllReduce.h - Sums over the devices of a process ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every device says where its values are. When all have, each adds up its share
// of the elements, in the order of the summands, and stores the sums in all of
// them. So the sum does not depend on who was first, nor on how many devices
// there are. Devices that reach each other's memory add up there. Where neither
// they do nor the host can address a value, its elements come and go in pieces.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_THREADS_ALLREDUCE_H
#define PENSTOCK_RUNTIME_TRANSPORT_THREADS_ALLREDUCE_H

#include "penstock/abi.h"
#include "runtime/support/Wait.h"
#include "runtime/transport/DeviceMemory.h"

#include <vector>

namespace penstock::runtime {

class AllReduce {
public:
  /// The work that one device has queued and that it knows to be done.
  struct Side {
    uint32_t device;
    uint32_t cells; // values of its summands
    DeviceMemory *memory = nullptr;
    /// Its values are there; null where calls are done when they return.
    std::shared_ptr<Marker> ready = nullptr;
    /// The sum is there, where a transport does it behind the host; the share
    /// of this device is, where devices do.
    std::shared_ptr<Marker> done = nullptr;
    int64_t base = 0, posted = 0, completed = 0;
  };

  /// Those devices for which `isLocal` is not set are in other processes.
  AllReduce(const penstock_group &description,
            const std::vector<bool> &isLocal);

  /// Returns true if the runtime can add the elements of all values.
  static bool canSum(const penstock_group &description);

  /// `devices` are open, by number; null for those of other processes.
  void open(const std::vector<DeviceMemory *> &devices);
  /// Not concurrent with anything.
  void reset();
  /// The side of a device that takes part, or null.
  Side *find(uint32_t device);
  /// Sum t has this device's values at `values`. False when it is out of turn.
  bool post(Side &side, int64_t t, const Address *values);
  /// Does this device's share of its oldest sum that is not done, and waits for
  /// the shares of the others.
  void complete(Side &side, WaitPolicy policy);

  // Where devices of other processes take part, too, a transport adds up.
  bool isFar() const { return far; }
  /// The devices of this process have posted so often, together.
  bool hasPosted(uint32_t count) const { return posted.hasReached(count); }
  /// Where the host finds the value of a summand of this process.
  void *getHost(uint32_t summand, uint32_t type) const {
    return cells[uint64_t(summand) * description.type_count + type].host;
  }
  /// Where that value is on its device.
  Address getAddress(uint32_t summand, uint32_t type) const {
    return cells[uint64_t(summand) * description.type_count + type].at;
  }
  /// Nothing is left to be done before the values of this process are there.
  bool areReady() const;
  // For a transport that adds up on the host, values that it cannot address.
  void download(void *host, uint32_t summand, uint32_t type) const;
  void upload(uint32_t summand, uint32_t type, const void *host) const;
  /// All can be found by the host.
  bool areHostAddressable() const { return isHostAddressable; }
  /// One more sum is there.
  void finish() { done.bump(/*wake=*/true); }
  /// The oldest sum of this side that was not known to be done is.
  bool isDone(const Side &side) const {
    return done.hasReached(uint32_t(side.completed + 1));
  }
  /// Sleeps until it is, but not longer.
  void nap(const Side &side, int64_t nanoseconds);

  const penstock_group &description;

private:
  uint64_t sizeOf(uint32_t type) const;
  /// The first element of a side's share of a value.
  uint64_t getBegin(uint32_t type, uint64_t index) const;
  void sumShare(uint64_t index);
  void sumOnDevice(uint64_t index);
  void takeSums(Side &side);

  struct Workspace;
  template <typename T>
  void add(Workspace &workspace, uint64_t begin, uint64_t end) const;
  template <typename T>
  void sumValues(uint64_t index, uint32_t type, uint64_t begin, uint64_t end);

  /// Where a value is.
  struct Cell {
    DeviceMemory *memory;
    Address at;
    void *host; // null where the host cannot address it
  };
  /// The buffers that one side adds with: an address by summand and, where the
  /// host cannot address all values, room for a piece of each.
  struct Workspace {
    std::vector<void *> values;
    std::vector<const void *> added;
    std::vector<char> pieces;
  };

  std::vector<Side> sides;
  std::vector<Workspace> workspaces; // by side
  std::vector<Cell> cells;           // by summand and type
  bool isHostAddressable = true;     // all of them
  bool isOnDevices = false;          // all reach each other
  bool far = false;
  /// The numbers of devices that have posted, and have done their share, over
  /// all sums. For sums over processes: the devices of this one, and the sums.
  WaitWord posted, done;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_THREADS_ALLREDUCE_H
