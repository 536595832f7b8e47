//===- DeviceThread.cpp - The thread of a device --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waits for jobs, and for the one that it has.
//===----------------------------------------------------------------------===//

#include "runtime/device/DeviceThread.h"

#include "runtime/support/Subnormals.h"
#include "runtime/support/ThreadName.h"

#include <chrono>
#include <pthread.h>

using namespace penstock::runtime;

DeviceThread::DeviceThread(uint32_t device, const cpu_set_t &cores,
                           std::function<void()> prepare)
    : thread([this, device, cores, prepare = std::move(prepare)] {
        loop(device, cores, prepare);
      }) {}

DeviceThread::~DeviceThread() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isStopping = true;
  }
  changed.notify_all();
  thread.join();
}

void DeviceThread::loop(uint32_t device, const cpu_set_t &cores,
                        const std::function<void()> &prepare) {
  nameThread("device " + std::to_string(device));
  if (CPU_COUNT(&cores) > 0)
    pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
  FlushSubnormals flush;
  if (prepare)
    prepare();
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isStopping || job; });
    if (!job)
      return;
    lock.unlock();
    job();
    lock.lock();
    job = nullptr;
    changed.notify_all();
  }
}

void DeviceThread::start(std::function<void()> next) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    job = std::move(next);
  }
  changed.notify_all();
}

bool DeviceThread::wait(int milliseconds) {
  std::unique_lock<std::mutex> lock(mutex);
  auto isDone = [&] { return !job; };
  if (milliseconds >= 0)
    return changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                            isDone);
  changed.wait(lock, isDone);
  return true;
}
