//===- Timeline.cpp - When a stream was where -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver measures time between two events, as a float of milliseconds. An
// anchor has a time of the host, and is never far away, so that no digit is
// lost.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Timeline.h"

#include "runtime/support/Wait.h"

#include <utility>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// From an anchor to the next; floats resolve half a microsecond there, as the
/// driver does.
static constexpr float kMostMilliseconds = 1000;

int Timeline::open(const Driver &table, Stream on) {
  driver = &table;
  stream = on;
  events.resize(kPoints);
  int status = driver->cuEventCreate(&anchor, CU_EVENT_BLOCKING_SYNC);
  for (Event &event : events)
    if (!status)
      status = driver->cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC);
  return status;
}

void Timeline::clear() {
  if (anchor)
    (void)driver->cuEventDestroy(anchor);
  for (Event event : events)
    if (event)
      (void)driver->cuEventDestroy(event);
  events.clear();
}

/// The stream is idle, so it is at the anchor as soon as that is set.
int Timeline::start() {
  isRunning = true;
  int status = driver->cuEventRecord(anchor, stream);
  if (!status)
    status = driver->cuEventSynchronize(anchor);
  anchorTime = nanoseconds();
  return status;
}

int Timeline::resolveOldest() {
  Event &event = events[times.size() % kPoints];
  float milliseconds = 0;
  int status = driver->cuEventSynchronize(event);
  if (!status)
    status = driver->cuEventElapsedTime(&milliseconds, anchor, event);
  int64_t time = anchorTime + int64_t(double(milliseconds) * 1e6);
  times.push_back(time);
  if (milliseconds > kMostMilliseconds) {
    std::swap(anchor, event);
    anchorTime = time;
  }
  return status;
}

int Timeline::add(int64_t &point) {
  int status = isRunning ? CUDA_SUCCESS : start();
  if (!status && size_t(end) - times.size() == kPoints)
    status = resolveOldest();
  point = end++;
  return status
             ? status
             : driver->cuEventRecord(events[size_t(point) % kPoints], stream);
}

int Timeline::drain() {
  isRunning = false;
  int status = CUDA_SUCCESS;
  while (!status && times.size() != size_t(end))
    status = resolveOldest();
  return status;
}
