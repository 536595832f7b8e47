//===- Cuda.h - The cuda dialect --------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the dialect and its attributes; see CudaDialect.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_CUDA_CUDA_H
#define PENSTOCK_DIALECTS_CUDA_CUDA_H

#include "dialects/Kernel/Kernel.h"
#include "dialects/Pipeline/Pipeline.h"

#include "dialects/Cuda/CudaDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Cuda/CudaAttributes.h.inc"

namespace penstock::cuda {

/// A GPU architecture that code is made for.
struct GpuArch {
  /// As in "sm_90a".
  llvm::StringRef name;
  /// Compute capability times ten, 90; 0 for the emulated GPU.
  unsigned number;
  /// 'a' where the code runs on no later architecture, else 0.
  char feature;
  /// The version of PTX that it needs at least, times ten.
  unsigned ptx;
};

/// Returns the architecture of that name, or null.
const GpuArch *findGpuArch(llvm::StringRef name);

/// Returns the names of all of them, for messages.
std::string listGpuArchs();

/// The gpu.module of all kernels of a program.
inline constexpr llvm::StringLiteral kKernelsModule = "cuda_kernels";

/// A TargetAttr on that module: what the kernels, and the library calls
/// beside them, are for.
inline constexpr llvm::StringLiteral kKernelsTargetAttr = "cuda.target";

/// On a kernel that every class but the plain mapping leaves alone.
inline constexpr llvm::StringLiteral kPlainAttr = "cuda.plain";

} // namespace penstock::cuda

#endif // PENSTOCK_DIALECTS_CUDA_CUDA_H
