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
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/RowGroups.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFUSEROWS
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// The processor does not see by itself that the next row of an input follows,
/// as it turns back to the start of this one first.
constexpr int64_t prefetchedRow = 256, lineBytes = 64;

/// Moves the ops of a group into one loop nest over their rows.
class RowFuser {
public:
  RowFuser(RewriterBase &rewriter, RowGroup &group)
      : rewriter(rewriter), group(group), loc(group.ops.back().getLoc()),
        counts(group.ops.back().getStaticLoopRanges()) {
    counts.truncate(group.depth);
  }

  void run();

private:
  void writeLoops();
  Value getSlice(linalg::GenericOp op, OpOperand &operand);
  void prefetchNext();
  void prefetchRow(Value buffer, SmallVector<Value> indices);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }

  RewriterBase &rewriter;
  RowGroup &group;
  Location loc;
  SmallVector<int64_t> counts;
  /// The numbers of the row, or of the first one of a block.
  SmallVector<Value> row;
};

void RowFuser::writeLoops() {
  rewriter.setInsertionPoint(group.ops.back());
  if (group.isSum) {
    for (int64_t count : counts) {
      auto loop = scf::ForOp::create(rewriter, loc, constant(0),
                                     constant(count), constant(1));
      rewriter.setInsertionPointToStart(loop.getBody());
      row.push_back(loop.getInductionVar());
    }
    return;
  }
  SmallVector<int64_t> first(group.depth, 0), steps(group.depth, 1);
  steps.back() = group.block;
  auto folded = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(rewriter.getContext(), values);
  };
  auto forall =
      scf::ForallOp::create(rewriter, loc, folded(first), folded(counts),
                            folded(steps), ValueRange(), std::nullopt);
  rewriter.setInsertionPointToStart(forall.getBody());
  llvm::append_range(row, forall.getInductionVars());
}

/// Returns the slice of an operand that the rows of an iteration use.
Value RowFuser::getSlice(linalg::GenericOp op, OpOperand &operand) {
  auto type = cast<MemRefType>(operand.get().getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0)),
      strides(type.getRank(), rewriter.getIndexAttr(1)), sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(rewriter.getIndexAttr(size));
  ArrayRef<AffineExpr> results =
      op.getMatchingIndexingMap(&operand).getResults();
  for (auto [position, result] : llvm::enumerate(results)) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (!dim || dim.getPosition() >= row.size())
      continue;
    offsets[position] = row[dim.getPosition()];
    bool isLast = dim.getPosition() + 1 == row.size();
    sizes[position] = rewriter.getIndexAttr(isLast ? group.block : 1);
  }
  return memref::SubViewOp::create(rewriter, op.getLoc(), operand.get(),
                                   offsets, sizes, strides);
}

/// Asks for what the next turn reads, unless the group itself writes it.
void RowFuser::prefetchNext() {
  llvm::SmallSetVector<Value, 4> inputs;
  for (linalg::GenericOp op : group.ops)
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto type = dyn_cast<MemRefType>(operand->get().getType());
      if (type && type.getElementType().isIntOrFloat() &&
          getRowAccess(op, *operand, group.depth) == RowAccess::Row &&
          ShapedType::getNumElements(type.getShape().drop_front(group.depth)) >=
              prefetchedRow)
        inputs.insert(operand->get());
    }
  for (linalg::GenericOp op : group.ops)
    for (Value init : op.getDpsInits())
      inputs.remove(init);
  if (inputs.empty())
    return;
  SmallVector<Value> next = row;
  next.back() = arith::MinSIOp::create(
      rewriter, loc, constant(counts.back() - 1),
      arith::AddIOp::create(rewriter, loc, next.back(), constant(1)));
  for (Value buffer : inputs)
    prefetchRow(buffer, next);
}

/// Every line of the row of `buffer` with these indices.
void RowFuser::prefetchRow(Value buffer, SmallVector<Value> indices) {
  OpBuilder::InsertionGuard guard(rewriter);
  auto type = cast<MemRefType>(buffer.getType());
  int64_t bytes = std::max(1U, type.getElementTypeBitWidth() / 8);
  for (int64_t dim = indices.size(); dim < type.getRank(); ++dim) {
    bool isLast = dim + 1 == type.getRank();
    auto loop = scf::ForOp::create(rewriter, loc, constant(0),
                                   constant(type.getDimSize(dim)),
                                   constant(isLast ? lineBytes / bytes : 1));
    rewriter.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
  }
  memref::PrefetchOp::create(rewriter, loc, buffer, indices, /*isWrite=*/false,
                             /*localityHint=*/3, /*isDataCache=*/true);
}

void RowFuser::run() {
  writeLoops();
  // Rows of one buffer are one value, by which later passes know them.
  llvm::DenseMap<Value, Value> rows;
  for (linalg::GenericOp op : group.ops) {
    // Sums over rows of several inputs leave the memory no time for more.
    if (op == group.ops.back() && group.block == 1 && !group.isSum)
      prefetchNext();
    SmallVector<Value> operands(op->getOperands());
    for (OpOperand &operand : op->getOpOperands()) {
      RowAccess access = getRowAccess(op, operand, group.depth);
      if (!isa<MemRefType>(operand.get().getType()) ||
          access == RowAccess::Fixed)
        continue;
      Value own, &slice = access == RowAccess::Row ? rows[operand.get()] : own;
      if (!slice)
        slice = getSlice(op, operand);
      operands[operand.getOperandNumber()] = slice;
    }
    rewriter.clone(*op.getOperation())->setOperands(operands);
  }
  for (linalg::GenericOp op : group.ops)
    rewriter.eraseOp(op);
}

struct FuseRowsPass : penstock::impl::PipelineFuseRowsBase<FuseRowsPass> {
  using PipelineFuseRowsBase::PipelineFuseRowsBase;

  void runOnOperation() override {
    if (getOperation().isDeclaration() ||
        !pipeline::isOfKind(getOperation(), kind))
      return;
    pipeline::TargetAttrInterface target = pipeline::getTarget(getOperation());
    IRRewriter rewriter(&getContext());
    // Fills take part, as generics.
    SmallVector<linalg::FillOp> fills;
    for (auto fill : getOperation().getBody().front().getOps<linalg::FillOp>())
      if (fill.hasPureBufferSemantics())
        fills.push_back(fill);
    for (linalg::FillOp fill : fills) {
      rewriter.setInsertionPoint(fill);
      if (failed(linalg::generalizeNamedOp(rewriter, fill)))
        return signalPassFailure();
    }
    for (RowGroup &group : findRowGroups(
             getOperation(), target ? target.getThreads() : 1, mostOperations))
      RowFuser(rewriter, group).run();
  }
};

} // namespace
