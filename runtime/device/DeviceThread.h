//===- DeviceThread.h - The thread of a device ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host does for a device: its functions, one after the other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_DEVICETHREAD_H
#define PENSTOCK_RUNTIME_DEVICE_DEVICETHREAD_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <sched.h>
#include <thread>

namespace penstock::runtime {

class DeviceThread {
public:
  /// Stays on `cores` unless that set is empty, and calls `prepare` first.
  /// Numbers next to zero are zero in it and in the threads that it starts; all
  /// of them are called "device N".
  DeviceThread(uint32_t device, const cpu_set_t &cores,
               std::function<void()> prepare = nullptr);
  ~DeviceThread();

  void start(std::function<void()> job);
  /// True when the job is done; gives up after `milliseconds` unless negative.
  bool wait(int milliseconds);

private:
  void loop(uint32_t device, const cpu_set_t &cores,
            const std::function<void()> &prepare);

  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> job;
  bool isStopping = false;
  std::thread thread;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_DEVICETHREAD_H
