//===- DeviceThread.cpp - The thread of a device --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waits for jobs, and for the one that it has.
//===----------------------------------------------------------------------===//

#include "runtime/device/DeviceThread.h"

#include <chrono>
#include <pthread.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

using namespace penstock::runtime;

/// Numbers below 1.2e-38 are zero, in this thread and those that it starts.
/// Moments of a row without gradients decay through that range, and so do the
/// gradients of a model that has learned its data: each such operand costs an
/// x86 core more than a hundred cycles, and no result of training a digit.
static void flushSubnormals() {
#if defined(__SSE2__)
  constexpr unsigned flushToZero = 1u << 15, operandsAreZero = 1u << 6;
  _mm_setcsr(_mm_getcsr() | flushToZero | operandsAreZero);
#endif
}

DeviceThread::DeviceThread(const cpu_set_t &cores,
                           std::function<void()> prepare)
    : thread([this, cores, prepare = std::move(prepare)] {
        loop(cores, prepare);
      }) {}

DeviceThread::~DeviceThread() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isStopping = true;
  }
  changed.notify_all();
  thread.join();
}

void DeviceThread::loop(const cpu_set_t &cores,
                        const std::function<void()> &prepare) {
  if (CPU_COUNT(&cores) > 0)
    pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
  flushSubnormals();
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
