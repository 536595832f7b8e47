//===- Communicator.h - The processes of a run, as NCCL has them -*- C++ -*-==//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One communicator, whose calls never block: NCCL says whether they are done,
// and a deadline ends the wait. Calls put transfers on a stream; nobody knows
// of a process that died but the control connections, which end this one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_NCCL_COMMUNICATOR_H
#define PENSTOCK_RUNTIME_TRANSPORT_NCCL_COMMUNICATOR_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/transport/nccl/Nccl.h"

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

namespace penstock::runtime::cuda {

class Communicator {
public:
  explicit Communicator(const Nccl &nccl) : nccl(nccl) {}

  /// Creates the id that rank 0 tells all before they open it.
  Error invite(UniqueId &id) const;
  /// Meets all others within so many seconds. In the context of the GPU of this
  /// process, as all that follows.
  Error open(const UniqueId &id, int rank, int size, double seconds);
  /// Registers memory of ncclMemAlloc, of which transfers then need no copy,
  /// where the other process has registered its own. False where NCCL cannot.
  bool registerMemory(uint64_t memory, uint64_t bytes);
  /// Deregisters all of it.
  void deregisterMemory();
  /// Connects this process and each of `peers`, both ways, by a transfer of a
  /// word of `memory`, which has two for each. NCCL connects two processes when
  /// they first exchange something, host against host, and a host that waits
  /// there could issue nothing that others wait for.
  Error warmUp(const Driver &driver, std::span<const int> peers,
               uint64_t memory, Stream stream, double seconds);

  // What they put on a stream comes in this order on both sides. Those between
  // begin() and end() are one transfer, which begins when all its parts can.
  // Only one thread calls these.
  Error begin();
  Error end();
  Error send(uint64_t from, uint64_t bytes, int peer, Stream stream);
  Error receive(uint64_t to, uint64_t bytes, int peer, Stream stream);

  /// Says what went wrong since, as far as NCCL knows. Any thread.
  Error check();
  /// Ends what has ended on all sides, or gives up.
  void close();
  /// Stops what is under way, on a thread of the caller's that NCCL may keep
  /// for ever. Calls of other threads do not return after it.
  void abort();

private:
  Error settle(int status, const char *call, int64_t deadline);
  Error failed(int status, const char *call) const;

  const Nccl &nccl;
  NcclComm communicator = nullptr;
  std::vector<void *> handles; // of memory
  bool isGrouped = false;
  /// No two threads are in NCCL.
  std::timed_mutex calls;
  std::atomic<bool> isAborted{false};
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_TRANSPORT_NCCL_COMMUNICATOR_H
