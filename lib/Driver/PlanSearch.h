//===- PlanSearch.h - Cuts, replicas and recomputation that fit -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `--stages=auto`, `--replicas=auto` and `--recompute=auto` decide, also
// when memory is limited.
// Candidates are compiled down to their memory plan: nothing is estimated that
// decides.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLANSEARCH_H
#define PENSTOCK_LIB_DRIVER_PLANSEARCH_H

#include "penstock/Driver/Report.h"
#include "penstock/Planner/PipeDream.h"
#include "penstock/Planner/StageSearch.h"

#include <functional>

namespace penstock {

struct ForwardProgram;
struct Units;

/// PipeDream's dynamic programme over cuts and replicas, on the line of nodes
/// and one level of devices.
class ReplicaPlanner {
public:
  ReplicaPlanner(ForwardProgram &program, const Units &units, int64_t devices,
                 int64_t microbatches);

  /// The fastest plan of stages that are allowed. Replicas of every stage
  /// divide the microbatches; where no plan uses all devices, the best that
  /// uses as many as can be.
  std::optional<StagePlan> plan(StageShapeFilter isAllowed) const;
  /// Says what each stage of a plan consists of, as remarks.
  void explain(mlir::ModuleOp module, const StagePlan &plan) const;

private:
  std::optional<Plan> solve(int64_t devices, StageShapeFilter isAllowed) const;

  const Units &units;
  std::vector<PlanState> states;
  int64_t devices, microbatches;
};

struct PlanRequest {
  int64_t stages = 1;
  /// Whether cuts are chosen; otherwise candidates have none, and the options
  /// say where they are.
  bool choosesCuts = false;
  /// How many devices stages may take where replicas are chosen, too, for so
  /// many microbatches; 0: one each.
  int64_t devices = 0, microbatches = 1;
  bool mayRecompute = false;
  int64_t limit = 0; ///< Bytes of a device.
};

struct PlanAnswer {
  bool fits = false;
  bool isProved = false;
  StagePlan plan;
  /// Bytes of residuals per microbatch that each stage may store; empty when
  /// nothing is recomputed.
  std::vector<int64_t> budgets;
  /// The stage that is the furthest over the limit, and what it needs.
  int64_t worstStage = -1, worstBytes = 0;
  int64_t trials = 0;
};

/// The report of a candidate, or nothing if it cannot be compiled.
using BuildPlan = std::function<std::optional<Report>(
    const StagePlan &plan, llvm::ArrayRef<int64_t> budgets)>;

/// ONNX nodes that compute: as many stages as there can be.
mlir::FailureOr<int64_t> countUnits(mlir::ModuleOp module);

/// Cuts before the units with these numbers.
mlir::LogicalResult insertBoundaries(mlir::ModuleOp module,
                                     llvm::ArrayRef<int64_t> cuts);

/// The fastest stages and replicas, whatever memory they need.
mlir::FailureOr<StagePlan> planReplicas(mlir::ModuleOp module, int64_t devices,
                                        int64_t microbatches);

/// `module` is at level graph, without boundaries, where cuts are chosen.
mlir::FailureOr<PlanAnswer> searchPlan(mlir::ModuleOp module,
                                       const PlanRequest &request,
                                       const BuildPlan &build);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANSEARCH_H
