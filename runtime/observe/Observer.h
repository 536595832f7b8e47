//===- Observer.h - What the calling thread does meanwhile ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While devices run, the thread that started them empties the sinks, writes the
// log, shows progress and watches that something moves.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_OBSERVER_H
#define PENSTOCK_RUNTIME_OBSERVE_OBSERVER_H

#include "runtime/observe/Log.h"
#include "runtime/run/Instance.h"

#include <deque>

namespace penstock::runtime {

/// Ends the process when no device makes progress for some seconds.
class Watchdog {
public:
  Watchdog(const Instance &instance, double seconds)
      : instance(instance), limit(int64_t(seconds * 1e9)),
        since(nanoseconds()) {}
  void check();

private:
  const Instance &instance;
  int64_t limit; // 0: off
  int64_t since;
  uint64_t seen = 0;
};

/// A line on stderr that is rewritten, when stderr is a terminal.
class ProgressLine {
public:
  explicit ProgressLine(int64_t totalUpdates);
  ~ProgressLine() { clear(); }
  void show(int64_t updates, double loss, double samplesPerSecond);
  void clear();

private:
  int64_t total;
  bool isTerminal, isShown = false;
  int64_t last = 0;
};

/// What the sinks of one segment delivered, in message order.
struct SinkValues {
  std::deque<SinkRing::Item> losses, corrects, counts;

  /// Empties the rings of an instance.
  void collect(Instance &instance);
};

/// The f32 or i64 in an item.
float floatOf(const SinkRing::Item &item);
int64_t integerOf(const SinkRing::Item &item);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_OBSERVER_H
