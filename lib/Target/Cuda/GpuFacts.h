//===- GpuFacts.h - What a driver would say of GPUs -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN plans with them while no GPU is there.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_TARGET_CUDA_GPUFACTS_H
#define PENSTOCK_LIB_TARGET_CUDA_GPUFACTS_H

#include <string>

namespace penstock::cuda {

/// Returns the facts of a GPU of compute capability `arch` / 10, as the JSON
/// text that cuDNN takes; empty for an unknown one.
std::string getGpuFacts(int arch);

} // namespace penstock::cuda

#endif // PENSTOCK_LIB_TARGET_CUDA_GPUFACTS_H
