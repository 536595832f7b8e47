//===- RowTeams.h - Which threads share a row -------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a sum over a row, in one place. It depends on the sizes of the
// loops and on nothing else: neither on what shares the loop over rows nor on
// where the row lies.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_ROWTEAMS_H
#define PENSTOCK_PASSES_CUDA_ROWTEAMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

constexpr int64_t kWarpThreads = 32;

/// Shorter rows are a thread's each.
constexpr int64_t kShortestTeamRow = 32;

/// Returns how many threads add up a row of so many elements: a warp, or more
/// in a block of their own.
int64_t getTeamThreads(int64_t elements);

/// Describes an op whose first loops go over rows.
struct RowLoops {
  unsigned depth = 0;
  /// The loops within a row that have more than one iteration.
  llvm::SmallVector<unsigned> inner;
  /// Their iterations.
  int64_t elements = 1;
  /// True if it adds up along the row. Otherwise each element is by itself.
  bool isReduction = false;
};

/// Returns how an op goes through rows numbered by its first `depth` loops;
/// none where rows are not independent of each other.
std::optional<RowLoops> getRowLoops(mlir::linalg::GenericOp op, unsigned depth);

/// Returns whether a team of threads can share the rows: what each has added up
/// is combined, and passes from thread to thread.
bool canShareRows(mlir::linalg::GenericOp op, const RowLoops &loops);

/// Returns whether the loops in a row move the buffer of an init.
bool isAlongRow(mlir::linalg::GenericOp op, mlir::OpOperand &init,
                const RowLoops &loops);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_ROWTEAMS_H
