//===- VectorLoops.cpp - linalg.generic becomes loops over vectors --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the loops ourselves, because the order of a reduction must be ours:
// LLVM's vectorizer changes it from function to function, or needs fast-math
// flags. Here it follows from the op alone, with explicit accumulators and an
// explicit tree at the end.
//===----------------------------------------------------------------------===//

#include "passes/Cpu/Passes.h"
#include "passes/Cpu/VectorBody.h"
#include "passes/Kernels/CollapseLoops.h"
#include "passes/Kernels/ReductionOrder.h"
#include "penstock/Target/Cpu/CpuTarget.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVECTORLOOPS
#include "passes/Cpu/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Partial results per reduction: enough to hide the latency of an addition.
constexpr int64_t accumulatorCount = 4;

/// From this many elements on, folding costs less than going through memory in
/// another order than it lies.
constexpr int64_t longRow = 256;

/// Writes the loops of one op.
class LoopWriter {
public:
  LoopWriter(OpBuilder &builder, linalg::GenericOp op, unsigned dimension,
             int64_t width)
      : builder(builder), loc(op.getLoc()), op(op), dimension(dimension),
        width(width), sizes(op.getStaticLoopRanges()),
        vectors(builder, op, dimension, width) {}

  void write();

private:
  using Body = llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)>;
  /// A loop over `dim` that carries `values`, and gives those of its end.
  SmallVector<Value> writeLoop(unsigned dim, ArrayRef<Value> values, Body body);
  void writeOuter(ArrayRef<unsigned> dims);
  void writeParallel();
  void writeReduction();
  /// The loops over `dims` and the row within them; takes and returns the
  /// accumulators, `count` for each reduction.
  SmallVector<Value> accumulate(ArrayRef<unsigned> dims,
                                SmallVector<Value> accumulators, int64_t count);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  linalg::GenericOp op;
  unsigned dimension;
  int64_t width;
  SmallVector<int64_t> sizes;
  VectorBody vectors;
  /// The other loops: those around a fold, and those that are folded as well.
  SmallVector<unsigned> outer, inner;
};

void LoopWriter::write() {
  ArrayRef<unsigned> reductions = vectors.getReductions();
  auto isFolded = [&](unsigned dim) {
    return !reductions.empty() &&
           llvm::none_of(reductions, [&](unsigned output) {
             return op.getMatchingIndexingMap(op.getDpsInitOperand(output))
                 .isFunctionOfDim(dim);
           });
  };
  // Accumulators stay in registers through the innermost loops along which no
  // folded output moves, and through all such loops where those are short.
  unsigned begin = sizes.size();
  int64_t elements = 1;
  while (begin > 0 && (begin - 1 == dimension || isFolded(begin - 1)))
    elements *= sizes[--begin];
  if (elements < longRow)
    begin = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (dim != dimension)
      (dim >= begin && isFolded(dim) ? inner : outer).push_back(dim);
  writeOuter(outer);
}

void LoopWriter::writeOuter(ArrayRef<unsigned> dims) {
  if (dims.empty())
    return vectors.getReductions().empty() ? writeParallel() : writeReduction();
  writeLoop(dims.front(), {}, [&](ArrayRef<Value>) {
    writeOuter(dims.drop_front());
    return SmallVector<Value>();
  });
}

SmallVector<Value> LoopWriter::writeLoop(unsigned dim, ArrayRef<Value> values,
                                         Body body) {
  SmallVector<Value> results;
  if (sizes[dim] == 1) {
    auto outside = vectors.enter(dim, index(0));
    results = body(values);
    vectors.leave(dim, std::move(outside));
    return results;
  }
  auto loop = scf::ForOp::create(builder, loc, index(0), index(sizes[dim]),
                                 index(1), values);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  auto outside = vectors.enter(dim, loop.getInductionVar());
  results = body(SmallVector<Value>(loop.getRegionIterArgs()));
  if (!values.empty())
    scf::YieldOp::create(builder, loc, results);
  vectors.leave(dim, std::move(outside));
  return SmallVector<Value>(loop.getResults());
}

void LoopWriter::writeParallel() {
  int64_t size = sizes[dimension], full = size / width * width;
  if (full) {
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(full), index(width));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    vectors.step(loop.getInductionVar(), {}, width);
  }
  if (full < size)
    vectors.step(index(full), {}, size - full);
}

