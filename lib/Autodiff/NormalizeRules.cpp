//===- NormalizeRules.cpp - Derivatives of normalizations -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backward keeps x, or the normalized x where it is wanted as such, and a
// few numbers per row. All of it depends on x alone, so it is right whatever
// weights the backward reads.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "lib/Autodiff/Rules.h"
#include "penstock/Support/Structured.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// The cotangents that enter, and what is needed of the forward.
struct Normalization {
  Operation *op;
  /// The mean is null where none is subtracted.
  Value input, normalized, mean, variance;
  ArrayRef<int64_t> dims;
  double epsilon;
};

std::optional<Normalization> matchNormalization(Operation *op) {
  if (auto norm = dyn_cast<nn::NormalizeOp>(op))
    return Normalization{op,
                         norm.getInput(),
                         norm.getResult(),
                         norm.getMean(),
                         norm.getVariance(),
                         norm.getDims(),
                         norm.getEpsilon().convertToDouble()};
  if (auto norm = dyn_cast<nn::RmsNormalizeOp>(op))
    return Normalization{op,
                         norm.getInput(),
                         norm.getResult(),
                         Value(),
                         norm.getMeanSquare(),
                         norm.getDims(),
                         norm.getEpsilon().convertToDouble()};
  return std::nullopt;
}

/// Adds the cotangent through the statistics themselves: d mean / dx = 1/N and
/// d variance / dx = 2 (x - mean) / N = 2 normalized sqrt(variance + epsilon) /
/// N, which is that of the mean square as well.
void addThroughStatistics(const Normalization &norm, Value dMean,
                          Value dVariance, Pullback &pullback) {
  Structured emit(pullback.getBuilder(), norm.op->getLoc());
  auto type = cast<RankedTensorType>(norm.input.getType());
  AffineMap identity = emit.identity(type.getRank());
  AffineMap reduced = identity;
  double count = 1;
  for (int64_t dim : llvm::reverse(norm.dims)) {
    reduced = reduced.dropResult(dim);
    count *= static_cast<double>(type.getDimSize(dim));
  }
  auto add = [&](ArrayRef<Value> inputs, ArrayRef<AffineMap> maps, Value factor,
                 Structured::Body body) {
    Value gradient = emit.generic(
        inputs, emit.empty(type), maps, Structured::parallel(type.getRank()),
        [&](Scalars &s, ValueRange in) { return s.mul(body(s, in), factor); });
    pullback.add(norm.input, gradient, emit.loc);
  };
  auto constant = [&](double value) {
    return emit.constant(type.getElementType(), value);
  };
  if (dMean)
    add(dMean, {reduced, identity}, constant(1 / count),
        [](Scalars &, ValueRange in) { return in[0]; });
  if (!dVariance)
    return;
  Value epsilon = constant(norm.epsilon);
  add({dVariance, pullback.getPrimal(norm.variance),
       pullback.getPrimal(norm.normalized)},
      {reduced, reduced, identity, identity}, constant(2 / count),
      [&](Scalars &s, ValueRange in) {
        Value deviation = s.make<math::SqrtOp>(s.add(in[1], epsilon));
        return s.mul(in[0], s.mul(in[2], deviation));
      });
}

template <typename Op>
LogicalResult pullBackNormalization(Op op, Pullback &pullback) {
  Normalization norm = *matchNormalization(op);
  OpBuilder &builder = pullback.getBuilder();
  Location loc = op.getLoc();
  Value dMean = norm.mean ? pullback.getCotangent(norm.mean) : Value();
  addThroughStatistics(norm, dMean, pullback.getCotangent(norm.variance),
                       pullback);
  Value dy = pullback.getCotangent(norm.normalized);
  if (!dy)
    return success();
  Value dx = nn::NormalizeGradOp::create(
      builder, loc, norm.input.getType(), dy,
      pullback.getPrimal(norm.normalized), pullback.getPrimal(norm.variance),
      norm.dims, APFloat(norm.epsilon), /*uncentered=*/!norm.mean);
  pullback.add(norm.input, dx, loc);
  return success();
}

/// Returns true if `user` can have each of the values made where it reads it: a
/// loop that reads them one by one. A product, or a view, wants all of them in
/// memory.
bool readsElements(Operation *user, Value values) {
  if (isa<nn::NormalizeGradOp>(user))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(user);
  return generic &&
         llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
           if (operand.get() != values)
             return true;
           AffineMap map = generic.getMatchingIndexingMap(&operand);
           return generic.isDpsInput(&operand) && map.isPermutation() &&
                  map.getNumResults() == map.getNumDims();
         });
}

/// Moves what `value` is computed from to the start of the block: views of
/// arguments, which are there from the beginning.
void moveToStart(Value value, Block &block) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  op->moveBefore(&block, block.begin());
  for (Value operand : op->getOperands())
    moveToStart(operand, block);
}

} // namespace

void penstock::keepOperandsOfNormalizations(Block &forward,
                                            Pullback &pullback) {
  for (Operation &op : llvm::reverse(forward)) {
    std::optional<Normalization> norm = matchNormalization(&op);
    if (!norm)
      continue;
    Value kept =
        pullback.findArgument(ArgumentRole::Residual, norm->normalized);
    if (!kept || !llvm::all_of(kept.getUsers(), [&](Operation *user) {
          return readsElements(user, kept);
        }))
      continue;
    // One for one, and for nothing where x is kept anyway.
    Value x = pullback.getPrimal(norm->input);
    moveToStart(x, *kept.getParentBlock());
    Value mean = norm->mean ? pullback.getPrimal(norm->mean) : Value();
    Value variance = pullback.getPrimal(norm->variance);
    // Each user has its own, so that halves of a backward share nothing.
    llvm::SetVector<Operation *> users(kept.user_begin(), kept.user_end());
    for (Operation *user : users) {
      OpBuilder builder(user);
      Value again = nn::StandardizeOp::create(
          builder, norm->op->getLoc(), x.getType(), x, mean, variance,
          norm->dims, APFloat(norm->epsilon));
      user->replaceUsesOfWith(kept, again);
    }
  }
}

void penstock::registerNormalizeRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                         math::MathDialect, tensor::TensorDialect>();
    nn::NormalizeOp::attachInterface<
        RuleModel<nn::NormalizeOp, pullBackNormalization>>(*context);
    nn::RmsNormalizeOp::attachInterface<
        RuleModel<nn::RmsNormalizeOp, pullBackNormalization>>(*context);
  });
}
