//===- PlanSearch.h - Cuts and recomputation that fit -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `--stages=auto` and `--recompute=auto` decide when memory is limited.
// Candidates are compiled down to their memory plan: nothing is estimated that
// decides.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLANSEARCH_H
#define PENSTOCK_LIB_DRIVER_PLANSEARCH_H

#include "penstock/Driver/Report.h"

#include <functional>

namespace penstock {

struct PlanRequest {
  int64_t stages = 1;
  /// Whether cuts are chosen; otherwise candidates have none, and the options
  /// say where they are.
  bool choosesCuts = false;
  bool mayRecompute = false;
  int64_t limit = 0; ///< Bytes of a device.
};

struct PlanAnswer {
  bool fits = false;
  bool isProved = false;
  llvm::SmallVector<int64_t> cuts;
  /// Bytes of residuals per microbatch that each stage may store; empty when
  /// nothing is recomputed.
  std::vector<int64_t> budgets;
  /// The stage that is the furthest over the limit, and what it needs.
  int64_t worstStage = -1, worstBytes = 0;
  int64_t trials = 0;
};

/// The plan of a candidate, or nothing if it cannot be compiled.
using BuildPlan = std::function<std::optional<Report>(
    llvm::ArrayRef<int64_t> cuts, llvm::ArrayRef<int64_t> budgets)>;

/// ONNX nodes that compute: as many stages as there can be.
mlir::FailureOr<int64_t> countUnits(mlir::ModuleOp module);

/// Cuts before the units with these numbers.
mlir::LogicalResult insertBoundaries(mlir::ModuleOp module,
                                     llvm::ArrayRef<int64_t> cuts);

/// Cuts, and how many replicas each stage has.
struct ReplicaPlan {
  llvm::SmallVector<int64_t> cuts, widths;
  int64_t devices = 0; ///< Those that it uses.
};

/// Replicas of every stage divide the microbatches; where no plan uses all
/// devices, the best that uses as many as can be.
mlir::FailureOr<ReplicaPlan>
planReplicas(mlir::ModuleOp module, int64_t devices, int64_t microbatches);

/// `module` is at level graph, without boundaries, where cuts are chosen.
mlir::FailureOr<PlanAnswer> searchPlan(mlir::ModuleOp module,
                                       const PlanRequest &request,
                                       const BuildPlan &build);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANSEARCH_H
