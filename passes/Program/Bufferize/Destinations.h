//===- Destinations.h - What tensors are written into -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before bufferization, which finds room for a tensor by what its op is said to
// write into.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_BUFFERIZE_DESTINATIONS_H
#define PENSTOCK_PASSES_PROGRAM_BUFFERIZE_DESTINATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {

/// Says for the ops of a kernel, whose body is on tensors and whose results are
/// materialized in buffers, what they write into, so that bufferization has
/// little to copy and no buffer is written by two.
void chooseDestinations(mlir::func::FuncOp kernel);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_BUFFERIZE_DESTINATIONS_H
