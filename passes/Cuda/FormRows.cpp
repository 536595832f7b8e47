//===- FormRows.cpp - Ops over the same rows become one kernel ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A norm is a sum, a quotient, another sum and a product per row. In one kernel
// the numbers of a row stay in registers and its elements in the first cache.
// Sums have the order of RowTeams.h in any company, so that no bit depends on
// which ops come together.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/HostLoops.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/RowTeams.h"
#include "passes/Cuda/ThreadLoops.h"
#include "passes/Kernels/RowGroups.h"

#include "dialects/Cuda/Cuda.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFORMROWS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Where rows alone have fewer threads, elementwise ops with more iterations
/// have kernels of their own, with a thread per element.
constexpr int64_t kManyThreads = 4096;

/// Ops that follow each other over the same rows.
struct RowKernel {
  SmallVector<linalg::GenericOp> ops;
  unsigned depth = 0;
  SmallVector<int64_t> counts;
  /// How many threads share a row.
  int64_t threads = 1;

  int64_t getRows() const { return ShapedType::getNumElements(counts); }
};

/// Returns the sizes of the first `depth` loops.
SmallVector<int64_t> getRowCounts(linalg::GenericOp op, unsigned depth) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  sizes.truncate(depth);
  return sizes;
}

/// Returns the innermost loop of more than one iteration.
std::optional<unsigned> getInnermostLoop(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (unsigned dim = sizes.size(); dim-- > 0;)
    if (sizes[dim] != 1)
      return dim;
  return std::nullopt;
}

/// Returns whether the body reads buffers by itself, which may be what another
/// op of the rows writes.
bool readsElsewhere(linalg::GenericOp op) {
  WalkResult found = op.getBody()->walk([](Operation *inner) {
    return isMemoryEffectFree(inner) ? WalkResult::advance()
                                     : WalkResult::interrupt();
  });
  return found.wasInterrupted();
}

class RowFormer {
public:
  explicit RowFormer(MLIRContext *context) : rewriter(context) {}

  LogicalResult run(Region &region);

private:
  LogicalResult run(Block &block);
  /// Moves the loops over the rows of a sum to the front, and decides how many
  /// threads share a row. Does nothing with what is no such sum.
  void normalize(linalg::GenericOp op);
  RowKernel grow(linalg::GenericOp sum);
  bool fits(const RowKernel &kernel, linalg::GenericOp op) const;
  void write(const RowKernel &kernel);
  Value emitSlice(linalg::GenericOp op, OpOperand &operand, ValueRange row);

  IRRewriter rewriter;
  /// Threads per row, by sum.
  llvm::MapVector<Operation *, int64_t> sums;
  llvm::SmallPtrSet<Operation *, 16> taken;
};

void RowFormer::normalize(linalg::GenericOp op) {
  // 1. Loops over rows come first, the others keep their order.
  std::optional<unsigned> last;
  if (op.hasPureBufferSemantics() && !op.hasDynamicShape())
    last = getInnermostLoop(op);
  if (!last || op.getNumReductionLoops() == 0)
    return;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  bool isAlongMemory = iterators[*last] == utils::IteratorType::reduction;
  SmallVector<unsigned> order = getThreadLoops(op);
  auto depth = static_cast<unsigned>(order.size());
  for (unsigned dim = 0; dim < iterators.size(); ++dim)
    if (!llvm::is_contained(ArrayRef(order).take_front(depth), dim))
      order.push_back(dim);
  rewriter.setInsertionPoint(op);
  linalg::GenericOp sum = op;
  if (!llvm::is_sorted(order)) {
    sum = cast<linalg::GenericOp>(rewriter.clone(*op));
    FailureOr<linalg::GenericOp> moved =
        linalg::interchangeGenericOp(rewriter, sum, order);
    if (failed(moved))
      return rewriter.eraseOp(sum);
    sum = *moved;
  }

  // 2. Long sums along memory are a team's. A thread has the others, unless
  // there is only one, which is left to whoever reports it.
  std::optional<RowLoops> loops = getRowLoops(sum, depth);
  bool isLong = loops && loops->elements >= kShortestTeamRow;
  bool isShared = isLong && isAlongMemory && canShareRows(sum, *loops);
  if (!loops || !loops->isReduction || (!isShared && isLong && depth == 0)) {
    if (sum != op)
      rewriter.eraseOp(sum);
    return;
  }
  sums[sum] = isShared ? getTeamThreads(loops->elements) : 1;
  if (sum != op)
    rewriter.eraseOp(op);
}

