//===- StageSearch.h - Cuts whose stages fit in memory ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a stage takes is known exactly when its program has been built, and only
// then. So the search proposes cuts, has them built and measured, and learns;
// it returns none that has not been measured and found to fit.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_STAGESEARCH_H
#define PENSTOCK_PLANNER_STAGESEARCH_H

#include "penstock/Planner/LinearPartition.h"

#include <compare>
#include <functional>
#include <limits>
#include <vector>

namespace penstock {

/// Units as a stage: on how many devices, with how many behind it.
struct StageShape {
  int64_t begin = 0, end = 0;
  int64_t replicas = 1, after = 0;

  auto operator<=>(const StageShape &) const = default;
};

struct StagePlan {
  llvm::SmallVector<int64_t> cuts;
  llvm::SmallVector<int64_t> replicas; ///< Of each stage; empty: one.
  double seconds = 0;                  ///< Of the slowest stage.
  /// As who proposes it tells stages apart; empty: by all devices behind them.
  std::vector<StageShape> shapes = {};

  std::vector<StageShape> getShapes(int64_t units) const;
};

using StageShapeFilter = llvm::function_ref<bool(const StageShape &)>;

struct StageSearchProblem {
  LinearProblem linear;
  int64_t stages = 1;
  /// The fastest plan of stages that are allowed, in place of the best cuts of
  /// `linear` into `stages`; nothing if there is none.
  std::function<std::optional<StagePlan>(StageShapeFilter)> propose;
  int64_t limit = 0; ///< Bytes of a device.
  /// Per unit: bytes that its stage needs for it whatever the plan; and bytes
  /// that what is measured may be expected to grow with.
  std::vector<double> floorBytes, activationBytes;
  /// Per unit, if it is known: what it may be expected to need in any case, so
  /// that only the rest follows the activations.
  std::vector<double> heldBytes = {};
  /// True if a device has several stages: a device that needs too much then
  /// does not tell which stage is at fault.
  bool sharesDevices = false;
  int64_t trials = 24; ///< At most so many plans are built.
  /// After as many turns in which nothing else is likely to fit, or to be
  /// faster and fit, the search ends without a proof.
  int64_t patience = std::numeric_limits<int64_t>::max();
};

/// Builds a plan; bytes per stage, or nothing if it cannot be built.
using MeasureStages =
    std::function<std::optional<std::vector<int64_t>>(const StagePlan &)>;

/// A plan that was built, and the bytes of its stages.
struct MeasuredPlan {
  StagePlan plan;
  std::vector<int64_t> bytes;
};

struct StageSearchResult {
  /// The fastest plan that was measured and fits, or else the one that comes
  /// closest; no bytes if none could be built.
  StagePlan plan;
  std::vector<int64_t> bytes;
  bool fits = false;
  /// True if no faster plan can fit, or, where none fits, no plan at all.
  bool isProved = false;
  int64_t trials = 0;
  /// All that were built, in that order, where whoever builds them notes it.
  std::vector<MeasuredPlan> measured = {};
};

StageSearchResult searchStages(const StageSearchProblem &problem,
                               const MeasureStages &measure);

} // namespace penstock

#endif // PENSTOCK_PLANNER_STAGESEARCH_H
