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

#include "passes/Kernels/Passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

#include <cmath>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEAPPROXIMATEMATH
#include "passes/Kernels/Passes.h.inc"
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

/// Returns whether this op is computed by a polynomial or by the C library.
bool isFunction(Operation *op) {
  return isa<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp,
             math::AtanOp, math::Atan2Op, math::AtanhOp, math::CbrtOp,
             math::CosOp, math::CoshOp, math::ErfOp, math::ErfcOp, math::ExpOp,
             math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log10Op,
             math::Log1pOp, math::Log2Op, math::PowFOp, math::SinOp,
             math::SinhOp, math::TanOp, math::TanhOp>(op);
}

/// Computes functions of f16 and bf16 in f32 and rounds once. On the host, the
/// conversion to calls of the C library does that.
struct ComputeInF32 : RewritePattern {
  explicit ComputeInF32(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isFunction(op) || op->getParentOfType<func::FuncOp>())
      return rewriter.notifyMatchFailure(op, "is no function of a kernel");
    Type type = op->getResult(0).getType();
    Type element = getElementTypeOrSelf(type);
    if (!element.isF16() && !element.isBF16())
      return rewriter.notifyMatchFailure(op, "is not of f16 or bf16");
    Type wide = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      wide = vector.clone(wide);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(
          arith::ExtFOp::create(rewriter, op->getLoc(), wide, operand));
    Operation *computed = rewriter.clone(*op);
    computed->setOperands(operands);
    computed->getResult(0).setType(wide);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type,
                                                 computed->getResult(0));
    return success();
  }
};

/// Writes f32 arithmetic on a scalar or on each lane of a vector.
class FloatWriter {
public:
  FloatWriter(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), type(type) {}

  Value constant(double value) {
    return constant(type, builder.getF32FloatAttr(static_cast<float>(value)));
  }
  Value integer(int32_t value) {
    return constant(integers(), builder.getI32IntegerAttr(value));
  }
  template <typename Op, typename... Operands>
  Value write(Operands... operands) {
    return Op::create(builder, loc, operands...);
  }
  /// NaN is in no order, and stays.
  Value clamp(Value value, double low, double high) {
    auto limit = [&](arith::CmpFPredicate isBeyond, double bound) {
      Value end = constant(bound);
      Value beyond = write<arith::CmpFOp>(isBeyond, end, value);
      value = write<arith::SelectOp>(beyond, end, value);
    };
    limit(arith::CmpFPredicate::OLT, high);
    limit(arith::CmpFPredicate::OGT, low);
    return value;
  }
  /// The coefficients begin with the constant one.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = write<math::FmaOp>(sum, x, constant(coefficient));
    return sum;
  }
  Value toBits(Value value) {
    return arith::BitcastOp::create(builder, loc, integers(), value);
  }
  Value fromBits(Value bits) {
    return arith::BitcastOp::create(builder, loc, type, bits);
  }

private:
  Type integers() {
    Type element = builder.getI32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(element);
    return element;
  }
  Value constant(Type of, TypedAttr attribute) {
    if (auto vector = dyn_cast<VectorType>(of))
      attribute = DenseElementsAttr::get(vector, Attribute(attribute));
    return arith::ConstantOp::create(builder, loc, attribute);
  }

  OpBuilder &builder;
  Location loc;
  Type type;
};

/// 2^n e^r with an integer n and |r| <= ln 2 / 2, where e^r is a polynomial of
/// the least relative error: 3e-9, and 0.9 ulp with the roundings of f32. Below
/// 2^-125.5, near the least normal number, results are 0. Upstream takes half
/// as many instructions again.
struct ExpToPolynomial : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    // Beyond these, n - 1 is the exponent of 0, and the result is infinite.
    constexpr double first = -87.3, last = 88.8;
    // Behind this number there is no place for fractions; its lowest bits are
    // zeros.
    constexpr double rounding = 0x1.8p23;
    // ln 2 in two parts, of which the first has few bits: n times it is exact.
    constexpr double ln2[] = {0x1.63p-1, -2.12194440e-4};
    // Of 2 e^r: with 2^n alone there would be no finite results from 2^127.5
    // on.
    constexpr double coefficients[] = {2.0,
                                       2.0,
                                       0.9999998686419795,
                                       0.33333040797693236,
                                       0.08333678157938312,
                                       0.01673749025424058,
                                       0.0027629079756477126};
    constexpr int32_t mantissaBits = 23, biasOfHalf = 126;
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "only f32 has the polynomial");
    FloatWriter f(rewriter, op.getLoc(), type);
    Value x = f.clamp(op.getOperand(), first, last);
    Value shifted =
        f.write<math::FmaOp>(x, f.constant(M_LOG2E), f.constant(rounding));
    Value n = f.write<arith::SubFOp>(shifted, f.constant(rounding));
    Value r = x;
    for (double part : ln2)
      r = f.write<math::FmaOp>(n, f.constant(-part), r);
    Value exponent = f.write<arith::AddIOp>(
        f.write<arith::ShLIOp>(f.toBits(shifted), f.integer(mantissaBits)),
        f.integer(biasOfHalf << mantissaBits));
    // A product, so that NaN stays.
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, f.polynomial(r, coefficients), f.fromBits(exponent));
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
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "only f32 has the polynomial");
    FloatWriter f(rewriter, op.getLoc(), type);
    Value x = f.clamp(op.getOperand(), -last, last);
    Value square = f.write<arith::MulFOp>(x, x);
    Value product = f.write<arith::MulFOp>(x, f.polynomial(square, over));
    Value quotient =
        f.write<arith::DivFOp>(product, f.polynomial(square, under));
    rewriter.replaceOp(op, f.clamp(quotient, -1, 1));
    return success();
  }
};

struct ApproximateMathPass
    : penstock::impl::PipelineApproximateMathBase<ApproximateMathPass> {
  using PipelineApproximateMathBase::PipelineApproximateMathBase;

  /// Returns true if other kinds of devices run the function.
  bool isElsewhere(Operation *op) const {
    auto function = dyn_cast<func::FuncOp>(op);
    return function && !penstock::pipeline::isOfKind(function, kind);
  }

  void runOnOperation() override {
    // 1. Polynomials, and what is exact in terms of square root and product.
    RewritePatternSet patterns(&getContext());
    patterns.add<ComputeInF32, Exp2ToExp, ExpToPolynomial, ErfToRational>(
        &getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained(
          {"math.log", "math.log2", "math.log1p", "math.expm1", "math.tanh"},
          name);
    });
    math::populateExpansionPatterns(patterns, {"rsqrt", "fpowi", "clampf"});
    FrozenRewritePatternSet frozen(std::move(patterns));
    WalkResult result = getOperation().walk([&](FunctionOpInterface function) {
      return isElsewhere(function)
                 ? WalkResult::advance()
                 : WalkResult(applyPatternsGreedily(function, frozen));
    });
    if (result.wasInterrupted())
      return signalPassFailure();

    // 2. The C library for the rest, lane by lane. Instructions stay.
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([this](Operation *op) {
      auto function = op->getParentOfType<func::FuncOp>();
      return !isFunction(op) || !function || isElsewhere(function);
    });
    RewritePatternSet calls(&getContext());
    populateMathToLibmConversionPatterns(calls);
    if (failed(
            applyPartialConversion(getOperation(), target, std::move(calls))))
      signalPassFailure();
  }
};

} // namespace