bool RowFormer::fits(const RowKernel &kernel, linalg::GenericOp op) const {
  if (taken.contains(op) || readsElsewhere(op))
    return false;
  std::optional<RowLoops> loops = getRowLoops(op, kernel.depth);
  if (!loops || getRowCounts(op, kernel.depth) != kernel.counts)
    return false;
  if (loops->isReduction) {
    const auto *known = sums.find(op);
    if (known == sums.end() || known->second != kernel.threads)
      return false;
  } else if (!loops->inner.empty()) {
    bool isFew = kernel.getRows() * kernel.threads < kManyThreads;
    bool isMany = kernel.getRows() * loops->elements > kManyThreads;
    if (kernel.threads == 1 || (isFew && isMany))
      return false;
  }
  return llvm::all_of(kernel.ops, [&](linalg::GenericOp other) {
    return other->isBeforeInBlock(op) ? agreeByRows(other, op, kernel.depth)
                                      : agreeByRows(op, other, kernel.depth);
  });
}

/// The row of an operand, or all of it where all rows use the same.
Value RowFormer::emitSlice(linalg::GenericOp op, OpOperand &operand,
                           ValueRange row) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return operand.get();
  SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0)),
      strides(type.getRank(), rewriter.getIndexAttr(1)),
      sizes = getAsIndexOpFoldResult(op.getContext(), type.getShape());
  bool isWhole = true;
  for (auto [position, result] :
       llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    if (dim >= row.size())
      continue;
    offsets[position] = row[dim];
    sizes[position] = rewriter.getIndexAttr(1);
    isWhole = false;
  }
  if (isWhole)
    return operand.get();
  return memref::SubViewOp::create(rewriter, op.getLoc(), operand.get(),
                                   offsets, sizes, strides);
}

void RowFormer::write(const RowKernel &kernel) {
  // 1. The loop over rows, which has a row where there are none.
  linalg::GenericOp last = kernel.ops.back();
  rewriter.setInsertionPoint(last);
  MLIRContext *context = rewriter.getContext();
  SmallVector<int64_t> counts = kernel.counts;
  if (counts.empty())
    counts.push_back(1);
  SmallVector<int64_t> first(counts.size(), 0), steps(counts.size(), 1);
  SmallVector<Attribute> mapping;
  for (size_t i = 0; i < counts.size(); ++i) {
    auto id = static_cast<gpu::MappingId>(
        static_cast<uint64_t>(gpu::MappingId::LinearDim0) + i);
    if (kernel.threads == kWarpThreads)
      mapping.push_back(gpu::GPUWarpMappingAttr::get(context, id));
    else if (kernel.threads > kWarpThreads)
      mapping.push_back(gpu::GPUBlockMappingAttr::get(context, id));
  }
  auto forall = scf::ForallOp::create(
      rewriter, last.getLoc(), getAsIndexOpFoldResult(context, first),
      getAsIndexOpFoldResult(context, counts),
      getAsIndexOpFoldResult(context, steps), ValueRange(),
      mapping.empty() ? std::nullopt
                      : std::optional(rewriter.getArrayAttr(mapping)));
  rewriter.setInsertionPointToStart(forall.getBody());
  SmallVector<Value> row = forall.getInductionVars();
  row.truncate(kernel.depth);

  // 2. The ops on one row. Rows of one buffer are one value, by which the
  // mapping to threads knows them.
  llvm::DenseMap<Value, Value> rows;
  for (linalg::GenericOp op : kernel.ops) {
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      bool isRow = isa<MemRefType>(operand.get().getType()) &&
                   getRowAccess(op, operand, kernel.depth) == RowAccess::Row;
      Value own, &slice = isRow ? rows[operand.get()] : own;
      if (!slice)
        slice = emitSlice(op, operand, row);
      operands.push_back(slice);
    }
    Operation *clone = rewriter.clone(*op.getOperation());
    clone->setOperands(operands);
    OpBuilder::InsertionGuard guard(rewriter);
    clone->walk([&](linalg::IndexOp index) {
      if (index.getDim() >= kernel.depth)
        return;
      index.replaceAllUsesWith(row[index.getDim()]);
      rewriter.eraseOp(index);
    });
  }
  for (linalg::GenericOp op : kernel.ops)
    rewriter.eraseOp(op);
}

