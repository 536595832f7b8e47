//===- KernelClass.h - Names for what kernels do ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile shows kernels by name, and the name says what kind of loop it is.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_KERNELCLASS_H
#define PENSTOCK_PASSES_KERNELS_KERNELCLASS_H

#include "mlir/IR/Operation.h"

namespace penstock {

/// Returns what the loop that becomes a kernel is called.
llvm::StringRef getKernelClass(mlir::Operation *op);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_KERNELCLASS_H
