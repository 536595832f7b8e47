//===- RowGroups.cpp - Which ops may share a loop over rows ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RowGroups.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/RowGroups.h"

#include "passes/Kernels/BufferRange.h"
#include "passes/Kernels/KernelSize.h"
#include "passes/Kernels/ReductionOrder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Rows of less than this many iterations cost more to loop over than they
/// gain, and buffers that fit into the first cache gain nothing.
constexpr int64_t smallestRow = 32, smallestBuffer = 8192;

/// A few operands of this many elements fit into the first cache: longer rows
/// are divided, where that is possible.
constexpr int64_t longRow = 4096;

/// Behind the last element of a row, a sum and a division wait for each other.
/// Where it is the processor that is waited for, not memory, short rows are
/// taken several at once, op by op: one computes while another waits. All that
/// they are read and written to stays in the first cache.
constexpr int64_t shortRow = 256, blockOfRows = 2048, mostRowsOfBlock = 16;

/// Blocks that every thread has at least.
constexpr int64_t blocksPerThread = 16;

using Group = SmallVector<linalg::GenericOp>;

} // namespace

RowAccess penstock::getRowAccess(linalg::GenericOp op, OpOperand &operand,
                                 unsigned depth) {
  unsigned found = 0;
  bool isLeading = true;
  ArrayRef<AffineExpr> results =
      op.getMatchingIndexingMap(&operand).getResults();
  for (auto [position, result] : llvm::enumerate(results)) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (dim && dim.getPosition() < depth) {
      isLeading &= dim.getPosition() == position;
      ++found;
    } else if (llvm::any_of(llvm::seq(depth), [&](unsigned row) {
                 return result.isFunctionOfDim(row);
               })) {
      return RowAccess::Other;
    }
  }
  if (!found && depth)
    return RowAccess::Fixed;
  return isLeading && found == depth ? RowAccess::Row : RowAccess::Sliced;
}

int64_t penstock::getRowSize(linalg::GenericOp op, unsigned depth) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  return ShapedType::getNumElements(ArrayRef(loops).drop_front(depth));
}

namespace {

/// Returns true if the first loops of `op` are all of this kind: parallel, or
/// reductions.
bool areRows(linalg::GenericOp op, unsigned depth,
             utils::IteratorType iterator) {
  return llvm::all_of(
      ArrayRef(op.getIteratorTypesArray()).take_front(depth),
      [&](utils::IteratorType other) { return other == iterator; });
}

/// Returns true if `op` adds up over the rows: the results that it writes
/// without their indices have a row of accumulators, each of which meets the
/// rows in their order. Along the vector there is no such order (see
/// VectorLoops).
bool sumsRows(linalg::GenericOp op, unsigned depth) {
  if (!areRows(op, depth, utils::IteratorType::reduction))
    return false;
  std::optional<unsigned> vector = chooseVectorDimension(op);
  return vector && llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.getMatchingIndexingMap(&init).isFunctionOfDim(*vector) &&
                  getRowAccess(op, init, depth) != RowAccess::Sliced;
         });
}

/// A candidate: its first loops go over rows, by which it writes everything, or
/// which it sums.
bool hasRows(linalg::GenericOp op, unsigned depth, bool inTurn) {
  if (op.getNumLoops() < depth || !op.hasPureBufferSemantics() ||
      op.hasDynamicShape())
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (getRowAccess(op, operand, depth) == RowAccess::Other)
      return false;
  // The number of the row would have to be passed on.
  WalkResult usesRow = op.getBody()->walk([&](linalg::IndexOp index) {
    return index.getDim() < depth ? WalkResult::interrupt()
                                  : WalkResult::advance();
  });
  if (usesRow.wasInterrupted())
    return false;
  if (!areRows(op, depth, utils::IteratorType::parallel))
    return inTurn && sumsRows(op, depth);
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return getRowAccess(op, init, depth) == RowAccess::Row;
  });
}

/// Arguments of a kernel do not overlap, except that a new weight may be bound
/// to the memory of the old one: element by element the same. Then nothing
/// reads the old weight any more once the new one is written, so only reading
/// comes before writing.
bool mayBeSame(Value read, Value written) {
  return isa<BlockArgument>(read) && isa<BlockArgument>(written) &&
         read.getType() == written.getType();
}

} // namespace

bool penstock::agreeByRows(linalg::GenericOp earlier, linalg::GenericOp later,
                           unsigned depth) {
  for (OpOperand &a : earlier->getOpOperands())
    for (OpOperand &b : later->getOpOperands()) {
      if (!isa<MemRefType>(a.get().getType()) ||
          !isa<MemRefType>(b.get().getType()) ||
          (earlier.isDpsInput(&a) && later.isDpsInput(&b)))
        continue;
      bool isSame = a.get() == b.get() ||
                    (earlier.isDpsInput(&a) && mayBeSame(a.get(), b.get()));
      if (!isSame &&
          !BufferRange::of(a.get()).overlaps(BufferRange::of(b.get())))
        continue;
      if (!isSame || getRowAccess(earlier, a, depth) != RowAccess::Row ||
          getRowAccess(later, b, depth) != RowAccess::Row)
        return false;
    }
  return true;
}

