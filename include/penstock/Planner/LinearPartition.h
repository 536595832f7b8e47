//===- LinearPartition.h - Cuts of a linear order into stages ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exact dynamic program over a linear order of units: minimizes the time
// of the slowest stage, its transfers included; among equals, the time of all
// transfers. PipeDream (SOSP 2019, section 3.1) without replication.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_LINEARPARTITION_H
#define PENSTOCK_PLANNER_LINEARPARTITION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock {

/// Units 0..n-1 in order. A cut at c separates units c-1 and c, 0 < c < n.
struct LinearProblem {
  llvm::SmallVector<double> unitSeconds; ///< n entries.
  /// n + 1 entries: the time to carry everything alive across a cut at c. A
  /// stage pays for both of its ends; the outer two are not transfers.
  llvm::SmallVector<double> cutSeconds;
  /// Speed of the device of each stage, in multiples of that which the units
  /// are timed on; empty: they are all like that.
  llvm::SmallVector<double> speeds;
  /// On devices of several kinds, the seconds of the units on that of each
  /// stage; empty: unitSeconds on all.
  std::vector<llvm::SmallVector<double>> secondsByStage;
};

struct LinearPlan {
  llvm::SmallVector<int64_t> cuts; ///< stages - 1 entries, increasing.
  double slowestSeconds = 0;
  double transferSeconds = 0; ///< Of all cuts, each counted once.
};

/// Seconds of the stage of units [begin, end), transfers included, on a device
/// like those that unitSeconds are of.
double getStageSeconds(const LinearProblem &problem, int64_t begin,
                       int64_t end);
/// The same on the device of a stage.
double getStageSeconds(const LinearProblem &problem, int64_t stage,
                       int64_t begin, int64_t end);

/// The best plan. Needs 1 <= stages <= number of units. O(n * n * stages).
LinearPlan partitionLinearly(const LinearProblem &problem, int64_t stages);

/// Returns true if units [begin, end) may be stage number `stage`.
using StageFilter =
    llvm::function_ref<bool(int64_t stage, int64_t begin, int64_t end)>;

/// The best plan of stages that are allowed; nothing if there is none.
std::optional<LinearPlan> partitionLinearly(const LinearProblem &problem,
                                            int64_t stages,
                                            StageFilter isAllowed);

/// The plan whose largest stage is the smallest, by any measure of stages that
/// is not negative.
LinearPlan partitionEvenly(
    int64_t units, int64_t stages,
    llvm::function_ref<double(int64_t stage, int64_t begin, int64_t end)>
        getSize);

} // namespace penstock

#endif // PENSTOCK_PLANNER_LINEARPARTITION_H
