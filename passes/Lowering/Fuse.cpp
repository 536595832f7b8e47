//===- Fuse.cpp - Elementwise ops join their users ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream offers the fusion of one pair; its driver only fuses producers with
// one use, or computes the others twice. Here the fused op replaces the
// producer wherever it was used. A fusion that would change how a reduction is
// ordered is undone: bits do not depend on what happens to stand in one
// function.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/Passes.h"
#include "passes/Lowering/VectorPlan.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFUSE
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

bool isElementwise(linalg::GenericOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

/// Few enough operations that computing them again costs less than a load.
bool isCheap(linalg::GenericOp op) {
  int64_t count = 0;
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (isa_and_nonnull<math::MathDialect>(inner.getDialect()) ||
        isa<arith::DivFOp, arith::RemFOp>(inner))
      return false;
    ++count;
  }
  return count <= 2;
}

/// Fills and splats among the inputs become scalars of the body.
void takeScalars(RewriterBase &rewriter, linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (argument.use_empty())
      continue;
    DenseElementsAttr constant;
    Value scalar;
    if (auto fill = input->get().getDefiningOp<linalg::FillOp>()) {
      scalar = fill.getInputs().front();
    } else if (matchPattern(input->get(), m_Constant(&constant)) &&
               constant.isSplat()) {
      auto value = dyn_cast<TypedAttr>(constant.getSplatValue<Attribute>());
      if (!value || !isa<FloatAttr, IntegerAttr>(value))
        continue;
      rewriter.setInsertionPoint(op);
      scalar = arith::ConstantOp::create(rewriter, op.getLoc(), value);
    }
    if (scalar && scalar.getType() == argument.getType())
      rewriter.replaceAllUsesWith(argument, scalar);
  }
}

/// An elementwise op that overwrites the result of another reads it as an input
/// instead: fusion looks at inputs only.
linalg::GenericOp readAsInput(RewriterBase &rewriter, linalg::GenericOp op) {
  if (!isElementwise(op))
    return op;
  SmallVector<Value> inputs = op.getInputs(), outputs = op.getOutputs();
  SmallVector<AffineMap> inputMaps, outputMaps;
  SmallVector<unsigned> moved;
  for (OpOperand *input : op.getDpsInputOperands())
    inputMaps.push_back(op.getMatchingIndexingMap(input));
  rewriter.setInsertionPoint(op);
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    outputMaps.push_back(map);
    if (op.getMatchingBlockArgument(&init).use_empty() ||
        !init.get().getDefiningOp<linalg::GenericOp>())
      continue;
    auto type = cast<RankedTensorType>(init.get().getType());
    moved.push_back(index);
    inputs.push_back(init.get());
    inputMaps.push_back(map);
    outputs[index] = tensor::EmptyOp::create(
        rewriter, op.getLoc(), type.getShape(), type.getElementType());
  }
  if (moved.empty())
    return op;
  unsigned inputCount = op.getNumDpsInputs();
  llvm::append_range(inputMaps, outputMaps);
  auto result = linalg::GenericOp::create(
      rewriter, op.getLoc(), op.getResultTypes(), inputs, outputs, inputMaps,
      op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getRegion(), result.getRegion(),
                              result.getRegion().end());
  Block *body = result.getBody();
  for (auto [position, output] : llvm::enumerate(moved)) {
    unsigned at = inputCount + position;
    BlockArgument old = body->getArgument(at + output);
    BlockArgument argument =
        body->insertArgument(at, old.getType(), old.getLoc());
    rewriter.replaceAllUsesWith(body->getArgument(at + 1 + output), argument);
  }
  rewriter.replaceOp(op, result.getResults());
  return result;
}

class Fuser {
public:
  Fuser(RewriterBase &rewriter) : rewriter(rewriter) {}

  /// Fuses producers into `consumer` as long as one can be; returns whether any
  /// was.
  bool run(linalg::GenericOp consumer);

private:
  /// Whether `producer` may be computed where `consumer` is, and moves the
  /// consumer up when that is what it takes.
  bool arrange(linalg::GenericOp producer, OpOperand &operand);
  bool fuse(OpOperand &operand);

  RewriterBase &rewriter;
};

