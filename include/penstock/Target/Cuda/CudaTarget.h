//===- CudaTarget.h - CUDA devices ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the implementation of Target for #cuda.target.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_CUDA_CUDATARGET_H
#define PENSTOCK_TARGET_CUDA_CUDATARGET_H

#include "dialects/Cuda/Cuda.h"

namespace penstock {

/// Registers the dialect `cuda` and what the compiler asks of its devices.
void registerCudaTarget(mlir::DialectRegistry &registry);

} // namespace penstock

#endif // PENSTOCK_TARGET_CUDA_CUDATARGET_H
