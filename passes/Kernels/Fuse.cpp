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

#include "passes/Kernels/KernelSize.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/ReductionOrder.h"
#include "passes/Kernels/Widening.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFUSE
#include "passes/Kernels/Passes.h.inc"
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

/// Without a bound, the time to fuse a chain would grow with the cube of its
/// length. By then a kernel computes for longer than it waits for memory.
constexpr size_t mostOperands = 64;

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
  Fuser(RewriterBase &rewriter, int64_t mostOperations)
      : rewriter(rewriter), mostOperations(mostOperations) {}

  /// Fuses a producer into `consumer` and returns what both became; null if
  /// none can be.
  linalg::GenericOp run(linalg::GenericOp consumer);

private:
  /// Returns true where both in one would have too many operands or operations.
  bool isTooLong(linalg::GenericOp producer, linalg::GenericOp consumer);
  /// Returns true if `producer` may be computed where `consumer` is, and moves
  /// the consumer up if that needs it.
  bool arrange(linalg::GenericOp producer, OpOperand &operand);
  linalg::GenericOp fuse(OpOperand &operand);

  RewriterBase &rewriter;
  int64_t mostOperations;
};

bool Fuser::isTooLong(linalg::GenericOp producer, linalg::GenericOp consumer) {
  return producer->getNumOperands() + consumer->getNumOperands() >
             mostOperands ||
         countOperations(producer) + countOperations(consumer) > mostOperations;
}

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

linalg::GenericOp Fuser::fuse(OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getBlock() != consumer->getBlock() ||
      !isElementwise(producer) || isTooLong(producer, consumer) ||
      !consumer.isDpsInput(&operand) ||
      !linalg::areElementwiseOpsFusable(&operand))
    return {};
  AffineMap map = consumer.getMatchingIndexingMap(&operand);
  if (map.getNumResults() != map.getNumDims() && !isCheap(producer))
    return {};
  std::optional<unsigned> plan = chooseVectorDimension(consumer);
  if (!plan && chooseVectorDimension(producer))
    return {};
  if (!arrange(producer, operand))
    return {};

  rewriter.setInsertionPoint(consumer);
  FailureOr<linalg::ElementwiseOpFusionResult> result =
      linalg::fuseElementwiseOps(rewriter, &operand);
  if (failed(result))
    return {};
  auto fused = cast<linalg::GenericOp>(result->fusedOp);
  auto replaces = [&](Value value) {
    return value.use_empty() || result->replacements.contains(value) ||
           llvm::all_of(value.getUsers(),
                        [&](Operation *user) { return user == consumer; });
  };
  if (chooseVectorDimension(fused) != plan ||
      !llvm::all_of(producer->getResults(), replaces)) {
    rewriter.eraseOp(fused);
    return {};
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
  return fused;
}

linalg::GenericOp Fuser::run(linalg::GenericOp consumer) {
  for (OpOperand *input : consumer.getDpsInputOperands())
    if (linalg::GenericOp fused = fuse(*input))
      return fused;
  return {};
}

/// Every op that reads bf16 as f32 extends it for itself, so that no tensor of
/// f32 is stored for several.
static void widenPerUse(RewriterBase &rewriter, linalg::GenericOp op) {
  if (!isWidening(op))
    return;
  rewriter.setInsertionPoint(op);
  for (OpOperand &use :
       llvm::make_early_inc_range(llvm::drop_begin(op->getUses()))) {
    Operation *copy = rewriter.clone(*op);
    rewriter.modifyOpInPlace(use.getOwner(),
                             [&] { use.set(copy->getResult(0)); });
  }
}

/// The elementwise ops and reductions of a function that are there at a time,
/// and what became of one of them.
class LiveGenerics : public RewriterBase::Listener {
public:
  /// Those of the function now, from the top.
  SmallVector<linalg::GenericOp> collect(func::FuncOp function);
  bool contains(linalg::GenericOp op) const { return live.contains(op); }
  /// Follows an op through what replaces it.
  void follow(linalg::GenericOp op) { followed = op; }
  linalg::GenericOp getFollowed() const { return followed; }

private:
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint /*previous*/) override;
  void notifyOperationReplaced(Operation *op, ValueRange values) override;
  void notifyOperationErased(Operation *op) override;

  DenseSet<Operation *> live;
  linalg::GenericOp followed;
};

SmallVector<linalg::GenericOp> LiveGenerics::collect(func::FuncOp function) {
  live.clear();
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) {
    if (!op.hasPureTensorSemantics())
      return;
    ops.push_back(op);
    live.insert(op);
  });
  return ops;
}

void LiveGenerics::notifyOperationInserted(Operation *op,
                                           OpBuilder::InsertPoint) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op);
      generic && generic.hasPureTensorSemantics())
    live.insert(op);
}

void LiveGenerics::notifyOperationReplaced(Operation *op, ValueRange values) {
  if (followed == op && !values.empty())
    followed = values.front().getDefiningOp<linalg::GenericOp>();
}

void LiveGenerics::notifyOperationErased(Operation *op) {
  live.erase(op);
  if (followed == op)
    followed = {};
}

struct FusePass : penstock::impl::PipelineFuseBase<FusePass> {
  using PipelineFuseBase::PipelineFuseBase;

  FrozenRewritePatternSet getCleanUp() {
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
    return std::move(patterns);
  }

  LogicalResult fuse(func::FuncOp function,
                     const FrozenRewritePatternSet &cleanUp) {
    LiveGenerics generics;
    IRRewriter rewriter(&getContext(), &generics);
    // 1. Make what can be fused visible.
    for (linalg::GenericOp op : generics.collect(function))
      takeScalars(rewriter, readAsInput(rewriter, op));
    for (linalg::GenericOp op : generics.collect(function))
      widenPerUse(rewriter, op);
    // 2. From the top, so that a chain ends up in its last op. What a fusion
    // leaves is cleaned up around it, since what nobody reads any more stands
    // in the way of the next. Each fusion removes an op: this ends.
    // No constants are to be folded there, and to look for them in the return
    // of a long chain, which all fusions change, takes as long as the chain.
    GreedyRewriteConfig nearby;
    nearby.setListener(&generics);
    nearby.enableFolding(false);
    // Blocks stay as they are, and what is unused goes without a search for it.
    GreedyRewriteConfig everywhere;
    everywhere.setRegionSimplificationLevel(
        GreedySimplifyRegionLevel::Disabled);
    bool changed = true;
    while (changed) {
      if (failed(applyPatternsGreedily(function, cleanUp, everywhere)))
        return failure();
      changed = false;
      for (linalg::GenericOp op : generics.collect(function)) {
        if (!generics.contains(op))
          continue;
        while (op) {
          linalg::GenericOp fused = Fuser(rewriter, mostOperations).run(op);
          if (!fused)
            break;
          changed = true;
          generics.follow(fused);
          SetVector<Operation *> touched;
          touched.insert(fused);
          touched.insert_range(fused->getUsers());
          if (failed(applyOpPatternsGreedily(touched.getArrayRef(), cleanUp,
                                             nearby)))
            return failure();
          op = generics.getFollowed();
        }
      }
    }
    return success();
  }

  void runOnOperation() override {
    FrozenRewritePatternSet cleanUp = getCleanUp();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && failed(fuse(function, cleanUp)))
        return signalPassFailure();
  }
};

} // namespace
