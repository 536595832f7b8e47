//===- RowGroups.h - Which ops may share a loop over rows -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of ops on buffers: how each uses its operands row by row, which of them may
// go through the rows together, and how many rows at once.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_ROWGROUPS_H
#define PENSTOCK_PASSES_KERNELS_ROWGROUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// How an operand's buffer is used by an op whose first loops, `depth` of them,
/// number the rows. Without such loops there is one row, which has it all.
enum class RowAccess {
  Row,    // Their indices are its first ones: a row of its own for each.
  Fixed,  // They do not occur: all rows use the same.
  Sliced, // Some are indices of it, as of a mask.
  Other
};

RowAccess getRowAccess(mlir::linalg::GenericOp op, mlir::OpOperand &operand,
                       unsigned depth);

/// Returns whether `later` may run on row i right after `earlier` did, for all
/// rows in turn: where one writes what the other touches, both do so by rows of
/// the same buffer.
bool agreeByRows(mlir::linalg::GenericOp earlier, mlir::linalg::GenericOp later,
                 unsigned depth);

/// Iterations of `op` per row.
int64_t getRowSize(mlir::linalg::GenericOp op, unsigned depth);

/// Neighboring ops over the same rows.
struct RowGroup {
  llvm::SmallVector<mlir::linalg::GenericOp> ops;
  /// The number of loops around the rows.
  unsigned depth = 1;
  /// True if an op adds up over the rows: they are taken one after the other.
  bool isSum = false;
  /// How many rows of the innermost loop are taken at once, a divisor of all.
  int64_t block = 1;
};

/// Those in the entry block that gain from a common loop, of at most
/// `mostOperations` (see KernelSize.h) or one op each.
std::vector<RowGroup> findRowGroups(mlir::func::FuncOp function,
                                    int64_t threads, int64_t mostOperations);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_ROWGROUPS_H
