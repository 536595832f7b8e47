//===- GpuScatters.cpp - Warps that look for their targets ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that goes through all indices of a scatter to find those of its own
// targets mostly reads what it skips. The lanes of a warp have one owner: each
// reads another index, a vote says which of 32 are theirs, and these are added
// one after the other, a column per lane. Every place gets its terms in their
// order, without a sort and without memory for one.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/RowTeams.h"
#include "passes/Cuda/ScalarBody.h"
#include "passes/Cuda/ThreadLoops.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUSCATTERS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Indices of a loop that are worth a vote.
constexpr int64_t kFewestIndices = 4;

/// Maps a forall that pipeline-parallel-loops has made of a scatter: over
/// owners, then over the elements of a row.
class ScatterMapper {
public:
  ScatterMapper(gpu::GPUFuncOp kernel, scf::ForallOp forall)
      : builder(forall), loc(forall.getLoc()), kernel(kernel), forall(forall) {}

  /// Returns whether the forall is one, with indices that are the same for all
  /// elements of a row.
  bool isScatter();
  LogicalResult map();

private:
  bool isGuard(scf::IfOp op);
  bool isNestOfLoops();
  bool dependsOnElement(Value value);
  void write(Block &from, IRMapping mapping);
  void writeSearch(IRMapping mapping);
  Value writeGuard(IRMapping &mapping, Value counter);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder builder;
  Location loc;
  gpu::GPUFuncOp kernel;
  scf::ForallOp forall;
  /// The innermost loop, over indices, and what an owner does.
  scf::ForOp loop;
  scf::IfOp guard;
  int64_t begin = 0, end = 0;
  /// The lane, and whether it has an element of the row.
  Value lane, hasElement;
};

bool ScatterMapper::isGuard(scf::IfOp op) {
  auto compare = op.getCondition().getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
         compare.getLhs().getDefiningOp<arith::RemUIOp>() &&
         compare.getRhs() == forall.getInductionVar(0) &&
         forall.getInductionVar(0).hasOneUse();
}

/// Returns whether a value of the loop follows from the counters of elements.
bool ScatterMapper::dependsOnElement(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == forall.getBody() &&
           argument.getArgNumber() != 0;
  Operation *producer = value.getDefiningOp();
  return forall->isProperAncestor(producer) &&
         (producer->getNumRegions() != 0 ||
          llvm::any_of(producer->getOperands(),
                       [&](Value each) { return dependsOnElement(each); }));
}

/// Returns whether there is nothing but loops of constant bounds around the
/// guard, and what only computes.
bool ScatterMapper::isNestOfLoops() {
  for (Operation *inner = loop; inner != forall; inner = inner->getParentOp()) {
    auto around = dyn_cast<scf::ForOp>(inner);
    if (!around || around.getNumResults() ||
        !getConstantIntValue(around.getLowerBound()) ||
        !getConstantIntValue(around.getUpperBound()) ||
        !getConstantIntValue(around.getStep()))
      return false;
    for (Operation &op : *inner->getBlock())
      if (&op != inner && !isMemoryEffectFree(&op))
        return false;
  }
  return true;
}

bool ScatterMapper::isScatter() {
  std::optional<SmallVector<int64_t>> lower =
      getConstantIntValues(forall.getMixedLowerBound());
  std::optional<SmallVector<int64_t>> steps =
      getConstantIntValues(forall.getMixedStep());
  if (!lower || !steps || !getConstantIntValues(forall.getMixedUpperBound()) ||
      llvm::any_of(*lower, [](int64_t from) { return from != 0; }) ||
      llvm::any_of(*steps, [](int64_t step) { return step != 1; }) ||
      forall.getNumResults() || forall.getMapping())
    return false;
  forall.walk([&](scf::IfOp op) {
    if (isGuard(op))
      guard = op;
  });
  loop = guard ? dyn_cast<scf::ForOp>(guard->getParentOp()) : scf::ForOp();
  if (!loop || !isNestOfLoops() || guard.elseBlock() ||
      guard->getNextNode() != loop.getBody()->getTerminator() ||
      getConstantIntValue(loop.getStep()) != 1)
    return false;
  begin = *getConstantIntValue(loop.getLowerBound());
  end = *getConstantIntValue(loop.getUpperBound());
  if (end - begin < kFewestIndices)
    return false;
  // Other lanes do for this one all that precedes the guard.
  for (Operation &op : loop.getBody()->getOperations()) {
    if (&op == guard)
      break;
    bool isRead = isMemoryEffectFree(&op) || isa<memref::LoadOp>(op);
    if (!isRead || op.getNumRegions() ||
        llvm::any_of(op.getOperands(),
                     [&](Value each) { return dependsOnElement(each); }))
      return false;
  }
  return true;
}

/// Computes up to the guard for one index. Returns its condition.
Value ScatterMapper::writeGuard(IRMapping &mapping, Value counter) {
  mapping.map(loop.getInductionVar(), counter);
  for (Operation &op : loop.getBody()->getOperations()) {
    if (&op == guard)
      break;
    builder.clone(op, mapping);
  }
  return mapping.lookup(guard.getCondition());
}

