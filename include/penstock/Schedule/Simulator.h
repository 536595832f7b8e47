//===- Simulator.h - How long a schedule takes ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The updates of a problem without queues of transfers: the figures that papers
// give. What a compiled program does under its queues is Engine's execute.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_SIMULATOR_H
#define PENSTOCK_SCHEDULE_SIMULATOR_H

#include "penstock/Schedule/Generators.h"

namespace penstock::schedule {

struct Simulation {
  /// The runs of each device in the order of their starts; times with
  /// transfers.
  std::vector<std::vector<Interval>> runs;
  /// The longest time that a device takes, from its first start to its last
  /// end; and from the first start of any to the last end of any, which is what
  /// an update takes where it is a barrier.
  double makespan = 0, withBarrier = 0;
  /// Share of the makespan that is not M (F + I + W) of every update.
  double bubble = 0, bubbleWithBarrier = 0;
  /// The most activations that each device holds, in microbatches of one stage.
  std::vector<double> peaks;
  /// Why the orders do not run to their end, and the devices' states; or empty.
  std::string circle;
  std::vector<std::string> stuck;

  /// Takes less time, or as much but less with a barrier; by more than what
  /// sums of times are off.
  bool isShorterThan(const Simulation &other) const;
};

/// Returns true if no device holds more than the problem's memory limit, if it
/// has one.
bool keepsLimit(const Problem &problem, const Simulation &simulation);

/// Runs `problem.updates` updates.
Simulation simulate(const Problem &problem, llvm::ArrayRef<Order> orders);

/// Idle share in the steady state of orders that do not flush: what a longer
/// training adds.
double simulateSteadyBubble(const Problem &problem,
                            llvm::ArrayRef<Order> orders);

/// Simulates lists of runs, without updates.
Simulation simulateRuns(const Problem &problem,
                        llvm::ArrayRef<std::vector<int>> runs);

/// The devices' order as text: one line each, a cell per shortest run.
std::vector<std::string> drawTimeline(const Problem &problem,
                                      const Simulation &simulation);

/// The same as a picture, and as a trace for Perfetto.
std::string drawSvg(const Problem &problem, const Simulation &simulation,
                    llvm::StringRef title);
std::string writeTrace(const Problem &problem, const Simulation &simulation);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_SIMULATOR_H
