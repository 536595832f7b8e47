//===- LaunchSizes.cpp - Grid and block of kernels ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LaunchSizes.h.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/LaunchSizes.h"

#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace penstock;

bool penstock::isMapped(gpu::GPUFuncOp kernel) {
  return kernel.getKnownGridSize().has_value();
}

LogicalResult penstock::setLaunchSizes(gpu::GPUFuncOp kernel, int64_t blocks,
                                       int64_t threads) {
  if (blocks > INT32_MAX)
    return kernel.emitError("needs ")
           << blocks << " blocks of " << threads
           << " threads; a grid has at most " << INT32_MAX
           << ": reduce the size of the microbatch";
  auto along = [](int64_t size) {
    return SmallVector<int32_t>{static_cast<int32_t>(size), 1, 1};
  };
  kernel.setKnownGridSize(along(blocks));
  kernel.setKnownBlockSize(along(threads));
  return success();
}

void penstock::updateLaunches(ModuleOp module) {
  SymbolTableCollection symbols;
  module.walk([&](kernel::LaunchOp launch) {
    auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
        launch, launch.getKernelAttr());
    if (!kernel || !isMapped(kernel))
      return;
    launch.setGrid(llvm::to_vector_of<int64_t>(*kernel.getKnownGridSize()));
    launch.setBlock(llvm::to_vector_of<int64_t>(*kernel.getKnownBlockSize()));
  });
}
