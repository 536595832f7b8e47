//===- FewLines.h - Long lines shared by many threads -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step along an axis needs the one before, so that a line is a thread's.
// Where there are few lines, each has to be divided.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_FEWLINES_H
#define PENSTOCK_PASSES_KERNELS_FEWLINES_H

#include "dialects/Nn/Nn.h"

namespace penstock {

/// Returns whether the lines of the input are so long and so few that parts of
/// them are added up first.
bool hasLongSums(nn::CumulativeSumOp op);

/// Writes the sums within parts of each line, the sums of the parts before, and
/// both added.
mlir::Value expandInParts(mlir::OpBuilder &builder, nn::CumulativeSumOp op);

/// Returns whether a GPU counts all pairs of elements faster than a thread of
/// each line finds one place after the other.
bool ranksFaster(nn::TopKOp op);

/// Writes the rank of each element, which is how many come before it, and for
/// each place the element with that rank.
mlir::Value expandByRank(mlir::OpBuilder &builder, nn::TopKOp op);

/// Emits true if (a, at i) comes before (b, at j) in the order of nn.top_k.
mlir::Value comesBefore(mlir::OpBuilder &builder, mlir::Location loc,
                        bool smallest, mlir::Value a, mlir::Value i,
                        mlir::Value b, mlir::Value j);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_FEWLINES_H
