//===- LibraryConvolutions.h - What a library computes ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The question that a pass asks about a convolution while it is an op of nn.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_LIBRARYCONVOLUTIONS_H
#define PENSTOCK_PASSES_KERNELS_LIBRARYCONVOLUTIONS_H

#include "dialects/Nn/Convolution.h"

namespace penstock {

/// Returns whether the library of the op's target computes it on elements of
/// this type. If it does not, a remark says what becomes of the op instead, and
/// why.
bool takesConvolution(mlir::Operation *op, const nn::Convolution &conv,
                      mlir::Type element, llvm::StringRef instead);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_LIBRARYCONVOLUTIONS_H
