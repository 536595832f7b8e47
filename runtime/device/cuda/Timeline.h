//===- Timeline.h - When a stream was where ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Points in the work of a stream, and the times of the host's clock at which
// the GPU came there. For traces alone: events that measure time cost some.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_TIMELINE_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_TIMELINE_H

#include "runtime/device/cuda/Driver.h"

#include <vector>

namespace penstock::runtime::cuda {

/// The functions return a status.
class Timeline {
public:
  int open(const Driver &driver, Stream stream);
  void clear();

  /// Sets a point behind all that is on the stream, and returns its number in
  /// `point`. Waits for the oldest one where too many are ahead of the GPU.
  int add(int64_t &point);
  /// Waits for all points.
  int drain();
  /// The time of a point, in nanoseconds; all points are drained.
  int64_t getTime(int64_t point) const { return times[size_t(point)]; }

private:
  int start();
  int resolveOldest();

  /// Points that the GPU may be behind.
  static constexpr size_t kPoints = 1024;

  const Driver *driver = nullptr;
  Stream stream = nullptr;
  /// Events of the points from times.size() on.
  std::vector<Event> events;
  int64_t end = 0;
  std::vector<int64_t> times;
  /// A point of known time, from which others are measured; none while nothing
  /// runs.
  Event anchor = nullptr;
  int64_t anchorTime = 0;
  bool isRunning = false;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_TIMELINE_H
