//===- MergeReductions.cpp - Sums over the same tensors share one loop ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backward of a normalization sums a cotangent, its product with the
// normalized values, and both once more scaled: in one pass over memory instead
// of three. Each sum keeps its order, and so its bits.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/Passes.h"
#include "passes/Kernels/ReductionOrder.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEMERGEREDUCTIONS
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// More sums at once than this would not leave registers for anything else.
constexpr unsigned mostSums = 6;

bool isWhole(AffineMap map) {
  return map.isPermutation() && map.getNumResults() == map.getNumDims();
}

/// The map that all results of `op` have that are not elementwise, which are at
/// most `mostSums`; null if they differ or there are none. Where the
/// accumulators are kept depends on this map.
AffineMap sumMap(linalg::GenericOp op, unsigned &sums) {
  AffineMap found;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (isWhole(map))
      continue;
    if (found && map != found)
      return {};
    found = map;
    ++sums;
  }
  return found;
}

/// Returns true if partial results of all sums can be joined. A sum that cannot
/// has an order of its own, which the others shall not have to take.
bool hasCombiners(linalg::GenericOp op) {
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable()))
    if (!isWhole(op.getMatchingIndexingMap(&init)) && !getCombiner(op, number))
      return false;
  return true;
}

/// Returns true if `later` may be computed together with `earlier`, where it
/// stands.
bool canMerge(linalg::GenericOp earlier, linalg::GenericOp later) {
  unsigned sums = 0;
  AffineMap map = sumMap(earlier, sums);
  if (!map || map != sumMap(later, sums) || sums > mostSums ||
      earlier.getIteratorTypesArray() != later.getIteratorTypesArray() ||
      earlier.getStaticLoopRanges() != later.getStaticLoopRanges() ||
      hasCombiners(earlier) != hasCombiners(later))
    return false;
  // 1. It reads elementwise results of the earlier one, or the same tensor.
  bool shares = false;
  for (OpOperand &operand : later->getOpOperands()) {
    AffineMap own = later.getMatchingIndexingMap(&operand);
    if (operand.get().getDefiningOp() == earlier) {
      auto result = cast<OpResult>(operand.get());
      if (!later.isDpsInput(&operand) || !isWhole(own) ||
          own != earlier.getIndexingMapMatchingResult(result))
        return false;
      shares = true;
    } else if (later.isDpsInput(&operand) && isWhole(own)) {
      shares |= llvm::is_contained(earlier.getInputs(), operand.get());
    }
  }
  if (!shares)
    return false;
  // 2. Both are part of one region of loops: over a product, tensors would have
  // to be kept.
  for (Operation *op = earlier->getNextNode(); op != later;
       op = op->getNextNode())
    if (!isa<linalg::GenericOp, linalg::FillOp>(op) &&
        !isa<tensor::TensorDialect, arith::ArithDialect>(op->getDialect()))
      return false;
  // 3. Nobody waits for the earlier one meanwhile.
  Block *block = later->getBlock();
  return llvm::all_of(earlier->getUsers(), [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    return ancestor && (ancestor == later || later->isBeforeInBlock(ancestor));
  });
}

/// One op that computes both, or null if its sums would be ordered otherwise.
linalg::GenericOp merge(RewriterBase &rewriter, linalg::GenericOp earlier,
                        linalg::GenericOp later) {
  // 1. Operands; what the earlier one computes is no operand.
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineMap> inputMaps, outputMaps;
  for (linalg::GenericOp op : {earlier, later}) {
    for (OpOperand *input : op.getDpsInputOperands()) {
      if (input->get().getDefiningOp() == earlier)
        continue;
      inputs.push_back(input->get());
      inputMaps.push_back(op.getMatchingIndexingMap(input));
    }
    for (OpOperand &init : op.getDpsInitsMutable()) {
      outputs.push_back(init.get());
      outputMaps.push_back(op.getMatchingIndexingMap(&init));
    }
  }
  unsigned inputCount = inputs.size();
  llvm::append_range(inputMaps, outputMaps);

  // 2. Both bodies, one behind the other.
  rewriter.setInsertionPoint(later);
  auto emit = [&](OpBuilder &builder, Location loc, ValueRange arguments) {
    SmallVector<Value> results;
    unsigned input = 0, output = inputCount;
    for (linalg::GenericOp op : {earlier, later}) {
      IRMapping mapping;
      for (OpOperand *operand : op.getDpsInputOperands()) {
        BlockArgument argument = op.getMatchingBlockArgument(operand);
        if (operand->get().getDefiningOp() == earlier)
          mapping.map(
              argument,
              results[cast<OpResult>(operand->get()).getResultNumber()]);
        else
          mapping.map(argument, arguments[input++]);
      }
      for (BlockArgument argument : op.getRegionOutputArgs())
        mapping.map(argument, arguments[output++]);
      for (Operation &inner : op.getBody()->without_terminator())
        builder.clone(inner, mapping);
      for (Value value : op.getBody()->getTerminator()->getOperands())
        results.push_back(mapping.lookupOrDefault(value));
    }
    linalg::YieldOp::create(builder, loc, results);
  };
  auto merged = linalg::GenericOp::create(
      rewriter, later.getLoc(), ValueRange(outputs).getTypes(), inputs, outputs,
      inputMaps, earlier.getIteratorTypesArray(), emit);
  std::optional<unsigned> plan = chooseVectorDimension(merged);
  if (plan != chooseVectorDimension(earlier) ||
      plan != chooseVectorDimension(later)) {
    rewriter.eraseOp(merged);
    return {};
  }

  // 3. In their place.
  rewriter.replaceAllUsesWith(
      later.getResults(), merged.getResults().take_back(later.getNumResults()));
  rewriter.eraseOp(later);
  rewriter.replaceAllUsesWith(
      earlier.getResults(),
      merged.getResults().take_front(earlier.getNumResults()));
  rewriter.eraseOp(earlier);
  return merged;
}

struct MergeReductionsPass
    : penstock::impl::PipelineMergeReductionsBase<MergeReductionsPass> {
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    IRRewriter rewriter(&getContext());
    bool changed = false;
    for (Block &block : getOperation().getBody()) {
      SmallVector<linalg::GenericOp> ops;
      for (auto op : block.getOps<linalg::GenericOp>())
        if (op.hasPureTensorSemantics() && op.getNumReductionLoops() > 0)
          ops.push_back(op);
      // Each op joins the last one before it that it can: one pass is enough.
      for (size_t i = 1; i < ops.size(); ++i)
        for (size_t j = i; j-- > 0;) {
          if (!ops[j] || !canMerge(ops[j], ops[i]))
            continue;
          linalg::GenericOp merged = merge(rewriter, ops[j], ops[i]);
          if (!merged)
            continue;
          ops[i] = merged;
          ops[j] = nullptr;
          changed = true;
        }
    }
    if (!changed)
      return;
    // Elementwise results that only the other op wanted, inputs of both.
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
