//===- HostLoops.cpp - What of a function the host does -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See HostLoops.h.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/HostLoops.h"

#include "passes/Cuda/Passes.h"

using namespace mlir;
using namespace penstock;

static bool isCall(Operation *op) {
  return isa<CallOpInterface>(op) ||
         isa_and_nonnull<kernel::KernelDialect, pipeline::PipelineDialect>(
             op->getDialect());
}

bool penstock::isKernelOp(Operation *op) {
  return isa<linalg::LinalgOp, scf::ForallOp, memref::CopyOp>(op);
}

HostContents penstock::getHostContents(Operation *root) {
  HostContents contents;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isCall(op))
      contents.calls = true;
    else if (op != root && isKernelOp(op))
      return WalkResult::skip();
    else if (!isMemoryEffectFree(op) &&
             !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      contents.accesses = true;
    return WalkResult::advance();
  });
  return contents;
}

bool penstock::isHostLoop(Operation *op) {
  if (op->getNumRegions() == 0 || isKernelOp(op))
    return false;
  HostContents contents = getHostContents(op);
  return contents.calls || !contents.accesses;
}
