//===- ThreadLoops.h - A linalg.generic within one thread -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes those loops of an op that a thread runs by itself, around the scalar
// body. Who maps the other loops to threads gives their indices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_THREADLOOPS_H
#define PENSTOCK_PASSES_CUDA_THREADLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// Returns the loops of which each iteration may be a thread: parallel ones
/// that move all results, so that no two threads write the same element.
llvm::SmallVector<unsigned> getThreadLoops(mlir::linalg::GenericOp op);

/// Writes the op at the insertion point. `indices` has the index of each loop;
/// null for one that is written here, as an `scf.for` in the order of the op.
/// Results that no such loop moves are carried in registers.
void writeThreadLoops(mlir::OpBuilder &builder, mlir::linalg::GenericOp op,
                      llvm::ArrayRef<mlir::Value> indices);

/// Replaces all linalg ops below `root` by loops of one thread. Emits an error
/// at an op that has no such form.
mlir::LogicalResult writeThreadLoops(mlir::Operation *root);

/// Returns the generic op that does the same on buffers of static shape, in its
/// place. Emits an error if there is none.
mlir::FailureOr<mlir::linalg::GenericOp> toGeneric(mlir::linalg::LinalgOp op);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_THREADLOOPS_H