/// Element i of a row goes to accumulator (i / width) mod n, and the rest
/// behind the last n vectors to the first ones in turn, in all rows alike.
void LoopWriter::writeReduction() {
  int64_t rowVectors = (sizes[dimension] + width - 1) / width;
  int64_t count = std::min(accumulatorCount, rowVectors);
  // accumulators[reduction * count + i]
  SmallVector<Value> accumulators;
  for (unsigned output : vectors.getReductions())
    accumulators.append(count, vectors.start(output));
  accumulators = accumulate(inner, std::move(accumulators), count);
  for (auto [r, output] : llvm::enumerate(vectors.getReductions()))
    vectors.finish(output, ArrayRef(accumulators).slice(r * count, count));
}

SmallVector<Value> LoopWriter::accumulate(ArrayRef<unsigned> dims,
                                          SmallVector<Value> accumulators,
                                          int64_t count) {
  if (!dims.empty())
    return writeLoop(dims.front(), accumulators, [&](ArrayRef<Value> current) {
      return accumulate(dims.drop_front(), SmallVector<Value>(current), count);
    });
  int64_t size = sizes[dimension];
  int64_t block = count * width, full = size / block * block;
  auto advance = [&](Value counter, int64_t i, int64_t lanes) {
    SmallVector<Value> current;
    for (size_t at = i; at < accumulators.size(); at += count)
      current.push_back(accumulators[at]);
    for (auto [r, next] :
         llvm::enumerate(vectors.step(counter, current, lanes)))
      accumulators[r * count + i] = next;
  };

  if (full) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(full),
                                   index(block), accumulators);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    llvm::copy(loop.getRegionIterArgs(), accumulators.begin());
    for (int64_t i = 0; i < count; ++i)
      advance(arith::AddIOp::create(builder, loc, loop.getInductionVar(),
                                    index(i * width)),
              i, width);
    scf::YieldOp::create(builder, loc, accumulators);
    llvm::copy(loop.getResults(), accumulators.begin());
  }
  int64_t i = 0;
  for (int64_t at = full; at < size; at += width, ++i)
    advance(index(at), i, std::min(width, size - at));
  return accumulators;
}

struct VectorLoopsPass
    : penstock::impl::PipelineVectorLoopsBase<VectorLoopsPass> {
  using PipelineVectorLoopsBase::PipelineVectorLoopsBase;

  LogicalResult lower(RewriterBase &rewriter, linalg::LinalgOp op) {
    rewriter.setInsertionPoint(op);
    if (!op.hasPureBufferSemantics() || op.hasDynamicShape())
      return op->emitOpError("internal error: not on static buffers");
    // 1. One form for all.
    if (!isa<linalg::GenericOp>(op)) {
      FailureOr<linalg::GenericOp> generic =
          linalg::generalizeNamedOp(rewriter, op);
      if (failed(generic))
        return op->emitOpError("has no form as scalar loops");
      op = *generic;
    }
    auto generic = cast<linalg::GenericOp>(op.getOperation());
    if (llvm::is_contained(generic.getStaticLoopRanges(), 0)) {
      rewriter.eraseOp(generic);
      return success();
    }
    generic = collapseParallelLoops(rewriter, generic);
    rewriter.setInsertionPoint(generic);
    // 2. Vectors where the op allows, scalars elsewhere.
    if (std::optional<unsigned> dimension = chooseVectorDimension(generic))
      LoopWriter(rewriter, generic, *dimension, vectorWidth).write();
    else if (failed(linalg::linalgOpToLoops(rewriter, generic)))
      return generic.emitOpError("has no form as scalar loops");
    rewriter.eraseOp(generic);
    return success();
  }

  void runOnOperation() override {
    cpu::TargetAttr target = getCpuTarget(getOperation());
    if (!target)
      return;
    if (width == 0) {
      FailureOr<int64_t> lanes =
          cpu::getVectorWidth(target, getOperation().getLoc());
      if (failed(lanes))
        return signalPassFailure();
      vectorWidth = *lanes;
    } else {
      vectorWidth = width;
    }
    if (vectorWidth < 2 || (vectorWidth & (vectorWidth - 1)) != 0) {
      getOperation().emitError("the vector width must be a power of two, got ")
          << vectorWidth;
      return signalPassFailure();
    }
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (failed(lower(rewriter, op)))
        return signalPassFailure();
  }

  /// The vector width of the current function.
  int64_t vectorWidth = 0;
};

} // namespace
