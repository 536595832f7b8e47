//===- Worker.cpp - The thread of a CPU device ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where its team of threads may run, and what their arithmetic does with
// numbers next to zero.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Worker.h"

#include "runtime/device/cpu/OpenMP.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <pthread.h>
#include <vector>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

using namespace penstock::runtime;

namespace {

struct Pinning {
  std::vector<int> cores;
  // Says what the team's barrier orders; see ParallelCall in Device.cpp.
  std::atomic<int> order{0};
};

void pinMember(void *data) {
  Pinning &pinning = *static_cast<Pinning *>(data);
  pinning.order.load(std::memory_order_acquire);
  size_t member = omp_get_thread_num(), team = omp_get_num_threads();
  size_t begin = pinning.cores.size() * member / team;
  size_t end = pinning.cores.size() * (member + 1) / team;
  cpu_set_t share;
  CPU_ZERO(&share);
  for (size_t i = begin; i < end; ++i)
    CPU_SET(pinning.cores[i], &share);
  pthread_setaffinity_np(pthread_self(), sizeof(share), &share);
  pinning.order.fetch_add(1, std::memory_order_release);
}

/// Divides a device's cores among its team. Members spin at each barrier, so
/// two that meet on one core cost each other whole time slices.
void pinTeam(const cpu_set_t &cores, uint32_t threads) {
  if (threads <= 1 || CPU_COUNT(&cores) < int(threads))
    return;
  Pinning pinning;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores))
      pinning.cores.push_back(core);
  pinning.order.store(1, std::memory_order_release);
  GOMP_parallel(pinMember, &pinning, threads, 0);
  pinning.order.load(std::memory_order_acquire);
}

/// Numbers below 1.2e-38 are zero, in this thread and those that it starts.
/// Moments of a row without gradients decay through that range, and so do the
/// gradients of a model that has learned its data: each such operand costs an
/// x86 core more than a hundred cycles, and no result of training a digit.
void flushSubnormals() {
#if defined(__SSE2__)
  constexpr unsigned flushToZero = 1u << 15, operandsAreZero = 1u << 6;
  _mm_setcsr(_mm_getcsr() | flushToZero | operandsAreZero);
#endif
}

} // namespace

Worker::Worker(const cpu_set_t &cores, uint32_t threads)
    : thread([this, cores, threads] { loop(cores, threads); }) {}

Worker::~Worker() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isStopping = true;
  }
  changed.notify_all();
  thread.join();
}

void Worker::loop(const cpu_set_t &cores, uint32_t threads) {
  if (CPU_COUNT(&cores) > 0)
    pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
  flushSubnormals(); // before there is a team
  // The number of threads of a library call is part of its numerics.
  omp_set_dynamic(0);
  omp_set_num_threads(std::max(threads, 1u));
  pinTeam(cores, threads);
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

void Worker::start(std::function<void()> next) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    job = std::move(next);
  }
  changed.notify_all();
}

bool Worker::wait(int milliseconds) {
  std::unique_lock<std::mutex> lock(mutex);
  auto isDone = [&] { return !job; };
  if (milliseconds >= 0)
    return changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                            isDone);
  changed.wait(lock, isDone);
  return true;
}