bool Fuser::arrange(linalg::GenericOp producer, OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  Block *block = consumer->getBlock();
  bool isOnlyUse =
      producer->getNumResults() == 1 && producer->getResult(0).hasOneUse();
  if (isOnlyUse)
    return true;
  // The results stay, so all of them must be needed once per iteration.
  AffineMap map = consumer.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation() ||
      (map.getNumResults() != map.getNumDims()))
    return false;
  bool mustMove = false;
  for (Operation *user : producer->getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor)
      return false;
    mustMove |= ancestor->isBeforeInBlock(consumer);
  }
  // Another result that the consumer reads must be yielded by the fused op.
  auto own =
      producer.getIndexingMapMatchingResult(cast<OpResult>(operand.get()));
  for (OpOperand &other : consumer->getOpOperands()) {
    if (&other == &operand || other.get().getDefiningOp() != producer)
      continue;
    auto result = cast<OpResult>(other.get());
    if (!consumer.isDpsInput(&other) ||
        consumer.getMatchingIndexingMap(&other) != map ||
        producer.getIndexingMapMatchingResult(result) != own ||
        llvm::all_of(result.getUsers(),
                     [&](Operation *user) { return user == consumer; }))
      return false;
  }
  if (!mustMove)
    return true;
  for (Value value : consumer->getOperands()) {
    Operation *source = value.getDefiningOp();
    if (!source || source == producer || source->getBlock() != block ||
        source->isBeforeInBlock(producer))
      continue;
    // A fresh destination comes along.
    if (!isa<tensor::EmptyOp>(source))
      return false;
    source->moveBefore(producer);
  }
  // What the body takes from outside must be there as well.
  WalkResult captured = consumer.getBody()->walk([&](Operation *inner) {
    for (Value value : inner->getOperands()) {
      Operation *source = value.getDefiningOp();
      if (source && source->getBlock() == block &&
          !source->isBeforeInBlock(producer))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (captured.wasInterrupted())
    return false;
  rewriter.moveOpAfter(consumer, producer);
  return true;
}

bool Fuser::fuse(OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getBlock() != consumer->getBlock() ||
      !isElementwise(producer) || !consumer.isDpsInput(&operand) ||
      !linalg::areElementwiseOpsFusable(&operand))
    return false;
  AffineMap map = consumer.getMatchingIndexingMap(&operand);
  if (map.getNumResults() != map.getNumDims() && !isCheap(producer))
    return false;
  std::optional<unsigned> plan = chooseVectorDimension(consumer);
  if (!plan && chooseVectorDimension(producer))
    return false;
  if (!arrange(producer, operand))
    return false;

  rewriter.setInsertionPoint(consumer);
  FailureOr<linalg::ElementwiseOpFusionResult> result =
      linalg::fuseElementwiseOps(rewriter, &operand);
  if (failed(result))
    return false;
  auto fused = cast<linalg::GenericOp>(result->fusedOp);
  auto replaces = [&](Value value) {
    return value.use_empty() || result->replacements.contains(value) ||
           llvm::all_of(value.getUsers(),
                        [&](Operation *user) { return user == consumer; });
  };
  if (chooseVectorDimension(fused) != plan ||
      !llvm::all_of(producer->getResults(), replaces)) {
    rewriter.eraseOp(fused);
    return false;
  }
  // What it reads of the producer besides is there already.
  for (OpOperand *input : fused.getDpsInputOperands()) {
    if (input->get().getDefiningOp() != producer)
      continue;
    auto number = cast<OpResult>(result->replacements.lookup(input->get()))
                      .getResultNumber();
    rewriter.replaceAllUsesWith(
        fused.getMatchingBlockArgument(input),
        fused.getBody()->getTerminator()->getOperand(number));
    input->set(fused.getDpsInitOperand(number)->get());
  }
  for (auto [value, replacement] : result->replacements)
    rewriter.replaceUsesWithIf(value, replacement, [&](OpOperand &use) {
      return use.getOwner() != consumer && use.getOwner() != fused;
    });
  rewriter.eraseOp(consumer);
  if (producer->use_empty())
    rewriter.eraseOp(producer);
  return true;
}

bool Fuser::run(linalg::GenericOp consumer) {
  for (OpOperand *input : consumer.getDpsInputOperands())
    if (fuse(*input))
      return true;
  return false;
}

struct FusePass : penstock::impl::PipelineFuseBase<FusePass> {
  LogicalResult cleanUp(func::FuncOp function) {
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
    return applyPatternsGreedily(function, std::move(patterns));
  }

  LogicalResult fuse(func::FuncOp function) {
    IRRewriter rewriter(&getContext());
    auto generics = [&] {
      SmallVector<linalg::GenericOp> ops;
      function.walk([&](linalg::GenericOp op) {
        if (op.hasPureTensorSemantics())
          ops.push_back(op);
      });
      return ops;
    };
    // 1. Make what can be fused visible.
    for (linalg::GenericOp op : generics())
      takeScalars(rewriter, readAsInput(rewriter, op));
    // 2. From the top, so that a chain ends up in its last op. Each fusion
    // removes an op: this ends.
    bool changed = true;
    while (changed) {
      if (failed(cleanUp(function)))
        return failure();
      changed = false;
      for (linalg::GenericOp op : generics())
        if (Fuser(rewriter).run(op)) {
          changed = true;
          break;
        }
    }
    return success();
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && failed(fuse(function)))
        return signalPassFailure();
  }
};

} // namespace
