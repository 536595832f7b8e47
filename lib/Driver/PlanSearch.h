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

/// The request for replicas.
struct ReplicaRequest {
  int64_t devices = 1; ///< To use at most.
  int64_t chunks = 1;  ///< Stages of a device.
  int64_t microbatches = 1;
  /// True if all stages are equally wide.
  bool areEqual = false;
  /// One number for all stages, or one per stage; none: they are planned.
  std::vector<int64_t> widths;
  /// Returns true if schedule and method support so many devices in a row, with
  /// so many replicas each.
  std::function<bool(int64_t width, int64_t places)> isAllowed;
  /// Returns true if the method supports a stage of so many replicas, with so
  /// many devices behind it.
  std::function<bool(int64_t width, int64_t after)> allowsStage;
};

/// Stages that might be fast, whatever memory they need.
struct ReplicaProposals {
  /// For every width that all stages may have, on any number of devices, and
  /// the fastest of all widths for each number of devices. None twice.
  std::vector<StagePlan> plans;
  double total = 0;   ///< Seconds of one microbatch on all stages.
  int64_t chunks = 1; ///< Stages of a device.
  int64_t units = 1;  ///< Nodes that compute.
};

/// PipeDream's dynamic program over cuts and replicas, on the line of nodes
/// and one level of devices.
class ReplicaPlanner {
public:
  ReplicaPlanner(ForwardProgram &program, const Units &units,
                 const ReplicaRequest &request);

  /// The fastest plan of stages that are allowed. Replicas of every stage
  /// divide the microbatches; where no plan uses all devices, the best that
  /// uses as many as can be.
  std::optional<StagePlan> plan(StageShapeFilter isAllowed) const;
  ReplicaProposals propose() const;
  /// Says what each stage of a plan consists of, and where else cuts might be
  /// and replicas, as remarks.
  void explain(mlir::ModuleOp module, const StagePlan &plan) const;

private:
  std::optional<StagePlan> solve(int64_t devices,
                                 StageShapeFilter isAllowed) const;
  std::optional<StagePlan> solveEqual(int64_t devices, int64_t width,
                                      StageShapeFilter isAllowed) const;
  /// Returns the times of one stage, as the dynamic program counts them.
  StageTimes getTimes(int64_t begin, int64_t end, int64_t width) const;
  double getSeconds(int64_t begin, int64_t end, int64_t width) const;

  const Units &units;
  const ReplicaRequest &request;
  std::vector<PlanState> states;
};

struct PlanRequest {
  int64_t stages = 1;
  /// True if cuts are chosen; otherwise candidates have none, and the options
  /// say where they are.
  bool choosesCuts = false;
  /// Where stages have replicas; then `stages` is not asked for.
  std::optional<ReplicaRequest> replicas;
  /// Stages of a device; what it needs is not to be told from one of them.
  int64_t chunks = 1;
  bool mayRecompute = false;
  int64_t limit = 0; ///< Bytes of a device.
  /// The number of copies of a weight that trains: itself, its gradient and the
  /// optimizer's state.
  double weightCopies = 2;
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

/// Bytes of the device of each stage.
std::vector<int64_t> getNeeds(const Report &report);

/// The report of a candidate, or nothing if it cannot be compiled.
using BuildPlan = std::function<std::optional<Report>(
    const StagePlan &plan, llvm::ArrayRef<int64_t> budgets)>;

/// ONNX nodes that compute: as many stages as there can be.
mlir::FailureOr<int64_t> countUnits(mlir::ModuleOp module);

/// Cuts as the plan says, and says why they are there; with replicas, of those
/// that the request allows.
mlir::LogicalResult insertBoundaries(mlir::ModuleOp module,
                                     const StagePlan &plan,
                                     const ReplicaRequest *replicas);

/// The fastest stages and replicas, whatever memory they need; none if there
/// are none.
mlir::FailureOr<std::optional<StagePlan>>
planReplicas(mlir::ModuleOp module, const ReplicaRequest &request);

/// Returns the proposals that are worth comparing with each other.
mlir::FailureOr<ReplicaProposals>
proposeReplicas(mlir::ModuleOp module, const ReplicaRequest &request);

/// `module` is at level graph, without boundaries, where cuts are chosen.
mlir::FailureOr<PlanAnswer> searchPlan(mlir::ModuleOp module,
                                       const PlanRequest &request,
                                       const BuildPlan &build);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANSEARCH_H
