//===- Device.h - Where a part of a program runs ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread, an arena and a queue of transfers. Kinds of devices derive from it;
// compiled code reaches them through the entry points in Calls.cpp, which exist
// once, and nobody else touches the bytes of an arena. Device functions run on
// the host on any device. What they call may go on when it has returned; then
// markers order what devices do for each other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_DEVICE_H
#define PENSTOCK_RUNTIME_DEVICE_DEVICE_H

#include "runtime/device/Context.h"
#include "runtime/observe/FlightRecord.h"
#include "runtime/observe/Trace.h"

#include <functional>
#include <span>

namespace penstock::runtime {

/// A transfer that has been issued and may not be done: a message of a channel,
/// or a sum.
struct Transfer {
  Endpoint *endpoint = nullptr;
  Channel::Side *side = nullptr;
  int64_t message = 0;
  AllReduce *sum = nullptr;
};

/// Measurements of a device since it was opened.
struct Statistics {
  uint64_t arenaBytes;
  int64_t waitedNanoseconds;
  /// Counts of a device that runs behind the host: kernels, library calls and
  /// graphs that the host has started, and graphs that it has recorded.
  uint64_t launches = 0, graphs = 0;
  /// Products with an epilogue, and how many of them the library computes
  /// whole.
  uint64_t epilogues = 0, appliedEpilogues = 0;
};

} // namespace penstock::runtime

struct alignas(64) penstock_device : penstock::runtime::DeviceMemory {
  using Address = penstock::runtime::Address;
  using Error = penstock::runtime::Error;

  penstock_device(penstock::runtime::Context &context, uint32_t index)
      : context(context), index(index) {}

  /// Starts a job on the device's thread, which must be idle.
  virtual void start(std::function<void()> job) = 0;
  /// Returns true when the thread is idle and all that it issued is done; gives
  /// up after `milliseconds` unless negative.
  virtual bool finish(int milliseconds) = 0;

  /// Allocates the arena, all zero, and prepares the library calls. On the
  /// device's thread, and so is the next one.
  virtual Error open() = 0;
  /// Destroys what open() prepared. Nothing is called after it.
  virtual void close() = 0;

  // What compiled code calls; the operands are pointers as it has them.
  virtual void gemm(uint32_t id, const void *a, const void *b, void *c) = 0;
  /// Returns true if the epilogue is still to be applied.
  virtual bool gemmWithEpilogue(uint32_t id, const void *a, const void *b,
                                void *c, const void *) {
    gemm(id, a, b, c);
    return true;
  }
  virtual void conv(uint32_t id, const void *input, const void *weights,
                    const void *output) = 0;
  virtual void launch(uint32_t kernel, const uint64_t *parameters) = 0;
  /// Where a constant of the program is, as compiled code has addresses.
  virtual void *findConstant(uint32_t constant) = 0;
  virtual void parallel(void (*body)(void *closure, int64_t index),
                        void *closure, int64_t count) = 0;
  /// Where the scalars of an action are. Devices that record nothing have none.
  virtual void *findScalars(uint32_t action) { return nullptr; }
  /// Returns false where the device has repeated the calls of an action.
  virtual bool begin(uint32_t action, int64_t key) { return true; }
  /// Returns true where the calls of an action are to be issued again.
  virtual bool end(uint32_t action) { return false; }

  /// Reorders weights as convolution `call` takes them, or from conv_count on a
  /// product. False when the library reports a failure.
  virtual bool prepack(uint32_t call, Address weights, Address result) = 0;

  // What goes to the host. A device whose calls return early may do it later,
  // when it is polled or drained.
  virtual void deliver(std::span<char> host, Address at) {
    download(host.data(), at, host.size());
  }
  virtual void deliver(penstock::runtime::SinkRing &sink, int64_t n, Address at,
                       uint64_t bytes) {
    uint64_t bits = 0;
    download(&bits, at, bytes);
    sink.push(n, bits);
  }
  /// Called before each run of a task of a device that runs behind the host:
  /// waits while it is far behind.
  virtual void pace() {}
  /// Called from time to time by the thread that observes, while this device
  /// runs.
  virtual void poll() {}
  /// Returns when all that was issued is done, on the device's thread.
  virtual void drain() {}

  /// The time for the trace: now, or the number of a point in the work of a
  /// device that runs behind the host, which it resolves when it is drained.
  virtual int64_t getTraceTime() { return penstock::runtime::nanoseconds(); }

  virtual penstock::runtime::Statistics statistics() const = 0;

  /// Makes room for transfers, once this device and the channels are there.
  void openTransfers();
  /// Starts a device function and what it issues.
  void run(penstock_device_function function, int64_t first, int64_t updates,
           int64_t version);

  /// The address of a byte that compiled code has a pointer to.
  Address getAddress(const void *pointer) const {
    return origin + Address(static_cast<const char *>(pointer) - arena);
  }

  penstock::runtime::Context &context;
  const uint32_t index;
  /// Its calls return before they are done.
  bool runsBehind = false;
  /// Somebody follows its marks in this segment.
  bool noticesMarks = false;
  /// The first byte of the memory, as compiled code has it.
  char *arena = nullptr;
  std::unique_ptr<penstock::runtime::TraceBuffer> trace;
  /// The last events of the device, for diagnostics after its end; or null.
  penstock::runtime::FlightRing *flight = nullptr;

  // Transfers with peers in the order of issue: they count as done in that
  // order, so that one await covers the earlier ones.
  std::vector<penstock::runtime::Transfer> transfers;
  uint64_t transferMask = 0, firstTransfer = 0, endTransfer = 0;
  /// The values of this device in the sum that it posts.
  std::vector<Address> cells;
  /// Holds a message of a source where the host cannot address the arena.
  std::vector<char> staging;

  penstock::runtime::Begun begun{0};
  penstock::runtime::Position position;
};

namespace penstock::runtime {

/// Waits until everything that the device issued is done.
void finishTransfers(penstock_device *device);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_DEVICE_H
