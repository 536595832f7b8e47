//===- Plan.h - Stages with replicas, and what they cost --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every planner returns. Layers are numbered by the states that the
// planner cut between: for a chain, the layers themselves.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_PLAN_H
#define PENSTOCK_PLANNER_PLAN_H

#include "penstock/Planner/LayerGraph.h"
#include "penstock/Planner/ScheduleCounts.h"

#include <string>
#include <vector>

namespace penstock {

/// Seconds per microbatch of one stage, by what they are spent on.
struct StageTimes {
  double compute = 0;           ///< Of one replica, shared by all of them.
  double allReduce = 0;         ///< The same.
  double input = 0, output = 0; ///< Transfers, as the planner counts them.
};

struct PlanStage {
  int64_t first = 0, last = 0; ///< States, both included.
  int64_t replicas = 1;
  StageTimes times;
  double weightBytes = 0, activationBytes = 0;
  int64_t inFlight = 1; ///< Microbatches between forward and backward.
  double memoryBytes = 0;
};

/// Where else a cut might stand: the time of the slowest part if it did, all
/// other choices to the right of it unchanged.
struct CutAlternative {
  int64_t after = 0; ///< The last state before the cut.
  double seconds = 0;
};

struct PlanCut {
  int64_t level = 1; ///< Of the hierarchy of devices, from 1.
  int64_t after = 0;
  std::vector<CutAlternative> alternatives; ///< Itself among them, in order.
};

/// A stage of one level: what runs on `replicas` components of that level.
struct LevelStage {
  int64_t level = 1;
  int64_t first = 0, last = 0, replicas = 1;
};

/// A plan that was compiled and compared, whether it was taken or not.
struct PlanCandidate {
  std::vector<int64_t> cuts; ///< The first state of each stage but the first.
  std::vector<int64_t> replicas;
  double slowestSeconds = 0;
  double memoryBytes = 0; ///< Of the device that needs most.
  bool fits = false;
};

struct Plan {
  std::vector<PlanStage> stages; ///< Flat: replicas of all levels multiplied.
  /// True if its schedule has been proved, where memory was counted in it.
  bool isSchedulable = true;
  /// True if memory is that of its compiled program, and not computed from
  /// sizes of layers.
  bool isCompiled = false;
  /// The flags of `penstockc` that make that program.
  std::vector<std::string> flags;
  /// Seconds of the slowest stage if cuts between branches were allowed, which
  /// programs do not have; 0: they are no faster.
  double branchedSeconds = 0;
  std::vector<LevelStage> levels; ///< From the highest level down.
  std::vector<PlanCut> cuts;
  /// All plans that were compiled, in that order.
  std::vector<PlanCandidate> candidates;
  double slowestSeconds = 0;
  double oneDeviceSeconds = 0;
  double dataParallelSeconds = 0; ///< All devices replicate the whole model.
  double getSpeedup() const { return oneDeviceSeconds / slowestSeconds; }
};

/// How much memory a stage has, in bytes. What it needs is counted in its
/// schedule: sets of activations and versions of the weights, `weightCopies`
/// times the weights for gradients and optimizer state, and buffers for what
/// comes in and goes out.
struct MemoryModel {
  double limit = 0; ///< 0: none.
  double weightCopies = 1;
};

/// Sizes of a stage, in bytes: `input` is what it receives per microbatch,
/// `output` what it sends; their gradients are as large.
struct StageSizes {
  double weights = 0, activations = 0, input = 0, output = 0;
};

/// Bytes of a stage with these counts. Activations are kept from forward to
/// backward, and the input with them; with recomputation, only the input.
double getStageBytes(const StageSizes &sizes, const StageCounts &counts,
                     double weightCopies, bool recomputes = false);

} // namespace penstock

#endif // PENSTOCK_PLANNER_PLAN_H
