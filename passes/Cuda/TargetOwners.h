//===- TargetOwners.h - Threads that own targets of a scatter ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that adds to places that it reads from memory is parallel if each
// thread goes through all of it, but adds only to places of its own. Reading
// indices is cheap beside adding, and every place gets its terms in their
// order.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_TARGETOWNERS_H
#define PENSTOCK_PASSES_CUDA_TARGETOWNERS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace penstock {

/// Makes an `scf.forall` over owners around `loop`, or adds a dimension to the
/// one that is around it. An owner skips the iterations that write elsewhere.
/// Returns whether the loop writes one buffer at places that its iterations
/// compute.
bool distributeTargets(mlir::scf::ForOp loop);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_TARGETOWNERS_H