void ScatterMapper::writeSearch(IRMapping mapping) {
  OpBuilder::InsertionGuard outside(builder);
  Type i1 = builder.getI1Type(), i32 = builder.getI32Type();
  auto number = [&](int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };

  // 1. An index per lane.
  auto chunks = scf::ForOp::create(builder, loc, index(begin), index(end),
                                   index(kWarpThreads));
  builder.setInsertionPointToStart(chunks.getBody());
  Value first = chunks.getInductionVar();
  Value own = arith::AddIOp::create(builder, loc, first, lane);
  Value isIndex = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                        own, index(end));
  auto look = scf::IfOp::create(builder, loc, i1, isIndex,
                                /*withElseRegion=*/true);
  builder.setInsertionPointToStart(look.thenBlock());
  IRMapping ofLane = mapping;
  scf::YieldOp::create(builder, loc, writeGuard(ofLane, own));
  builder.setInsertionPointToStart(look.elseBlock());
  scf::YieldOp::create(
      builder, loc,
      arith::ConstantIntOp::create(builder, loc, 0, 1).getResult());
  builder.setInsertionPointAfter(look);
  Value found =
      NVVM::VoteSyncOp::create(builder, loc, i32, number(-1), look.getResult(0),
                               NVVM::VoteSyncKind::ballot);

  // 2. Those of the warp, in their order.
  auto adding = scf::WhileOp::create(
      builder, loc, TypeRange(i32), ValueRange(found),
      [&](OpBuilder &, Location, ValueRange left) {
        Value isLeft = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ne, left[0], number(0));
        scf::ConditionOp::create(builder, loc, isLeft, left);
      },
      [](OpBuilder &, Location, ValueRange) {});
  Block *after = adding.getAfterBody();
  builder.setInsertionPointToStart(after);
  Value left = after->getArgument(0);
  Value distance = LLVM::CountTrailingZerosOp::create(builder, loc, i32, left,
                                                      /*is_zero_poison=*/true);
  Value counter = arith::AddIOp::create(
      builder, loc, first,
      arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                   distance));
  if (hasElement) {
    auto element = scf::IfOp::create(builder, loc, hasElement);
    builder.setInsertionPointToStart(element.thenBlock());
  }
  writeGuard(mapping, counter);
  for (Operation &op : guard.thenBlock()->without_terminator())
    builder.clone(op, mapping);
  builder.setInsertionPointToEnd(after);
  Value without = arith::SubIOp::create(builder, loc, left, number(1));
  Value rest = arith::AndIOp::create(builder, loc, left, without);
  scf::YieldOp::create(builder, loc, rest);
}

/// Writes the loops around the search.
void ScatterMapper::write(Block &from, IRMapping mapping) {
  for (Operation &op : from.without_terminator()) {
    if (&op == loop) {
      writeSearch(mapping);
    } else if (op.isAncestor(loop)) {
      auto around = cast<scf::ForOp>(op);
      auto copy = scf::ForOp::create(
          builder, loc, mapping.lookupOrDefault(around.getLowerBound()),
          mapping.lookupOrDefault(around.getUpperBound()),
          mapping.lookupOrDefault(around.getStep()));
      OpBuilder::InsertionGuard outside(builder);
      builder.setInsertionPointToStart(copy.getBody());
      mapping.map(around.getInductionVar(), copy.getInductionVar());
      write(*around.getBody(), mapping);
    } else {
      builder.clone(op, mapping);
    }
  }
}

LogicalResult ScatterMapper::map() {
  // 1. A warp for each owner and part of a row.
  SmallVector<int64_t> counts =
      *getConstantIntValues(forall.getMixedUpperBound());
  int64_t owners = counts.front();
  counts.erase(counts.begin());
  int64_t elements = ShapedType::getNumElements(counts);
  int64_t parts = (elements + kWarpThreads - 1) / kWarpThreads;
  FailureOr<SmallVector<Value>> numbers =
      createThreads(builder, loc, kernel, {owners, parts, kWarpThreads});
  if (failed(numbers))
    return failure();
  lane = (*numbers)[2];
  Value element = arith::AddIOp::create(
      builder, loc,
      arith::MulIOp::create(builder, loc, (*numbers)[1], index(kWarpThreads)),
      lane);
  if (elements % kWarpThreads)
    hasElement = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       element, index(elements));

  // 2. The loops.
  SmallVector<Value> counters{(*numbers)[0]};
  if (!counts.empty())
    llvm::append_range(counters, delinearize(builder, loc, element, counts));
  IRMapping mapping;
  mapping.map(forall.getInductionVars(), counters);
  write(*forall.getBody(), mapping);
  forall.erase();
  return writeThreadLoops(kernel);
}

struct GpuScattersPass
    : penstock::impl::PipelineGpuScattersBase<GpuScattersPass> {
  void runOnOperation() override {
    auto map = [](gpu::GPUFuncOp kernel, Operation *op) {
      auto forall = dyn_cast<scf::ForallOp>(op);
      if (!forall || kernel->hasAttr(cuda::kPlainAttr))
        return success();
      ScatterMapper mapper(kernel, forall);
      return mapper.isScatter() ? mapper.map() : success();
    };
    if (failed(mapKernels(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
