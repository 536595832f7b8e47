//===- ConvolutionLibrary.h - Convolutions by the library -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the vendor library computes a convolution fast, in which layout, and
// with how much scratch.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_CPU_CONVOLUTIONLIBRARY_H
#define PENSTOCK_TARGET_CPU_CONVOLUTIONLIBRARY_H

#include "dialects/Nn/Convolution.h"
#include "penstock/abi.h"

#include <optional>

namespace penstock {

/// As the runtime gets it, without the device and scratch. None where it has no
/// place for it, or the layout is not chosen.
std::optional<penstock_conv_descriptor>
describeConvolution(const nn::Convolution &conv);

/// The call that prepacks weights. None where the runtime has no place for it.
std::optional<penstock_conv_descriptor>
describePrepacking(nn::PrepackingAttr prepacking);

struct LibraryConvolution {
  /// As the runtime gets it, without the device.
  penstock_conv_descriptor descriptor;
  uint64_t scratchBytes;
  /// Of the weights in the library's own order; 0 where it reads them as they
  /// are.
  uint64_t prepackedBytes;
};

/// What the library makes of nn.conv or one of its gradients, on tensors or
/// buffers, with this many threads; a layout is chosen unless it has one. None
/// when it cannot be loaded or has no fast implementation; `reason`, if given,
/// says which.
std::optional<LibraryConvolution>
planLibraryConvolution(const nn::Convolution &conv, int64_t threads,
                       std::string *reason = nullptr);

/// The same of a convolution op; where there is none it is an error at the op.
llvm::FailureOr<LibraryConvolution>
requireLibraryConvolution(mlir::Operation *op, int64_t threads);

} // namespace penstock

#endif // PENSTOCK_TARGET_CPU_CONVOLUTIONLIBRARY_H
