//===- Cores.cpp - Which cores a device may use ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the affinity of this process, so that several of them can be kept apart.
//===----------------------------------------------------------------------===//

#include "runtime/device/Cores.h"

#include <algorithm>
#include <vector>

using namespace penstock::runtime;

static std::vector<int> allowedCores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed))
        cores.push_back(core);
  return cores;
}

static uint64_t threadsBefore(const Context &context, uint32_t device) {
  uint64_t threads = 0;
  for (uint32_t i = 0; i < device; ++i)
    if (context.cores.isLocal[i])
      threads += std::max(context.program.devices[i].threads, 1u);
  return threads;
}

bool penstock::runtime::isOversubscribed(const Context &context) {
  return context.cores.areFew ||
         threadsBefore(context, context.program.device_count) >
             allowedCores().size();
}

std::string penstock::runtime::describeCores(const cpu_set_t &cores) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &cores))
      continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cores))
      ++last;
    text += format(first == last ? "%s%d" : "%s%d-%d", text.empty() ? "" : ",",
                   first, last);
    first = last;
  }
  return text.empty() ? "any" : text;
}

cpu_set_t penstock::runtime::shareOfCores(const Context &context,
                                          uint32_t device) {
  cpu_set_t share;
  CPU_ZERO(&share);
  if (isOversubscribed(context))
    return share;
  std::vector<int> cores = allowedCores();
  uint64_t total = threadsBefore(context, context.program.device_count);
  uint64_t begin = threadsBefore(context, device) * cores.size() / total;
  uint64_t end = threadsBefore(context, device + 1) * cores.size() / total;
  for (uint64_t i = begin; i < end; ++i)
    CPU_SET(cores[i], &share);
  return share;
}
