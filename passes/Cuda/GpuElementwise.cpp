//===- GpuElementwise.cpp - A vector of elements per thread ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory is fastest where a thread loads 128 bits by one instruction. Each
// element is computed by itself, as the plain mapping does.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Alignment.h"
#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/ScalarBody.h"
#include "passes/Cuda/ThreadLoops.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUELEMENTWISE
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Returns whether the operands of an elementwise op have vectors of `count`
/// elements along its last loop, where they move with it, at aligned addresses.
bool hasVectors(linalg::GenericOp op, int64_t count) {
  unsigned loops = op.getNumLoops();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t last = sizes.back();
  // One row may have a rest; several rows would not all be aligned then.
  bool isWhole = last % count == 0;
  if (last < count || (!isWhole && loops > 1))
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (!isa<MemRefType>(operand.get().getType()) ||
        !op.getMatchingIndexingMap(&operand).isFunctionOfDim(loops - 1))
      return true;
    return isDenseAlong(op, operand, loops - 1) &&
           isVectorAligned(operand.get(), count);
  });
}

/// Returns how many elements a thread has: as many as it loads at once of the
/// widest operand that moves along all loops, or fewer, but at least
/// kVectorElements, where rows or addresses demand it. 0: there are no vectors.
int64_t getVectorElements(linalg::GenericOp op) {
  unsigned loops = op.getNumLoops();
  if (getThreadLoops(op).size() != loops || loops == 0)
    return 0;
  int64_t widest = 1;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (type && op.getMatchingIndexingMap(&operand).isPermutation())
      widest = std::max(widest, getElementBytes(type.getElementType()));
  }
  for (int64_t count = kVectorBytes / widest; count >= kVectorElements;
       count /= 2)
    if (hasVectors(op, count))
      return count;
  return hasVectors(op, kVectorElements) ? kVectorElements : 0;
}

LogicalResult mapVectors(gpu::GPUFuncOp kernel, linalg::GenericOp op,
                         int64_t count) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> counts = op.getStaticLoopRanges();
  int64_t last = counts.back(), full = last / count, rest = last % count;
  counts.back() = full + (rest > 0);
  FailureOr<SmallVector<Value>> threads =
      createThreads(builder, loc, kernel, counts);
  if (failed(threads))
    return failure();
  SmallVector<Value> indices = *threads;
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  ScalarBody body(builder, op);
  unsigned along = op.getNumLoops() - 1;
  Value number = indices.back();
  indices.back() = arith::MulIOp::create(builder, loc, number, index(count));
  if (rest == 0) {
    body.writeVector(indices, along, count);
    op.erase();
    return success();
  }
  // The last thread has the elements that are no vector, one by one.
  Value isFull = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       number, index(full));
  auto branch =
      scf::IfOp::create(builder, loc, isFull, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  body.writeVector(indices, along, count);
  builder.setInsertionPointToStart(branch.elseBlock());
  for (int64_t i = 0; i < rest; ++i)
    body.writeElement({index(full * count + i)});
  op.erase();
  return success();
}

struct GpuElementwisePass
    : penstock::impl::PipelineGpuElementwiseBase<GpuElementwisePass> {
  void runOnOperation() override {
    auto map = [](gpu::GPUFuncOp kernel, linalg::GenericOp op) {
      int64_t count = getVectorElements(op);
      return count ? mapVectors(kernel, op, count) : success();
    };
    if (failed(mapElementwiseKernels(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
