//===- ScheduleCounts.h - What stages hold under a schedule -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Planners without a program know sizes of layers only. How many of each there
// are at a time is counted in the schedule that the compiler would generate,
// with its transfers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_SCHEDULECOUNTS_H
#define PENSTOCK_PLANNER_SCHEDULECOUNTS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock {

/// Upper bounds for one device of a stage.
struct StageCounts {
  int64_t inFlight = 1; ///< Microbatches between forward and backward.
  int64_t versions = 1; ///< Of its weights.
  /// Buffers: of activations received and waiting to be sent, and of their
  /// gradients, on the side of the output and on that of the input.
  int64_t inputs = 0, outputs = 0, outputGradients = 0, inputGradients = 0;
};

/// Which weights a microbatch reads.
enum class PlannedMethod {
  Stashing,       ///< PipeDream: those that were newest when it came.
  DoubleBuffered, ///< PipeDream-2BW: those before the newest.
  OneAtATime      ///< No two microbatches at a time.
};

/// Counts of every stage of a line, by its replicas. Stashing updates as often
/// as it can: with as many microbatches as all numbers of replicas divide;
/// double buffers after so many, one per stage at least. Of schedules too long
/// to walk, closed forms that are no less. Nothing where transfers have no
/// place or the proof rejects the schedule: there is no such program.
std::optional<std::vector<StageCounts>>
countSchedule(llvm::ArrayRef<int64_t> replicas, PlannedMethod method,
              int64_t microbatches = 1);

} // namespace penstock

#endif // PENSTOCK_PLANNER_SCHEDULECOUNTS_H
