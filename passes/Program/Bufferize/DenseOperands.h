//===- DenseOperands.h - Dense operands for library calls -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library's convolutions have no strides for parts of a buffer, as a
// concatenation along channels makes them; its products have but some.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_BUFFERIZE_DENSEOPERANDS_H
#define PENSTOCK_PASSES_PROGRAM_BUFFERIZE_DENSEOPERANDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {

/// Gives every convolution of a bufferised function whose operand is part of a
/// buffer a dense one, copied from it before and to it afterwards. So, too, a
/// product that is none for the library as its operands lie (every second
/// column of a matrix): loops would round otherwise than the library does where
/// the cut between two stages leaves a dense copy.
void makeOperandsDense(mlir::func::FuncOp function);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_BUFFERIZE_DENSEOPERANDS_H
