//===- Device.h - A CPU device: a thread and an arena -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `penstock_device` is on a CPU. Its thread runs the device functions of a
// program; other threads look only at the atomics.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_DEVICE_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_DEVICE_H

#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/Convolutions.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/observe/Position.h"
#include "runtime/observe/Trace.h"
#include "runtime/transport/threads/AllReduce.h"
#include "runtime/transport/threads/Channel.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>

namespace penstock::runtime {

class Instance;

/// A thread that runs jobs one after the other.
class Worker {
public:
  /// Stays on `cores` unless that set is empty; library calls made on it use
  /// `threads` threads.
  Worker(const cpu_set_t &cores, uint32_t threads);
  ~Worker();

  void start(std::function<void()> job);
  /// True when the job is done; gives up after `milliseconds` unless negative.
  bool wait(int milliseconds);

private:
  void loop(const cpu_set_t &cores, uint32_t threads);

  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> job;
  bool isStopping = false;
  std::thread thread;
};

/// The cores of a device: its share of those this process may use, empty where
/// threads outnumber cores.
cpu_set_t shareOfCores(const penstock_program &program, uint32_t device);
/// Threads of all devices together against allowed cores.
bool isOversubscribed(const penstock_program &program);

/// A transfer that has been issued and may not be done: a message of a channel,
/// or a sum.
struct Transfer {
  Channel *channel = nullptr;
  Channel::Side *side = nullptr;
  int64_t message = 0;
  AllReduce *sum = nullptr;
};

} // namespace penstock::runtime

struct alignas(64) penstock_device {
  penstock_device(penstock::runtime::Instance &instance, uint32_t index,
                  const penstock_device_descriptor &description)
      : instance(instance), index(index), description(description) {}

  penstock::runtime::Instance &instance;
  const uint32_t index;
  const penstock_device_descriptor &description;
  penstock::runtime::Arena arena;
  penstock::runtime::Gemms gemms;
  penstock::runtime::Convolutions convs;
  std::unique_ptr<penstock::runtime::TraceBuffer> trace;

  // Transfers with peers in the order of issue: they count as done in that
  // order, so that one await covers the earlier ones.
  std::vector<penstock::runtime::Transfer> transfers;
  uint64_t transferMask = 0, firstTransfer = 0, endTransfer = 0;

  penstock::runtime::Position position;

  /// The thread comes last, so that it ends first.
  std::unique_ptr<penstock::runtime::Worker> worker;
};

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_DEVICE_H
