//===- ExpandBf16.cpp - Conversions to and from bf16 ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's expansion knows f32 and bf16. Other float types go through f32,
// which holds every value of f16 and bf16.
//===----------------------------------------------------------------------===//

#include "passes/Cpu/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEEXPANDBF16
#include "passes/Cpu/Passes.h.inc"
} // namespace penstock

using namespace mlir;

namespace {

/// `type`, a float or a vector of floats, with elements of f32.
Type getF32(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(f32) : f32;
}

/// f64 to bf16: by way of f32.
struct TruncateThroughF32 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value from = op.getIn();
    if (!getElementTypeOrSelf(op.getType()).isBF16() ||
        getElementTypeOrSelf(from.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "is no truncation of f64 to bf16");
    Value middle = arith::TruncFOp::create(rewriter, op.getLoc(),
                                           getF32(op.getType()), from);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), middle);
    return success();
  }
};

/// bf16 to f64: by way of f32.
struct ExtendThroughF32 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Value from = op.getIn();
    if (!getElementTypeOrSelf(from.getType()).isBF16() ||
        getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "is no extension of bf16 to f64");
    Value middle = arith::ExtFOp::create(rewriter, op.getLoc(),
                                         getF32(op.getType()), from);
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), middle);
    return success();
  }
};

struct ExpandBf16Pass : penstock::impl::PipelineExpandBf16Base<ExpandBf16Pass> {
  void runOnOperation() override {
    if (!penstock::getCpuTarget(getOperation()))
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<TruncateThroughF32, ExtendThroughF32>(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
