//===- PackTemporaries.h - One block of bytes for temporaries ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives the allocations of a function offsets in one block, so that those that
// are never alive together share memory.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_MEMORY_PACKTEMPORARIES_H
#define PENSTOCK_PASSES_PROGRAM_MEMORY_PACKTEMPORARIES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {

/// A cache line, and the widest vector.
inline constexpr int64_t kTemporaryAlignment = 64;

/// Replaces every memref.alloc of `function` by a view of a new last argument,
/// marked `pipeline.scratch`; none is added when nothing is allocated. Small
/// allocations inside an scf.forall become allocas there, as each iteration
/// needs its own. Fails, with a diagnostic, on dynamic sizes.
mlir::LogicalResult packTemporaries(mlir::func::FuncOp function);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_MEMORY_PACKTEMPORARIES_H
