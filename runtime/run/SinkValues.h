//===- SinkValues.h - What the sinks of a segment delivered -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The observing thread empties the rings that devices fill.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_SINKVALUES_H
#define PENSTOCK_RUNTIME_RUN_SINKVALUES_H

#include "runtime/run/Instance.h"
#include "runtime/run/Peers.h"

#include <deque>
#include <map>
#include <string>

namespace penstock::runtime {

/// Values that the sinks of one segment delivered, in message order.
struct SinkValues {
  std::deque<SinkRing::Item> losses, corrects, counts;
  /// Values by the name of their metric.
  std::map<std::string, std::deque<SinkRing::Item>> metrics;

  /// Empties the rings of an instance.
  void collect(Instance &instance);
  /// Those of an instance whose other devices are in other processes: rank 0
  /// has the values of all, others send theirs.
  void collect(Instance &instance, Peers &peers);

private:
  void send(Instance &instance, Peers &peers);
  void take(const std::string &bytes);

  /// Values of other processes, by channel.
  std::vector<std::deque<SinkRing::Item>> far;
};

/// The f32 or i64 in an item.
float toFloat(const SinkRing::Item &item);
int64_t toInteger(const SinkRing::Item &item);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_SINKVALUES_H
