//===- KernelClass.cpp - Names for what kernels do ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See KernelClass.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/KernelClass.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace penstock;

StringRef penstock::getKernelClass(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp) {
    WalkResult hasCases = op->walk([](scf::IndexSwitchOp) {
      return WalkResult::interrupt(); // Of weights that are updated alike.
    });
    return hasCases.wasInterrupted() ? "updates" : "rows";
  }
  WalkResult readsElsewhere = op->walk([](memref::LoadOp) {
    return WalkResult::interrupt(); // Gathers, windows.
  });
  if (readsElsewhere.wasInterrupted())
    return "indexed";
  return linalgOp.getNumReductionLoops() ? "reduction" : "elementwise";
}
