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

/// x P(x^2) / Q(x^2), of the least relative error over [0, 3.92]: 2e-8, and 6
/// ulp with the roundings of f32. Beyond it is 1. Upstream chooses one of three
/// polynomials by element, which takes twice as many instructions.
struct ErfToRational : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &rewriter) const override {
    constexpr double last = 3.92;
    constexpr double over[] = {1.1283791461523238,   0.19040614185958457,
                               0.05274867128020418,  0.0037656009786321137,
                               0.000284882049167643, 2.050085435356133e-06};
    constexpr double under[] = {1.0,
                                0.5020757906839836,
                                0.11410896959889742,
                                0.014969184280070788,
                                0.001162531074665209,
                                3.809166093213684e-05};
    Location loc = op.getLoc();
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "only f32 has the polynomial");
    auto constant = [&](double value) -> Value {
      TypedAttr attribute = rewriter.getF32FloatAttr(static_cast<float>(value));
      if (auto vector = dyn_cast<VectorType>(type))
        attribute = DenseElementsAttr::get(vector, Attribute(attribute));
      return arith::ConstantOp::create(rewriter, loc, attribute);
    };
    // NaN is in no order, and stays.
    auto clamp = [&](Value value, double bound) {
      auto limit = [&](arith::CmpFPredicate isBeyond, double bound) {
        Value end = constant(bound);
        Value beyond =
            arith::CmpFOp::create(rewriter, loc, isBeyond, end, value);
        value = arith::SelectOp::create(rewriter, loc, beyond, end, value);
      };
      limit(arith::CmpFPredicate::OLT, bound);
      limit(arith::CmpFPredicate::OGT, -bound);
      return value;
    };
    Value x = clamp(op.getOperand(), last);
    Value square = arith::MulFOp::create(rewriter, loc, x, x);
    auto polynomial = [&](ArrayRef<double> coefficients) {
      Value sum = constant(coefficients.back());
      for (double coefficient : llvm::reverse(coefficients.drop_back()))
        sum = math::FmaOp::create(rewriter, loc, sum, square,
                                  constant(coefficient));
      return sum;
    };
    Value product = arith::MulFOp::create(rewriter, loc, x, polynomial(over));
    Value quotient =
        arith::DivFOp::create(rewriter, loc, product, polynomial(under));
    rewriter.replaceOp(op, clamp(quotient, 1));
    return success();
  }
};

struct ApproximateMathPass
    : penstock::impl::PipelineApproximateMathBase<ApproximateMathPass> {
  void runOnOperation() override {
    // 1. Polynomials, and what is exact in terms of square root and product.
    RewritePatternSet patterns(&getContext());
    patterns.add<Exp2ToExp, ErfToRational>(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.log", "math.log2",
                                 "math.log1p", "math.expm1", "math.tanh"},
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