RowKernel RowFormer::grow(linalg::GenericOp sum) {
  RowKernel kernel;
  kernel.depth = getThreadLoops(sum).size();
  kernel.counts = getRowCounts(sum, kernel.depth);
  kernel.threads = sums.lookup(sum);
  kernel.ops.push_back(sum);
  auto extend = [&](bool isForward) {
    auto step = [&](Operation *op) {
      return isForward ? op->getNextNode() : op->getPrevNode();
    };
    for (Operation *op = step(sum); op; op = step(op)) {
      if (isPure(op) || isa<ViewLikeOpInterface>(op))
        continue;
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic || !fits(kernel, generic))
        return;
      kernel.ops.insert(isForward ? kernel.ops.end() : kernel.ops.begin(),
                        generic);
    }
  };
  if (!readsElsewhere(sum)) {
    extend(/*isForward=*/false);
    extend(/*isForward=*/true);
  }
  for (linalg::GenericOp op : kernel.ops)
    taken.insert(op);
  return kernel;
}

LogicalResult RowFormer::run(Block &block) {
  // 1. Fills take part, as generics, and sums along rows in their form.
  SmallVector<linalg::FillOp> fills;
  for (auto fill : block.getOps<linalg::FillOp>())
    if (fill.hasPureBufferSemantics() && !fill.hasDynamicShape())
      fills.push_back(fill);
  for (linalg::FillOp fill : fills) {
    rewriter.setInsertionPoint(fill);
    if (failed(linalg::generalizeNamedOp(rewriter, fill)))
      return fill.emitOpError("has no form as scalar loops");
  }
  for (linalg::GenericOp op :
       llvm::to_vector(block.getOps<linalg::GenericOp>()))
    normalize(op);

  // 2. Around each sum that is in no kernel yet, its neighbors as far as they
  // fit.
  SmallVector<RowKernel> kernels;
  for (auto [op, threads] : sums)
    if (!taken.contains(op))
      kernels.push_back(grow(cast<linalg::GenericOp>(op)));
  for (const RowKernel &kernel : kernels)
    if (kernel.threads > 1 || kernel.ops.size() > 1)
      write(kernel);
  sums.clear();
  taken.clear();
  return success();
}

LogicalResult RowFormer::run(Region &region) {
  for (Block &block : region) {
    for (Operation &op : block)
      if (isHostLoop(&op))
        for (Region &inner : op.getRegions())
          if (failed(run(inner)))
            return failure();
    if (failed(run(block)))
      return failure();
  }
  return success();
}

struct FormRowsPass : penstock::impl::PipelineFormRowsBase<FormRowsPass> {
  using PipelineFormRowsBase::PipelineFormRowsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!isStageFunction(function, kind))
      return;
    auto target =
        dyn_cast_or_null<cuda::TargetAttr>(pipeline::getTarget(function));
    if (target && target.getPlain())
      return;
    if (failed(RowFormer(&getContext()).run(function.getBody())))
      signalPassFailure();
  }
};

} // namespace
