//===- ApproximateMath.cpp - Functions become polynomials -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exp, log, tanh, erf and the like on f32 become a few multiplications and
// additions, the same for a scalar and for each lane of a vector. What has no
// accurate polynomial upstream (sin, cos, atan; everything in f64) is left to
// the C library.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/Passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

#include <cmath>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEAPPROXIMATEMATH
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

using namespace mlir;

namespace {

/// 2^x = exp(x ln 2): there is no polynomial of its own.
struct Exp2ToExp : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "only f32 has the polynomial");
    auto value = rewriter.getFloatAttr(rewriter.getF32Type(), M_LN2);
    TypedAttr attribute = value;
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, Attribute(value));
    Value factor = arith::ConstantOp::create(rewriter, op.getLoc(), attribute);
    Value product =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), factor);
    rewriter.replaceOpWithNewOp<math::ExpOp>(op, product);
    return success();
  }
};

struct ApproximateMathPass
    : penstock::impl::PipelineApproximateMathBase<ApproximateMathPass> {
  void runOnOperation() override {
    // 1. Polynomials, and what is exact in terms of square root and product.
    RewritePatternSet patterns(&getContext());
    patterns.add<Exp2ToExp>(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.log", "math.log2",
                                 "math.log1p", "math.expm1", "math.tanh",
                                 "math.erf"},
                                name);
    });
    math::populateExpansionPatterns(patterns, {"rsqrt", "fpowi", "clampf"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();

    // 2. The C library for the rest, lane by lane. Instructions stay.
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<
        math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp, math::AtanOp,
        math::Atan2Op, math::AtanhOp, math::CbrtOp, math::CosOp, math::CoshOp,
        math::ErfOp, math::ErfcOp, math::ExpOp, math::Exp2Op, math::ExpM1Op,
        math::LogOp, math::Log10Op, math::Log1pOp, math::Log2Op, math::PowFOp,
        math::SinOp, math::SinhOp, math::TanOp, math::TanhOp>();
    RewritePatternSet calls(&getContext());
    populateMathToLibmConversionPatterns(calls);
    if (failed(
            applyPartialConversion(getOperation(), target, std::move(calls))))
      signalPassFailure();
  }
};

} // namespace
