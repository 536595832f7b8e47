//===- FuseRows.cpp - Ops over the same rows share one loop ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax is a maximum, a sum and a division per row, three passes over memory.
// Row by row, the second and third find the row in the cache. On buffers this
// is a fusion of loops: each op keeps its form, on one row, and so its bits.
// Sums over rows, as the gradient of a norm's scale, add row after row anyway:
// they take part where one thread goes through the rows in turn.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Lowering/BufferRange.h"
#include "passes/Lowering/Passes.h"
#include "passes/Lowering/VectorPlan.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFUSEROWS
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

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

/// How an operand's buffer is used by an op whose first loops, `depth` of them,
/// number the rows.
enum class Access {
  Row,    // Their indices are its first ones: a row of its own for each.
  Fixed,  // They do not occur: all rows use the same.
  Sliced, // Some are indices of it, as of a mask.
  Other
};

Access accessOf(linalg::GenericOp op, OpOperand &operand, unsigned depth) {
  unsigned found = 0;
  bool leads = true;
  ArrayRef<AffineExpr> results =
      op.getMatchingIndexingMap(&operand).getResults();
  for (auto [position, result] : llvm::enumerate(results)) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (dim && dim.getPosition() < depth) {
      leads &= dim.getPosition() == position;
      ++found;
    } else if (llvm::any_of(llvm::seq(depth), [&](unsigned row) {
                 return result.isFunctionOfDim(row);
               })) {
      return Access::Other;
    }
  }
  if (!found)
    return Access::Fixed;
  return leads && found == depth ? Access::Row : Access::Sliced;
}

/// Whether the first loops of `op` are all parallel, or all reductions.
bool areRows(linalg::GenericOp op, unsigned depth,
             utils::IteratorType iterator) {
  return llvm::all_of(
      ArrayRef(op.getIteratorTypesArray()).take_front(depth),
      [&](utils::IteratorType other) { return other == iterator; });
}

/// Whether `op` adds up over the rows: what it writes without their indices has
/// a row of accumulators, each of which meets the rows in their order. Along
/// the vector there is no such order (see VectorLoops).
bool sumsRows(linalg::GenericOp op, unsigned depth) {
  if (!areRows(op, depth, utils::IteratorType::reduction))
    return false;
  std::optional<unsigned> vector = chooseVectorDimension(op);
  return vector && llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.getMatchingIndexingMap(&init).isFunctionOfDim(*vector) &&
                  accessOf(op, init, depth) != Access::Sliced;
         });
}

/// A candidate: its first loops go over rows, by which it writes everything, or
/// which it sums.
bool hasRows(linalg::GenericOp op, unsigned depth, bool inTurn) {
  if (op.getNumLoops() < depth || !op.hasPureBufferSemantics() ||
      op.hasDynamicShape())
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (accessOf(op, operand, depth) == Access::Other)
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
    return accessOf(op, init, depth) == Access::Row;
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

/// Whether `later` may run on row i right after `earlier` did, for all rows in
/// turn: where one writes what the other touches, both do so by rows of the
/// same buffer.
bool agree(linalg::GenericOp earlier, linalg::GenericOp later, unsigned depth) {
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
      if (!isSame || accessOf(earlier, a, depth) != Access::Row ||
          accessOf(later, b, depth) != Access::Row)
        return false;
    }
  return true;
}

using Group = SmallVector<linalg::GenericOp>;

/// Whether `op` can run behind those of `group`, row by row.
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
           return agree(other, op, depth);
         });
}

int64_t rowSize(linalg::GenericOp op, unsigned depth) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  return ShapedType::getNumElements(ArrayRef(loops).drop_front(depth));
}

/// Whether it gains: at least two passes over large rows.
bool isWorthwhile(const Group &group, unsigned depth) {
  return llvm::count_if(group, [&](linalg::GenericOp op) {
           return rowSize(op, 0) >= smallestBuffer &&
                  rowSize(op, depth) >= smallestRow;
         }) >= 2;
}

