//===- Worker.cpp - The thread of a CPU device ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where its team of threads may run.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Worker.h"

#include "runtime/device/cpu/OpenMP.h"

#include <algorithm>
#include <atomic>
#include <pthread.h>
#include <vector>

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

} // namespace

Worker::Worker(uint32_t device, const cpu_set_t &cores, uint32_t threads)
    : DeviceThread(device, cores, [cores, threads] {
        // The number of threads of a library call is part of its numerics.
        omp_set_dynamic(0);
        omp_set_num_threads(std::max(threads, 1u));
        pinTeam(cores, threads);
      }) {}
