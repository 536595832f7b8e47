//===- KernelSize.h - How long the code of a kernel becomes -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code generator takes more than linear time in the length of a function.
// So ops are only fused up to a number of operations.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_KERNELSIZE_H
#define PENSTOCK_PASSES_KERNELS_KERNELSIZE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// Returns the operations of the body of `op`, where a function of the dialect
/// `math` counts as 16: it becomes a polynomial.
int64_t countOperations(mlir::linalg::GenericOp op);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_KERNELSIZE_H
