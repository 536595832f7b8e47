//===- Simulate.h - Simulations of schedules --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For those who want the timeline rather than the pass: the driver's report.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_SCHEDULE_SIMULATE_H
#define PENSTOCK_PASSES_SCHEDULE_SIMULATE_H

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Schedule/Passes.h"

namespace penstock {

struct Simulation {
  double makespan = 0, bubble = 0;
  /// Seconds that forwards and backwards take of all devices together.
  double work = 0;
  /// One line per device, without its number.
  std::vector<std::string> timeline;
};

/// The time of a worker of several in the steady state.
struct WorkerWaits {
  /// A wave, where no other worker is waited for.
  double waveSeconds = 0;
  /// The shares of its time in which it waits for waves of others, and in which
  /// its devices wait for each other.
  double others = 0, line = 0;
};

/// Simulates a schedule whose workers exchange waves; one entry for each.
mlir::FailureOr<std::vector<WorkerWaits>>
simulateWorkers(pipeline::ScheduleOp schedule,
                const PipelineSimulateOptions &options);

/// Executes a segment of a schedule at level `schedule`.
mlir::FailureOr<Simulation>
simulateSchedule(pipeline::ScheduleOp schedule,
                 const PipelineSimulateOptions &options);

} // namespace penstock

#endif // PENSTOCK_PASSES_SCHEDULE_SIMULATE_H