/// The number of loops around the rows: one, or more where rows would leave the
/// first cache.
unsigned chooseDepth(const Group &group, bool inTurn) {
  unsigned depth = 1;
  while (llvm::any_of(group, [&](linalg::GenericOp op) {
    return rowSize(op, depth) > longRow;
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

/// Whether each element takes far longer to compute than to load.
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
    // Sums over rows meet them one by one, and vectors of several rows would
    // be others where there are more rows.
    if (!areRows(op, depth, utils::IteratorType::parallel) ||
        (op.getNumReductionLoops() && chooseVectorDimension(op) < depth))
      return 1;
    widest = std::max(widest, rowSize(op, depth));
    if (isCostly(op))
      costly = std::max(costly, rowSize(op, depth));
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

/// What of an operand the rows with these numbers use: `block` of them from the
/// last number on.
Value sliceOf(OpBuilder &builder, linalg::GenericOp op, OpOperand &operand,
              ValueRange row, int64_t block) {
  auto type = cast<MemRefType>(operand.get().getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      strides(type.getRank(), builder.getIndexAttr(1)), sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  ArrayRef<AffineExpr> results =
      op.getMatchingIndexingMap(&operand).getResults();
  for (auto [position, result] : llvm::enumerate(results)) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (!dim || dim.getPosition() >= row.size())
      continue;
    offsets[position] = row[dim.getPosition()];
    bool isLast = dim.getPosition() + 1 == row.size();
    sizes[position] = builder.getIndexAttr(isLast ? block : 1);
  }
  return memref::SubViewOp::create(builder, op.getLoc(), operand.get(), offsets,
                                   sizes, strides);
}

/// Moves the ops of `group` into one loop nest over their rows.
void fuse(RewriterBase &rewriter, const Group &group, unsigned depth,
          int64_t threads) {
  linalg::GenericOp last = group.back();
  Location loc = last.getLoc();
  rewriter.setInsertionPoint(last);
  SmallVector<Value> row;
  SmallVector<int64_t> counts = last.getStaticLoopRanges();
  counts.truncate(depth);
  int64_t block = chooseBlock(group, depth, threads);
  if (llvm::any_of(group,
                   [&](linalg::GenericOp op) { return sumsRows(op, depth); })) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    for (int64_t count : counts) {
      auto loop = scf::ForOp::create(rewriter, loc, constant(0),
                                     constant(count), constant(1));
      rewriter.setInsertionPointToStart(loop.getBody());
      row.push_back(loop.getInductionVar());
    }
  } else {
    SmallVector<int64_t> first(depth, 0), steps(depth, 1);
    steps.back() = block;
    auto folded = [&](ArrayRef<int64_t> values) {
      return getAsIndexOpFoldResult(rewriter.getContext(), values);
    };
    auto forall =
        scf::ForallOp::create(rewriter, loc, folded(first), folded(counts),
                              folded(steps), ValueRange(), std::nullopt);
    rewriter.setInsertionPointToStart(forall.getBody());
    llvm::append_range(row, forall.getInductionVars());
  }
  // Rows of one buffer are one value, by which later passes know them.
  llvm::DenseMap<Value, Value> rows;
  for (linalg::GenericOp op : group) {
    SmallVector<Value> operands(op->getOperands());
    for (OpOperand &operand : op->getOpOperands()) {
      Access access = accessOf(op, operand, depth);
      if (!isa<MemRefType>(operand.get().getType()) || access == Access::Fixed)
        continue;
      Value own, &slice = access == Access::Row ? rows[operand.get()] : own;
      if (!slice)
        slice = sliceOf(rewriter, op, operand, row, block);
      operands[operand.getOperandNumber()] = slice;
    }
    rewriter.clone(*op.getOperation())->setOperands(operands);
  }
  for (linalg::GenericOp op : group)
    rewriter.eraseOp(op);
}

struct FuseRowsPass : penstock::impl::PipelineFuseRowsBase<FuseRowsPass> {
  using PipelineFuseRowsBase::PipelineFuseRowsBase;

  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    IRRewriter rewriter(&getContext());
    // 1. Fills take part, as generics.
    SmallVector<linalg::FillOp> fills;
    Block &entry = getOperation().getBody().front();
    for (auto fill : entry.getOps<linalg::FillOp>())
      if (fill.hasPureBufferSemantics())
        fills.push_back(fill);
    for (linalg::FillOp fill : fills) {
      rewriter.setInsertionPoint(fill);
      if (failed(linalg::generalizeNamedOp(rewriter, fill)))
        return signalPassFailure();
    }

    // 2. Groups: runs of ops over equally many rows. Pure ops may stand
    // between; anything else ends a group.
    bool inTurn = threads == 1;
    SmallVector<Group> groups(1);
    for (Operation &op : entry) {
      if (isPure(&op))
        continue;
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic || !hasRows(generic, 1, inTurn))
        groups.emplace_back();
      else if (fits(groups.back(), generic, 1))
        groups.back().push_back(generic);
      else
        groups.push_back({generic});
    }

    // 3. Those that gain.
    for (const Group &group : groups)
      if (isWorthwhile(group, 1))
        fuse(rewriter, group, chooseDepth(group, inTurn), threads);
  }

  static bool isPure(Operation *op) {
    return mlir::isPure(op) || isa<ViewLikeOpInterface>(op);
  }
};

} // namespace
