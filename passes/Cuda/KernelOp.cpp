//===- KernelOp.cpp - The op that a kernel was made of --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See KernelOp.h.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/KernelOp.h"

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/ThreadLoops.h"
#include "passes/Kernels/CollapseLoops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace penstock;

FailureOr<Operation *> penstock::getKernelOp(gpu::GPUFuncOp kernel) {
  Operation *result = nullptr;
  for (Operation &op : kernel.front().without_terminator()) {
    if (isPure(&op) || isa<memref::GetGlobalOp>(op))
      continue;
    if (result)
      return op.emitOpError("internal error: a kernel of more than one loop");
    result = &op;
  }
  if (!result)
    return kernel.emitOpError("internal error: a kernel without a loop");
  return result;
}

LogicalResult penstock::mapKernels(
    Operation *module,
    function_ref<LogicalResult(gpu::GPUFuncOp, Operation *)> map) {
  WalkResult result = module->walk([&](gpu::GPUFuncOp kernel) -> WalkResult {
    if (!kernel.isKernel() || isMapped(kernel))
      return WalkResult::advance();
    FailureOr<Operation *> op = getKernelOp(kernel);
    if (failed(op))
      return failure();
    return map(kernel, *op);
  });
  if (result.wasInterrupted())
    return failure();
  updateLaunches(cast<ModuleOp>(module));
  return success();
}

LogicalResult penstock::mapElementwiseKernels(
    Operation *module,
    function_ref<LogicalResult(gpu::GPUFuncOp, linalg::GenericOp)> map) {
  IRRewriter rewriter(module->getContext());
  return mapKernels(module, [&](gpu::GPUFuncOp kernel, Operation *op) {
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (!structured || structured.getNumReductionLoops() ||
        kernel->hasAttr(cuda::kPlainAttr))
      return success();
    FailureOr<linalg::GenericOp> generic = toGeneric(structured);
    if (failed(generic))
      return LogicalResult(failure());
    return map(kernel, collapseParallelLoops(rewriter, *generic));
  });
}
