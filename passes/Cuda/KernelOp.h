//===- KernelOp.h - The op that a kernel was made of ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An outlined kernel is one op. The class that fits the op maps it to threads.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_KERNELOP_H
#define PENSTOCK_PASSES_CUDA_KERNELOP_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// Returns the op that the kernel was made of, the only one that is not pure.
/// Emits an error if there is none, or more than one.
mlir::FailureOr<mlir::Operation *> getKernelOp(mlir::gpu::GPUFuncOp kernel);

/// Calls `map` with the op of each kernel that no pass has mapped to threads
/// yet, then gives launches the sizes of their kernels. Fails where `map` does.
mlir::LogicalResult
mapKernels(mlir::Operation *module,
           llvm::function_ref<mlir::LogicalResult(mlir::gpu::GPUFuncOp,
                                                  mlir::Operation *)>
               map);

/// Calls `map` with the op of each of these kernels that is elementwise, with
/// neighboring loops joined where all buffers allow it. Not of kernels that are
/// to be plain.
mlir::LogicalResult mapElementwiseKernels(
    mlir::Operation *module,
    llvm::function_ref<mlir::LogicalResult(mlir::gpu::GPUFuncOp,
                                           mlir::linalg::GenericOp)>
        map);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_KERNELOP_H
