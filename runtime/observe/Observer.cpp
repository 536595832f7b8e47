//===- Observer.cpp - What the calling thread does meanwhile --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads relaxed counters of the devices and the sink rings; never makes a
// device wait.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Observer.h"
#include "runtime/observe/Failure.h"

#include <bit>
#include <unistd.h>

using namespace penstock::runtime;

void Watchdog::check() {
  if (limit == 0)
    return;
  uint64_t progress = 0;
  for (const auto &device : instance.devices())
    progress += device->progress.load(std::memory_order_relaxed);
  int64_t now = nanoseconds();
  if (progress != seen) {
    seen = progress;
    since = now;
  } else if (now - since > limit) {
    fail(instance, PENSTOCK_WATCHDOG,
         "watchdog: no device made progress for %g s", double(limit) * 1e-9);
  }
}

ProgressLine::ProgressLine(int64_t totalUpdates)
    : total(totalUpdates), isTerminal(isatty(STDERR_FILENO)) {}

void ProgressLine::show(int64_t updates, double loss, double samplesPerSecond) {
  int64_t now = nanoseconds();
  if (!isTerminal || now - last < 100000000)
    return;
  last = now;
  isShown = true;
  std::fprintf(stderr, "\r\033[Kstep %lld of %lld, loss %.6g, %.0f samples/s",
               (long long)updates, (long long)total, loss, samplesPerSecond);
}

void ProgressLine::clear() {
  if (isShown)
    std::fprintf(stderr, "\r\033[K");
  isShown = false;
}

void SinkValues::collect(Instance &instance) {
  SinkRing::Item item;
  for (Endpoint &endpoint : instance.allEndpoints()) {
    if (!endpoint.sink || endpoint.channel->description.offset)
      continue;
    std::string_view name = endpoint.channel->description.sink;
    std::deque<SinkRing::Item> &values = name == "loss"      ? losses
                                         : name == "correct" ? corrects
                                                             : counts;
    // Replicas take turns, whoever is first.
    uint32_t stride = endpoint.channel->description.stride;
    while ((&endpoint)[endpoint.turn].sink->pop(item)) {
      values.push_back(item);
      endpoint.turn = (endpoint.turn + 1) % stride;
    }
  }
}

float penstock::runtime::floatOf(const SinkRing::Item &item) {
  return std::bit_cast<float>(uint32_t(item.bits));
}

int64_t penstock::runtime::integerOf(const SinkRing::Item &item) {
  return std::bit_cast<int64_t>(item.bits);
}
