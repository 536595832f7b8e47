//===- TargetOwners.cpp - Threads that own targets of a scatter -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See TargetOwners.h. Owner i of n has the places whose index is i modulo n.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/TargetOwners.h"

#include "passes/Cuda/RowThreads.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Threads that a loop should have, and the most owners: each of them reads all
/// of the indices.
constexpr int64_t kThreads = 1 << 16, kOwners = 1 << 12;

class TargetDistributor {
public:
  explicit TargetDistributor(scf::ForOp loop) : loop(loop) {}

  bool run();

private:
  bool collect();
  bool chooseIndex();
  void write();
  bool isOutside(Value value) {
    return !loop.getRegion().isAncestor(value.getParentRegion());
  }
  /// The buffer from outside that `buffer` is or is a slice of.
  Value getRoot(Value buffer);
  /// The index of an access to the buffer along dimension `dim`; null where it
  /// has several.
  static Value getIndex(Operation *access, unsigned dim);

  scf::ForOp loop;
  /// The buffer that the loop writes, and all accesses to it.
  Value target;
  SmallVector<Operation *> accesses;
  SmallVector<Value> read;
  /// The place that an iteration writes: an index of the target.
  unsigned dim = 0;
  Value place;
};

Value TargetDistributor::getRoot(Value buffer) {
  while (!isOutside(buffer)) {
    auto slice = buffer.getDefiningOp<memref::SubViewOp>();
    if (!slice)
      return {};
    buffer = slice.getSource();
  }
  return buffer;
}

/// Finds what the loop touches. Fails where it writes several buffers, or does
/// something else with memory.
bool TargetDistributor::collect() {
  SmallVector<Value> written;
  auto visit = [&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      read.push_back(getRoot(load.getMemRef()));
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      written.push_back(getRoot(store.getMemRef()));
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (OpOperand &operand : op->getOpOperands())
        if (isa<MemRefType>(operand.get().getType()))
          (generic.isDpsInit(&operand) ? written : read)
              .push_back(getRoot(operand.get()));
    } else if (!isMemoryEffectFree(op) &&
               !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>()) {
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  };
  if (loop.getNumResults() || loop.walk(visit).wasInterrupted() ||
      written.empty() || !written.front() || !llvm::all_equal(written))
    return false;
  target = written.front();
  for (Value buffer : read)
    if (!buffer || (buffer != target && mayOverlap(buffer, target)))
      return false;
  for (Operation *user : target.getUsers())
    if (loop->isProperAncestor(user))
      accesses.push_back(user);
  return true;
}

Value TargetDistributor::getIndex(Operation *access, unsigned dim) {
  if (auto load = dyn_cast<memref::LoadOp>(access))
    return load.getIndices()[dim];
  if (auto store = dyn_cast<memref::StoreOp>(access))
    return store.getIndices()[dim];
  if (auto slice = dyn_cast<memref::SubViewOp>(access))
    if (isConstantIntValue(slice.getMixedSizes()[dim], 1))
      return dyn_cast<Value>(slice.getMixedOffsets()[dim]);
  return {};
}

/// Chooses the longest dimension along which all accesses have one index, which
/// the block around them computes.
bool TargetDistributor::chooseIndex() {
  auto type = cast<MemRefType>(target.getType());
  Block *block = accesses.front()->getBlock();
  if (block->getTerminator()->getNumOperands())
    return false; // A skipped iteration would have nothing to pass on.
  int64_t longest = 1;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    Value index = getIndex(accesses.front(), axis);
    Operation *producer = index ? index.getDefiningOp() : nullptr;
    if (!producer || producer->getBlock() != block || !isPure(producer) ||
        type.getDimSize(axis) <= longest)
      continue;
    if (!llvm::all_of(accesses, [&](Operation *access) {
          return access->getBlock() == block && getIndex(access, axis) == index;
        }))
      continue;
    longest = type.getDimSize(axis);
    dim = axis;
    place = index;
  }
  return longest > 1;
}

void TargetDistributor::write() {
  // 1. Owners.
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto around = dyn_cast<scf::ForallOp>(loop->getParentOp());
  int64_t threads = 1;
  SmallVector<OpFoldResult> lower, upper, steps;
  if (around) {
    lower = around.getMixedLowerBound();
    upper = around.getMixedUpperBound();
    steps = around.getMixedStep();
    for (auto [from, to] : llvm::zip_equal(lower, upper)) {
      std::optional<int64_t> first = getConstantIntValue(from),
                             end = getConstantIntValue(to);
      if (!first || !end)
        return;
      threads *= *end - *first;
    }
  }
  int64_t owners =
      std::min({cast<MemRefType>(target.getType()).getDimSize(dim),
                std::max<int64_t>(kThreads / threads, 1), kOwners});
  owners = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(owners)));
  if (owners == 1)
    return;
  lower.insert(lower.begin(), builder.getIndexAttr(0));
  upper.insert(upper.begin(), builder.getIndexAttr(owners));
  steps.insert(steps.begin(), builder.getIndexAttr(1));
  if (around)
    builder.setInsertionPoint(around);
  auto forall = scf::ForallOp::create(builder, loc, lower, upper, steps,
                                      ValueRange(), std::nullopt);
  SmallVector<Value> counters = forall.getInductionVars();
  if (around) {
    for (auto [old, counter] : llvm::zip_equal(around.getInductionVars(),
                                               ArrayRef(counters).drop_front()))
      old.replaceAllUsesWith(counter);
    for (Operation &op :
         llvm::make_early_inc_range(around.getBody()->without_terminator()))
      op.moveBefore(forall.getTerminator());
    around.erase();
  } else {
    loop->moveBefore(forall.getTerminator());
  }

  // 2. What follows the place in an iteration is for its owner.
  Operation *producer = place.getDefiningOp();
  builder.setInsertionPointAfter(producer);
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value owner = arith::RemUIOp::create(builder, loc, place, index(owners));
  Value isMine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       owner, counters.front());
  auto guard = scf::IfOp::create(builder, loc, isMine);
  Operation *end = guard.thenBlock()->getTerminator();
  for (Operation *op = guard->getNextNode();
       !op->hasTrait<OpTrait::IsTerminator>();) {
    Operation *next = op->getNextNode();
    op->moveBefore(end);
    op = next;
  }
}

bool TargetDistributor::run() {
  if (!collect() || !chooseIndex())
    return false;
  write();
  return true;
}

} // namespace

bool penstock::distributeTargets(scf::ForOp loop) {
  return TargetDistributor(loop).run();
}
