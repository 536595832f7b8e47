//===- CollapseLoops.h - Adjacent loops become one --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Longer rows: one masked rest instead of one per row.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_COLLAPSELOOPS_H
#define PENSTOCK_PASSES_KERNELS_COLLAPSELOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// Makes one loop of neighboring parallel ones that every buffer either lacks
/// or has side by side in memory. No order of additions depends on such loops.
/// Returns `op` itself where there is nothing to join.
mlir::linalg::GenericOp collapseParallelLoops(mlir::RewriterBase &rewriter,
                                              mlir::linalg::GenericOp op);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_COLLAPSELOOPS_H
