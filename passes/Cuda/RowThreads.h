//===- RowThreads.h - Threads for the elements of a row ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that adds row after row to places that it reads from memory must keep
// its order, but the elements of a row have nothing to do with each other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_ROWTHREADS_H
#define PENSTOCK_PASSES_CUDA_ROWTHREADS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace penstock {

/// Returns whether two buffers may share an element, distinct arguments of the
/// function not being views of one another.
bool mayOverlap(mlir::Value a, mlir::Value b);

/// Moves the parallel loops of the linalg ops in `loop` around it, as an
/// `scf.forall`, where each of their iterations has elements of its own in all
/// that the loop writes. Returns whether there are such loops.
bool distributeRows(mlir::scf::ForOp loop);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_ROWTHREADS_H
