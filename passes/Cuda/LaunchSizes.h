//===- LaunchSizes.h - Grid and block of kernels ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel is mapped to threads once, and knows its sizes from then on. Its
// launches have the same.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_LAUNCHSIZES_H
#define PENSTOCK_PASSES_CUDA_LAUNCHSIZES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace penstock {

/// Threads of a block of a kernel that needs no other number.
constexpr int64_t kBlockThreads = 128;

/// Returns whether a pass has mapped the kernel to threads.
bool isMapped(mlir::gpu::GPUFuncOp kernel);

/// Sets the sizes of a kernel, which count as mapped from then on. Emits an
/// error if there are more blocks than a grid can have.
mlir::LogicalResult setLaunchSizes(mlir::gpu::GPUFuncOp kernel, int64_t blocks,
                                   int64_t threads);

/// Makes a thread of each iteration of loops that run from 0 to `counts`, the
/// last one fastest, and sets the sizes of the kernel. Returns the iteration of
/// a thread; what it does goes to the insertion point then.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
createThreads(mlir::OpBuilder &builder, mlir::Location loc,
              mlir::gpu::GPUFuncOp kernel, mlir::ArrayRef<int64_t> counts);

/// Gives all launches the sizes of their kernels.
void updateLaunches(mlir::ModuleOp module);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_LAUNCHSIZES_H
