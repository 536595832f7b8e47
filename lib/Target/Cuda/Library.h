//===- Library.h - What the libraries of a GPU compute ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans and descriptors of products (cuBLASLt) and convolutions (cuDNN), for
// the target.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_TARGET_CUDA_LIBRARY_H
#define PENSTOCK_LIB_TARGET_CUDA_LIBRARY_H

#include "dialects/Cuda/Cuda.h"
#include "penstock/Target/Target.h"

namespace penstock::cuda {

/// Plans a product; fails with a reason where no call of cuBLASLt computes it.
mlir::FailureOr<LibraryPlan> planProduct(TargetAttr target, kernel::GemmOp gemm,
                                         std::string &reason);

/// Returns the descriptor of a product that has a config.
std::optional<CallDescriptor> describeProduct(kernel::GemmOp gemm);

/// Plans a convolution: an engine and its scratch where cuDNN is installed, or
/// else a budget for the runtime to choose one. Keeps `config` if there is one.
/// Fails with a reason where no engine computes it.
mlir::FailureOr<LibraryPlan>
planConvolution(TargetAttr target, const kernel::ConvolutionShape &shape,
                ConvAttr config, bool isDirect, std::string &reason);

/// Returns the descriptor of a convolution that has a config.
std::optional<CallDescriptor> describeConvolution(kernel::ConvOp conv);

} // namespace penstock::cuda

#endif // PENSTOCK_LIB_TARGET_CUDA_LIBRARY_H
