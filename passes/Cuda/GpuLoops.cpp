//===- GpuLoops.cpp - Parallel loops become threads -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain mapping, which works for everything: an iteration of the parallel
// loops is a thread, and whatever else there is to do the thread does in order.
// It is the reference for mappings that are faster for some ops.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/ScalarBody.h"
#include "passes/Cuda/ThreadLoops.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPULOOPS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

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

LogicalResult KernelMapper::mapGeneric(linalg::GenericOp generic) {
  SmallVector<int64_t> sizes = generic.getStaticLoopRanges();
  SmallVector<unsigned> dims = getThreadLoops(generic);
  llvm::erase_if(dims, [&](unsigned dim) { return sizes[dim] == 1; });
  bool isOnce = llvm::all_of(sizes, [](int64_t size) { return size == 1; });
  if (dims.empty() && !isOnce)
    return mapSerial();
  SmallVector<int64_t> counts;
  for (unsigned dim : dims)
    counts.push_back(sizes[dim]);
  FailureOr<SmallVector<Value>> numbers =
      createThreads(builder, loc, kernel, counts);
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
  SmallVector<int64_t> counts;
  for (auto [from, to, step] : llvm::zip_equal(*lower, *upper, *steps))
    counts.push_back((to - from + step - 1) / step);
  FailureOr<SmallVector<Value>> numbers =
      createThreads(builder, loc, kernel, counts);
  if (failed(numbers))
    return failure();
  for (auto [number, from, step] : llvm::zip_equal(*numbers, *lower, *steps)) {
    if (step != 1)
      number = arith::MulIOp::create(builder, loc, number, index(step));
    if (from != 0)
      number = arith::AddIOp::create(builder, loc, number, index(from));
  }
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

struct GpuLoopsPass : penstock::impl::PipelineGpuLoopsBase<GpuLoopsPass> {
  void runOnOperation() override {
    auto map = [](gpu::GPUFuncOp kernel, Operation *op) {
      return KernelMapper(kernel, op).map();
    };
    if (failed(mapKernels(getOperation(), map)))
      return signalPassFailure();
    // No class is left to be chosen.
    getOperation()->walk(
        [](gpu::GPUFuncOp kernel) { kernel->removeAttr(cuda::kPlainAttr); });
  }
};

} // namespace
