//===- Greedy.h - Runs by the clock -----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For schedules that are a rule of what to do next, not a list: executes the
// tasks of a problem in the order of their starts and asks each device what it
// would do.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_GENERATORS_GREEDY_H
#define PENSTOCK_LIB_SCHEDULE_GENERATORS_GREEDY_H

#include "Families.h"

#include <limits>

namespace penstock::schedule {

class Greedy {
public:
  /// Runs take what the problem says, or one unit per forward and per half of
  /// a backward.
  enum class Clock { Problem, Unit };
  Greedy(const Problem &problem, Clock clock);

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Choice {
    int task = -1;
    double start = kNever;
  };
  using Rule = llvm::function_ref<Choice(int device)>;

  /// The earliest start of a task's next run; never if what it takes has not
  /// been scheduled, or when it is done.
  double getStart(int task) const;
  Choice choose(int task) const { return {task, getStart(task)}; }
  /// When the device is free.
  double getTime(int device) const { return times[device]; }
  int64_t done(int task) const { return ends[task].size(); }
  /// How long it waited since its first run; the most that any did.
  double getIdle(int device) const { return idle[device]; }
  double mostIdle() const { return longestIdle; }
  /// Which of two tasks of one device ran later; the second if neither did.
  int getLater(int first, int second) const {
    return turns[first] > turns[second] ? first : second;
  }
  /// The longest time of a device, from its first start to its last end.
  double makespan() const;

  /// Follows the rule until no device can do anything. It is asked again when
  /// its device has run something, or may take something new. Gives up, with
  /// false, when a device with all its runs cannot be done in less than `most`.
  bool run(Rule rule, double most = kNever);

  std::vector<std::vector<int>> runs;

private:
  const Problem &problem;
  std::vector<double> durations, times, idle;
  /// The first start of each device, and the time of all its runs.
  std::vector<double> begins, work;
  double transfer, longestIdle = 0;
  /// The number of runs of its device before its last one, by task, or -1.
  std::vector<int64_t> turns;
  /// End times by task and microbatch.
  std::vector<std::vector<double>> ends;
  std::vector<int> devices;
};

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_GENERATORS_GREEDY_H
