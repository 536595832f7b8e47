//===- LibraryCalls.h - Products and convolutions of a library --*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of pipeline-convert-pipeline-to-runtime that are about the matrix
// products and convolutions that a library computes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_LIBRARYCALLS_H
#define PENSTOCK_PASSES_RUNTIME_LIBRARYCALLS_H

#include "passes/Runtime/CallTable.h"
#include "passes/Runtime/RuntimeCalls.h"

namespace penstock {

/// Adds the library calls that each device makes, through the kernels that it
/// calls; of the program, and of its replay unless that is null.
mlir::LogicalResult collectLibraryCalls(mlir::ModuleOp root,
                                        mlir::ModuleOp replay, CallTable &gemms,
                                        CallTable &convs);

/// Puts a call of the runtime into the place of each.
mlir::LogicalResult convertLibraryCalls(RuntimeCalls &runtime,
                                        const CallTable &gemms,
                                        const CallTable &convs);

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_LIBRARYCALLS_H
