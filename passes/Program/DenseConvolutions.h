//===- DenseConvolutions.h - Convolutions work on dense buffers -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library's convolutions have no strides for parts of a buffer, as a
// concatenation along channels makes them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DENSECONVOLUTIONS_H
#define PENSTOCK_PASSES_PROGRAM_DENSECONVOLUTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {

/// Gives every convolution of a bufferised function whose operand is part of a
/// buffer a dense one, copied from it before and to it afterwards.
void makeConvolutionsDense(mlir::func::FuncOp function);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DENSECONVOLUTIONS_H
