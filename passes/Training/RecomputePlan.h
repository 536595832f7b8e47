//===- RecomputePlan.h - Which residuals are computed again -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses, for one forward function, which of the values that its backward
// needs are stored, and which ops run again to make the others from them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_RECOMPUTEPLAN_H
#define PENSTOCK_PASSES_TRAINING_RECOMPUTEPLAN_H

#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Regex.h"

namespace penstock {

/// A forward function as recomputation sees it.
struct RecomputeProblem {
  mlir::Block *block = nullptr;
  /// Data among the block's arguments: what is stored when it is needed.
  llvm::DenseSet<mlir::Value> data;
  /// Arguments that the backward cannot read again as the forward saw them:
  /// statistics that the forward itself changes.
  llvm::DenseSet<mlir::Value> unstable;
  /// The values that the backward needs: data arguments, or results of ops.
  llvm::SetVector<mlir::Value> residuals;
};

struct RecomputePlan {
  /// Residuals that are made again.
  llvm::SetVector<mlir::Value> dropped;
  /// The values that the backward is given: residuals that stay, then whatever
  /// else the ops below need, in the order of the function.
  llvm::SetVector<mlir::Value> stored;
  /// Ops that run again, in the order of the function.
  llvm::SmallVector<mlir::Operation *> ops;
  double seconds = 0; ///< Of those, by the analytic cost.
  /// A lower bound of the seconds of plans within a budget.
  double leastSeconds = 0;
};

/// Bytes per microbatch of the values.
int64_t getStoredBytes(llvm::ArrayRef<mlir::Value> values);

/// Everything that can be made again from the function's arguments.
RecomputePlan planFullRecompute(const RecomputeProblem &problem);

/// Plans to recompute the values of ONNX nodes whose names the expression is
/// found in, from the stored results of other nodes.
RecomputePlan planMatchingRecompute(const RecomputeProblem &problem,
                                    const llvm::Regex &nodes);

/// The plan of the fewest seconds that stores at most `budget` bytes, or, where
/// there is none, one that stores the fewest. What the ops pass on among them
/// may be stored as well as residuals. Proved to be the cheapest as far as the
/// search gets in bounded time; `leastSeconds` says what is proved.
RecomputePlan planRecomputeWithin(const RecomputeProblem &problem,
                                  int64_t budget);

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_RECOMPUTEPLAN_H
