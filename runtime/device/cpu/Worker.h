//===- Worker.h - The thread of a CPU device --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything of a device happens on one thread and the team that it leads.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_WORKER_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_WORKER_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <sched.h>
#include <thread>

namespace penstock::runtime {

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

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_WORKER_H
