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

/// How an operand's buffer is used by an op whose first loop is the row.
enum class Access {
  Row,  // Its first index is the row, which occurs nowhere else.
  Whole // Anything else.
};

Access accessOf(linalg::GenericOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  AffineExpr row = getAffineDimExpr(0, op.getContext());
  if (map.getNumResults() == 0 || map.getResult(0) != row)
    return Access::Whole;
  for (AffineExpr result : map.getResults().drop_front())
    if (result.isFunctionOfDim(0))
      return Access::Whole;
  return Access::Row;
}

/// Whether `op` adds up over its first loop, the rows: what it writes without
/// that index has a row of accumulators, each of which meets the rows in their
/// order. Along the vector there is no such order (see VectorLoops).
bool sumsRows(linalg::GenericOp op) {
  if (op.getIteratorTypesArray().front() != utils::IteratorType::reduction)
    return false;
  std::optional<unsigned> vector = chooseVectorDimension(op);
  return vector && llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           AffineMap map = op.getMatchingIndexingMap(&init);
           return map.isFunctionOfDim(*vector) &&
                  (accessOf(op, init) == Access::Row ||
                   !map.isFunctionOfDim(0));
         });
}

/// A candidate: its first loop goes over rows, by which it writes everything,
/// or which it sums.
bool hasRows(linalg::GenericOp op, bool inTurn) {
  if (op.getNumLoops() < 1 || !op.hasPureBufferSemantics() ||
      op.hasDynamicShape())
    return false;
  // The number of the row would have to be passed on.
  WalkResult usesRow = op.getBody()->walk([](linalg::IndexOp index) {
    return index.getDim() == 0 ? WalkResult::interrupt()
                               : WalkResult::advance();
  });
  if (usesRow.wasInterrupted())
    return false;
  if (op.getIteratorTypesArray().front() != utils::IteratorType::parallel)
    return inTurn && sumsRows(op);
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return accessOf(op, init) == Access::Row;
  });
}

int64_t iterations(linalg::GenericOp op) {
  int64_t count = 1;
  for (int64_t size : op.getStaticLoopRanges())
    count *= size;
  return count;
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
bool agree(linalg::GenericOp earlier, linalg::GenericOp later) {
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
      if (!isSame || accessOf(earlier, a) != Access::Row ||
          accessOf(later, b) != Access::Row)
        return false;
    }
  return true;
}

/// Moves the ops of `group` into one loop over their rows.
void fuse(RewriterBase &rewriter, ArrayRef<linalg::GenericOp> group) {
  linalg::GenericOp last = group.back();
  Location loc = last.getLoc();
  rewriter.setInsertionPoint(last);
  int64_t count = last.getStaticLoopRanges().front();
  Value row;
  if (llvm::any_of(group, sumsRows)) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(count),
                                   constant(1));
    rewriter.setInsertionPointToStart(loop.getBody());
    row = loop.getInductionVar();
  } else {
    auto forall = scf::ForallOp::create(
        rewriter, loc, ArrayRef<OpFoldResult>{rewriter.getIndexAttr(count)},
        ValueRange(), std::nullopt);
    rewriter.setInsertionPointToStart(forall.getBody());
    row = forall.getInductionVar(0);
  }
  llvm::DenseMap<Value, Value> rows;
  for (linalg::GenericOp op : group) {
    IRMapping mapping;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type || accessOf(op, operand) != Access::Row)
        continue;
      Value &slice = rows[operand.get()];
      if (!slice) {
        SmallVector<OpFoldResult> offsets(type.getRank(),
                                          rewriter.getIndexAttr(0)),
            strides(type.getRank(), rewriter.getIndexAttr(1)), sizes;
        offsets[0] = row;
        sizes.push_back(rewriter.getIndexAttr(1));
        for (int64_t size : type.getShape().drop_front())
          sizes.push_back(rewriter.getIndexAttr(size));
        slice = memref::SubViewOp::create(rewriter, loc, operand.get(), offsets,
                                          sizes, strides);
      }
      mapping.map(operand.get(), slice);
    }
    rewriter.clone(*op.getOperation(), mapping);
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
    SmallVector<SmallVector<linalg::GenericOp>> groups(1);
    for (Operation &op : entry) {
      if (isPure(&op))
        continue;
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic || !hasRows(generic, /*inTurn=*/threads == 1)) {
        groups.emplace_back();
        continue;
      }
      SmallVector<linalg::GenericOp> &group = groups.back();
      bool fits =
          group.empty() || (group.front().getStaticLoopRanges().front() ==
                                generic.getStaticLoopRanges().front() &&
                            llvm::all_of(group, [&](linalg::GenericOp other) {
                              return agree(other, generic);
                            }));
      if (fits)
        group.push_back(generic);
      else
        groups.push_back({generic});
    }

    // 3. Those that gain: at least two passes over large rows.
    for (SmallVector<linalg::GenericOp> &group : groups) {
      int64_t large = llvm::count_if(group, [](linalg::GenericOp op) {
        return iterations(op) >= smallestBuffer &&
               iterations(op) / op.getStaticLoopRanges().front() >= smallestRow;
      });
      if (large >= 2)
        fuse(rewriter, group);
    }
  }

  static bool isPure(Operation *op) {
    return mlir::isPure(op) || isa<ViewLikeOpInterface>(op);
  }
};

} // namespace
