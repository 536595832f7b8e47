//===- ParallelLoops.cpp - Loops whose iterations share no element --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Composites such as top-k are loops over rows around a search within the row.
// A CPU runs them as they are; on a GPU each row is a thread, if no row writes
// what another one touches.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/RowThreads.h"
#include "passes/Cuda/TargetOwners.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPARALLELLOOPS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// An access of an op in a loop to a buffer from outside of the loop.
struct Access {
  Value buffer;
  bool writes;
  /// True, by dimension of the buffer, if the counter of the loop is its index.
  SmallVector<bool> isCounter;
};

/// Collects what the body of a loop touches.
class AccessCollector {
public:
  explicit AccessCollector(scf::ForOp loop) : loop(loop) {}

  /// Fails where an op does something else with memory.
  LogicalResult collect();

  SmallVector<Access> accesses;

private:
  void add(Value buffer, ValueRange indices, bool writes);
  LogicalResult addWhole(Value buffer, bool writes);
  LogicalResult add(Operation *op);
  bool isOutside(Value value) {
    return !loop.getRegion().isAncestor(value.getParentRegion());
  }

  scf::ForOp loop;
};

void AccessCollector::add(Value buffer, ValueRange indices, bool writes) {
  Access access{buffer, writes, {}};
  for (Value index : indices)
    access.isCounter.push_back(index == loop.getInductionVar());
  accesses.push_back(std::move(access));
}

/// All of a buffer, which may be a slice that is taken within the loop.
LogicalResult AccessCollector::addWhole(Value buffer, bool writes) {
  if (isOutside(buffer)) {
    accesses.push_back(
        {buffer, writes,
         SmallVector<bool>(cast<MemRefType>(buffer.getType()).getRank())});
    return success();
  }
  auto slice = buffer.getDefiningOp<memref::SubViewOp>();
  if (!slice || !isOutside(slice.getSource()))
    return failure();
  Access access{slice.getSource(), writes, {}};
  for (auto [offset, size] :
       llvm::zip_equal(slice.getMixedOffsets(), slice.getMixedSizes()))
    access.isCounter.push_back(dyn_cast<Value>(offset) ==
                                   loop.getInductionVar() &&
                               isConstantIntValue(size, 1));
  accesses.push_back(std::move(access));
  return success();
}

LogicalResult AccessCollector::add(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    if (isOutside(load.getMemRef()))
      add(load.getMemRef(), load.getIndices(), /*writes=*/false);
    else
      return addWhole(load.getMemRef(), /*writes=*/false);
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    if (isOutside(store.getMemRef()))
      add(store.getMemRef(), store.getIndices(), /*writes=*/true);
    else
      return addWhole(store.getMemRef(), /*writes=*/true);
    return success();
  }
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<MemRefType>(operand.get().getType()) &&
          failed(addWhole(operand.get(), structured.isDpsInit(&operand))))
        return failure();
    return success();
  }
  return success(isMemoryEffectFree(op) ||
                 op->hasTrait<OpTrait::HasRecursiveMemoryEffects>());
}

LogicalResult AccessCollector::collect() {
  WalkResult result =
      loop.getBody()->walk([&](Operation *op) { return WalkResult(add(op)); });
  return failure(result.wasInterrupted());
}

/// Returns whether no iteration of the loop writes what another one touches.
bool isParallel(scf::ForOp loop) {
  if (loop.getNumResults() != 0 || !getConstantIntValue(loop.getLowerBound()) ||
      !getConstantIntValue(loop.getUpperBound()) ||
      !getConstantIntValue(loop.getStep()))
    return false;
  AccessCollector collector(loop);
  if (failed(collector.collect()))
    return false;
  for (const Access &write : collector.accesses) {
    if (!write.writes)
      continue;
    // The dimensions along which all accesses go with the counter.
    SmallVector<bool> common = write.isCounter;
    for (const Access &access : collector.accesses) {
      if (!mayOverlap(write.buffer, access.buffer))
        continue;
      if (access.buffer != write.buffer)
        return false;
      for (auto [dim, isCounter] : llvm::enumerate(access.isCounter))
        common[dim] = common[dim] && isCounter;
    }
    if (!llvm::is_contained(common, true))
      return false;
  }
  return true;
}

/// The loop that is all of the body of `loop`, besides arithmetic before it.
scf::ForOp getOnlyLoop(scf::ForOp loop) {
  scf::ForOp only;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (only)
      return {};
    if (auto inner = dyn_cast<scf::ForOp>(op))
      only = inner;
    else if (!isPure(&op))
      return {};
  }
  return only;
}

bool loadsOrStores(scf::ForOp loop) {
  return loop
      .walk<WalkOrder::PreOrder>([](Operation *op) {
        if (isa<linalg::LinalgOp>(op))
          return WalkResult::skip();
        return isa<memref::LoadOp, memref::StoreOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

struct ParallelLoopsPass
    : penstock::impl::PipelineParallelLoopsBase<ParallelLoopsPass> {
  using PipelineParallelLoopsBase::PipelineParallelLoopsBase;

  /// True if kernels are as simple as they can be.
  bool isPlain = false;

  /// Replaces `loop`, and those nested in it as far as they are parallel.
  void convert(scf::ForOp loop) {
    // 1. The nest.
    SmallVector<scf::ForOp> nest;
    for (scf::ForOp next = loop; next && isParallel(next);
         next = getOnlyLoop(next))
      nest.push_back(next);
    if (nest.empty()) {
      distributeRows(loop);
      if (!isPlain)
        distributeTargets(loop);
      return;
    }

    // 2. Its counters.
    OpBuilder builder(loop);
    SmallVector<OpFoldResult> lower, upper, steps;
    for (scf::ForOp level : nest) {
      lower.push_back(getAsOpFoldResult(level.getLowerBound()));
      upper.push_back(getAsOpFoldResult(level.getUpperBound()));
      steps.push_back(getAsOpFoldResult(level.getStep()));
    }
    auto forall = scf::ForallOp::create(builder, loop.getLoc(), lower, upper,
                                        steps, ValueRange(), std::nullopt);

    // 3. Its bodies, from the outermost one.
    Operation *end = forall.getTerminator();
    for (auto [level, counter] :
         llvm::zip_equal(nest, forall.getInductionVars())) {
      level.getInductionVar().replaceAllUsesWith(counter);
      for (Operation &op :
           llvm::make_early_inc_range(level.getBody()->without_terminator()))
        if (!llvm::is_contained(nest, &op))
          op.moveBefore(end);
    }
    loop.erase();
  }

  void runOnOperation() override {
    if (!isStageFunction(getOperation(), kind))
      return;
    auto target =
        dyn_cast_or_null<cuda::TargetAttr>(pipeline::getTarget(getOperation()));
    isPlain = target && target.getPlain();
    SmallVector<scf::ForOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      if (!loadsOrStores(loop))
        return WalkResult::advance();
      loops.push_back(loop);
      return WalkResult::skip();
    });
    llvm::for_each(loops, [&](scf::ForOp loop) { convert(loop); });
  }
};

} // namespace
