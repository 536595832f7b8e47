//===- HostLoops.h - What of a function the host does -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host calls libraries and launches kernels. It cannot load or store.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_HOSTLOOPS_H
#define PENSTOCK_PASSES_CUDA_HOSTLOOPS_H

#include "mlir/IR/Operation.h"

namespace penstock {

/// Describes the contents of an op, without the bodies of linalg ops.
struct HostContents {
  /// A call, which only the host can make.
  bool calls = false;
  /// A load, store or other use of memory.
  bool accesses = false;
};

HostContents getHostContents(mlir::Operation *op);

/// Returns whether the op becomes a kernel by itself.
bool isKernelOp(mlir::Operation *op);

/// Returns whether the host runs the regions of the op, around launches and
/// calls. Otherwise all of the op is part of one kernel.
bool isHostLoop(mlir::Operation *op);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_HOSTLOOPS_H
