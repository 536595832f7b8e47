//===- GpuLoops.cpp - Parallel loops become threads -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain mapping, which works for everything: an iteration of the parallel
// loops is a thread, and whatever else there is to do the thread does in order.
// It is the reference for mappings that are faster for some ops.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/ThreadLoops.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPULOOPS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// One of the loops that are divided over the threads.
struct ThreadLoop {
  int64_t lower = 0, step = 1, count = 1;
};

/// Maps the op of one kernel.
class KernelMapper {
public:
  KernelMapper(gpu::GPUFuncOp kernel, Operation *op)
      : builder(op), loc(op->getLoc()), kernel(kernel), op(op) {}

  LogicalResult map();

private:
  LogicalResult mapGeneric(linalg::GenericOp generic);
  LogicalResult mapForall(scf::ForallOp forall);
  LogicalResult mapSerial();
  /// Makes a thread of each iteration of the loops, sets the sizes of the
  /// kernel, and the insertion point to what a thread does. Returns the indices
  /// of the loops there.
  FailureOr<SmallVector<Value>> createThreads(ArrayRef<ThreadLoop> loops);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder builder;
  Location loc;
  gpu::GPUFuncOp kernel;
  Operation *op;
};

LogicalResult KernelMapper::map() {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    FailureOr<linalg::GenericOp> generic = toGeneric(structured);
    if (failed(generic))
      return failure();
    op = *generic;
    builder.setInsertionPoint(op);
    return mapGeneric(*generic);
  }
  if (auto forall = dyn_cast<scf::ForallOp>(op))
    return mapForall(forall);
  return mapSerial();
}

FailureOr<SmallVector<Value>>
KernelMapper::createThreads(ArrayRef<ThreadLoop> loops) {
  int64_t total = 1;
  for (const ThreadLoop &loop : loops)
    total *= loop.count;
  int64_t blocks = (total + kBlockThreads - 1) / kBlockThreads;
  if (failed(setLaunchSizes(kernel, blocks, kBlockThreads)))
    return failure();
  Value block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  Value rest = arith::AddIOp::create(
      builder, loc,
      arith::MulIOp::create(builder, loc, block, index(kBlockThreads)), thread);
  if (total % kBlockThreads) {
    Value isIteration = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, rest, index(total));
    auto guard = scf::IfOp::create(builder, loc, isIteration);
    builder.setInsertionPointToStart(guard.thenBlock());
  }
  SmallVector<Value> indices(loops.size());
  for (size_t i = loops.size(); i-- > 0;) {
    const ThreadLoop &loop = loops[i];
    Value number = rest;
    if (i > 0) {
      number = arith::RemUIOp::create(builder, loc, rest, index(loop.count));
      rest = arith::DivUIOp::create(builder, loc, rest, index(loop.count));
    }
    if (loop.step != 1)
      number = arith::MulIOp::create(builder, loc, number, index(loop.step));
    if (loop.lower != 0)
      number = arith::AddIOp::create(builder, loc, number, index(loop.lower));
    indices[i] = number;
  }
  return indices;
}

LogicalResult KernelMapper::mapGeneric(linalg::GenericOp generic) {
  SmallVector<int64_t> sizes = generic.getStaticLoopRanges();
  SmallVector<unsigned> dims = getThreadLoops(generic);
  llvm::erase_if(dims, [&](unsigned dim) { return sizes[dim] == 1; });
  bool isOnce = llvm::all_of(sizes, [](int64_t size) { return size == 1; });
  if (dims.empty() && !isOnce)
    return mapSerial();
  SmallVector<ThreadLoop> loops;
  for (unsigned dim : dims)
    loops.push_back({0, 1, sizes[dim]});
  FailureOr<SmallVector<Value>> numbers = createThreads(loops);
  if (failed(numbers))
    return failure();
  SmallVector<Value> indices(sizes.size());
  for (auto [dim, number] : llvm::zip_equal(dims, *numbers))
    indices[dim] = number;
  writeThreadLoops(builder, generic, indices);
  generic.erase();
  return success();
}

LogicalResult KernelMapper::mapForall(scf::ForallOp forall) {
  std::optional<SmallVector<int64_t>> lower =
      getConstantIntValues(forall.getMixedLowerBound());
  std::optional<SmallVector<int64_t>> upper =
      getConstantIntValues(forall.getMixedUpperBound());
  std::optional<SmallVector<int64_t>> steps =
      getConstantIntValues(forall.getMixedStep());
  if (!lower || !upper || !steps || forall.getNumResults() != 0)
    return forall.emitOpError("has no form as a GPU kernel: its bounds are not "
                              "constant, or it has results");
  SmallVector<ThreadLoop> loops;
  for (auto [from, to, step] : llvm::zip_equal(*lower, *upper, *steps))
    loops.push_back({from, step, (to - from + step - 1) / step});
  FailureOr<SmallVector<Value>> numbers = createThreads(loops);
  if (failed(numbers))
    return failure();
  IRMapping mapping;
  mapping.map(forall.getInductionVars(), *numbers);
  for (Operation &inner : forall.getBody()->without_terminator())
    builder.clone(inner, mapping);
  forall.erase();
  return writeThreadLoops(kernel);
}

LogicalResult KernelMapper::mapSerial() {
  op->emitRemark("serial kernel: no loop of it is known to be parallel, so it "
                 "runs on one thread");
  if (failed(setLaunchSizes(kernel, 1, 1)))
    return failure();
  return writeThreadLoops(kernel);
}

/// The op that the kernel was made of.
FailureOr<Operation *> getOp(gpu::GPUFuncOp kernel) {
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

struct GpuLoopsPass : penstock::impl::PipelineGpuLoopsBase<GpuLoopsPass> {
  void runOnOperation() override {
    WalkResult result =
        getOperation().walk([&](gpu::GPUFuncOp kernel) -> WalkResult {
          if (!kernel.isKernel() || isMapped(kernel))
            return WalkResult::advance();
          FailureOr<Operation *> op = getOp(kernel);
          if (failed(op))
            return failure();
          return KernelMapper(kernel, *op).map();
        });
    if (result.wasInterrupted())
      return signalPassFailure();
    updateLaunches(getOperation());
  }
};

} // namespace
