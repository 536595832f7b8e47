//===- ExpandComposites.cpp - Composite ops become linalg ops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Once derivatives are taken, nothing needs a composite whole: each becomes a
// few generics or loops. The patterns are in a file per family; here is what
// comes before them: ops that differ in training, and convolutions that the
// library of the target does not compute.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/Composites.h"
#include "passes/Kernels/LibraryConvolutions.h"
#include "passes/Kernels/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace penstock {
#define GEN_PASS_DEF_NNEXPANDCOMPOSITES
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// A function that no tasks were derived from does what the model says.
class NoTraining : public nn::TrainingContext {
public:
  bool freezesStatistics() const override { return false; }
  Value getMicrobatch() override { return nullptr; }
  Value getSeed() override { return nullptr; }
  Value getState(Value state) override { return state; }
  void setState(Value, Value) override {}
};

struct ExpandCompositesPass
    : penstock::impl::NnExpandCompositesBase<ExpandCompositesPass> {
  using NnExpandCompositesBase::NnExpandCompositesBase;

  LogicalResult expandModeDependent() {
    SmallVector<nn::ModeDependentOpInterface> ops;
    getOperation()->walk(
        [&](nn::ModeDependentOpInterface op) { ops.push_back(op); });
    NoTraining context;
    for (nn::ModeDependentOpInterface op : ops) {
      OpBuilder builder(op);
      SmallVector<Value> results;
      if (failed(op.trainsByItself()
                     ? op.expandForTraining(builder, context, results)
                     : op.expandForInference(builder, results)))
        return failure();
      op->replaceAllUsesWith(results);
      op->erase();
    }
    return success();
  }

  /// Convolutions stay where the library of the target is good at them.
  bool staysForLibrary(Operation *op, const nn::Convolution &conv) const {
    return library &&
           takesConvolution(op, conv, conv.getType(conv.input).getElementType(),
                            "becomes loops");
  }

  void runOnOperation() override {
    if (failed(expandModeDependent()))
      return signalPassFailure();
    SmallVector<Operation *> loops;
    getOperation()->walk([&](Operation *op) {
      auto conv = nn::Convolution::match(op);
      if (conv && op->getNumResults() && !staysForLibrary(op, *conv))
        loops.push_back(op);
    });
    for (Operation *op : loops)
      expandConvolution(op);
    RewritePatternSet patterns(&getContext());
    populateExpandCrossEntropy(patterns);
    populateExpandNormalize(patterns);
    populateExpandPooling(patterns);
    populateExpandRandom(patterns);
    populateExpandIndexing(patterns);
    populateExpandAlongAxis(patterns);
    // Blocks stay as they are.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    // What is left is an op that this pass does not know.
    WalkResult left = getOperation()->walk([](Operation *op) {
      if (!isa_and_nonnull<nn::NnDialect>(op->getDialect()) ||
          nn::Convolution::match(op))
        return WalkResult::advance();
      op->emitOpError("has no expansion");
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
