//===- LaunchSizes.cpp - Grid and block of kernels ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LaunchSizes.h.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/LaunchSizes.h"

#include "dialects/Kernel/Kernel.h"
#include "passes/Cuda/ScalarBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

FailureOr<SmallVector<Value>>
penstock::createThreads(OpBuilder &builder, Location loc, gpu::GPUFuncOp kernel,
                        ArrayRef<int64_t> counts) {
  int64_t total = ShapedType::getNumElements(counts);
  int64_t blocks = (total + kBlockThreads - 1) / kBlockThreads;
  if (failed(setLaunchSizes(kernel, blocks, kBlockThreads)))
    return failure();
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  Value number = arith::AddIOp::create(
      builder, loc,
      arith::MulIOp::create(builder, loc, block, index(kBlockThreads)), thread);
  if (total % kBlockThreads) {
    Value isIteration = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, number, index(total));
    auto guard = scf::IfOp::create(builder, loc, isIteration);
    builder.setInsertionPointToStart(guard.thenBlock());
  }
  return delinearize(builder, loc, number, counts);
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