namespace {

/// Returns true if `op` can run behind those of `group`, row by row.
bool fits(const Group &group, linalg::GenericOp op, unsigned depth) {
  if (group.empty())
    return true;
  auto sizes = [&](linalg::GenericOp op) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    sizes.truncate(depth);
    return sizes;
  };
  linalg::GenericOp first = group.front();
  return sizes(first) == sizes(op) &&
         llvm::all_of(group, [&](linalg::GenericOp other) {
           return agreeByRows(other, op, depth);
         });
}

/// Returns true if fusing gains: at least two passes over large rows.
bool isWorthwhile(const Group &group, unsigned depth) {
  return llvm::count_if(group, [&](linalg::GenericOp op) {
           return getRowSize(op, 0) >= smallestBuffer &&
                  getRowSize(op, depth) >= smallestRow;
         }) >= 2;
}

/// The number of loops around the rows: one, or more where rows would leave the
/// first cache.
unsigned chooseDepth(const Group &group, bool inTurn) {
  unsigned depth = 1;
  while (llvm::any_of(group, [&](linalg::GenericOp op) {
    return getRowSize(op, depth) > longRow;
  })) {
    Group before;
    for (linalg::GenericOp op : group) {
      if (!hasRows(op, depth + 1, inTurn) || !fits(before, op, depth + 1))
        return depth;
      before.push_back(op);
    }
    if (!isWorthwhile(group, depth + 1))
      return depth;
    ++depth;
  }
  return depth;
}

/// Returns true if each element takes far longer to compute than to load.
bool isCostly(linalg::GenericOp op) {
  return llvm::any_of(op.getBody()->without_terminator(), [](Operation &body) {
    return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp,
               math::Log1pOp, math::TanhOp, math::ErfOp, math::PowFOp>(body);
  });
}

/// The number of rows that are taken at once, a divisor of all.
int64_t chooseBlock(const Group &group, unsigned depth, int64_t threads) {
  SmallVector<int64_t> counts =
      linalg::GenericOp(group.front()).getStaticLoopRanges();
  counts.truncate(depth);
  int64_t widest = 0, costly = 0;
  for (linalg::GenericOp op : group) {
    // Vectors of several rows would be others where there are more rows.
    if (op.getNumReductionLoops() && chooseVectorDimension(op) < depth)
      return 1;
    widest = std::max(widest, getRowSize(op, depth));
    if (isCostly(op))
      costly = std::max(costly, getRowSize(op, depth));
  }
  if (costly < smallestRow || widest > shortRow)
    return 1;
  int64_t rows = ShapedType::getNumElements(counts);
  auto divides = [&](int64_t block) {
    return counts.back() % block == 0 &&
           (threads == 1 || rows / block >= threads * blocksPerThread);
  };
  int64_t block = std::min(blockOfRows / widest, mostRowsOfBlock);
  while (block > 1 && !divides(block))
    --block;
  return block;
}

} // namespace

std::vector<RowGroup> penstock::findRowGroups(func::FuncOp function,
                                              int64_t threads,
                                              int64_t mostOperations) {
  // 1. Runs of ops over equally many rows. Pure ops may stand between;
  // anything else ends a group, and so does its length.
  bool inTurn = threads == 1;
  SmallVector<Group> runs(1);
  int64_t length = 0;
  for (Operation &op : function.getBody().front()) {
    if (isPure(&op) || isa<ViewLikeOpInterface>(op))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !hasRows(generic, 1, inTurn)) {
      runs.emplace_back();
      length = 0;
      continue;
    }
    int64_t own = countOperations(generic);
    if (length + own > mostOperations || !fits(runs.back(), generic, 1)) {
      runs.emplace_back();
      length = 0;
    }
    runs.back().push_back(generic);
    length += own;
  }

  // 2. Those that gain.
  std::vector<RowGroup> groups;
  for (Group &run : runs) {
    if (!isWorthwhile(run, 1))
      continue;
    RowGroup group;
    group.depth = chooseDepth(run, inTurn);
    group.isSum = llvm::any_of(
        run, [&](linalg::GenericOp op) { return sumsRows(op, group.depth); });
    group.block = group.isSum ? 1 : chooseBlock(run, group.depth, threads);
    group.ops = std::move(run);
    groups.push_back(std::move(group));
  }
  return groups;
}
