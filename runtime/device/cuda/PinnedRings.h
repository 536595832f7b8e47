//===- PinnedRings.h - Memory of the host that a GPU copies -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy to or from a GPU goes on when its call has returned, so the host's end
// of it is in memory of its own: samples and messages of CPUs before they are
// copied, losses after.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_PINNEDRINGS_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_PINNEDRINGS_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/observe/SinkRing.h"
#include "runtime/transport/DeviceMemory.h"

#include <map>
#include <mutex>
#include <vector>

namespace penstock::runtime::cuda {

/// Copies messages of sources and of CPUs to the GPU. Any thread may send.
class InputRing {
public:
  /// Adds room for `count` messages of this size.
  int add(const Driver &driver, uint64_t bytes, uint32_t count);
  /// Copies a message; `host` is free when it returns. Behind `free`, and sets
  /// `done`.
  int send(const Driver &driver, Address at, const void *host, uint64_t bytes,
           Event free, Event done, Stream stream);
  void clear(const Driver &driver);

private:
  struct Slot {
    void *memory = nullptr;
    Event copied = nullptr;
  };
  struct Ring {
    std::vector<Slot> slots;
    size_t next = 0;
  };
  std::mutex mutex;
  std::map<uint64_t, Ring> rings; // by size
};

/// Copies between the GPU and memory of the host that is not pinned. The calls
/// return when the bytes are there. Any thread may copy.
class HostCopies {
public:
  int open(const Driver &driver);
  /// Behind all that is on the stream.
  int upload(const Driver &driver, Address at, const void *host, uint64_t bytes,
             Stream stream);
  int download(const Driver &driver, void *host, Address at, uint64_t bytes,
               Stream stream);
  void clear(const Driver &driver);

private:
  /// While the GPU copies a piece, the host copies the one before or after it.
  static constexpr uint64_t kPieceBytes = 1 << 20;
  struct Piece {
    char *memory = nullptr;
    Event copied = nullptr;
  };
  std::mutex mutex;
  Piece pieces[2];
};

/// Copies values of sinks to the host.
class OutputRing {
public:
  int open(const Driver &driver);
  /// Copies a value behind all that is on the stream. Where the ring is full,
  /// it waits for the oldest value.
  int send(const Driver &driver, SinkRing &sink, int64_t n, Address at,
           uint64_t bytes, Stream stream);
  /// Waits for all values and delivers them.
  int drain(const Driver &driver);
  /// Delivers those that have arrived, unless somebody else does.
  int poll(const Driver &driver);
  void clear(const Driver &driver);

private:
  int deliverArrived(const Driver &driver, uint64_t until);

  static constexpr uint64_t kSize = 256;
  struct Slot {
    Event arrived = nullptr;
    SinkRing *sink = nullptr;
    int64_t n = 0;
    uint64_t bytes = 0;
  };
  std::mutex mutex;
  uint64_t *values = nullptr;
  Slot slots[kSize];
  uint64_t first = 0, end = 0;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_PINNEDRINGS_H
