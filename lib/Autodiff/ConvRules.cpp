//===- ConvRules.cpp - Derivatives of convolutions ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution and the gradient of its input are each other's transpose, and
// both have the same gradient of weights. That one adds to its accumulator.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Convolution.h"
#include "lib/Autodiff/Rules.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

/// Adds the gradient of the weights from the convolution's input and cotangent.
template <typename Op>
static void addWeightGradient(Op op, Value input, Value cotangent,
                              Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  Value weights = op.getSecond();
  Value accumulator = pullback.getAccumulator(weights);
  Value start = accumulator
                    ? accumulator
                    : createZeros(builder, op.getLoc(),
                                  cast<RankedTensorType>(weights.getType()));
  Value gradient =
      nn::ConvWeightGradOp::create(builder, op.getLoc(), input, cotangent,
                                   start, op.getStrides(), op.getDilations(),
                                   op.getPads(), op.getGroups())
          .getResult(0);
  if (accumulator)
    pullback.setAccumulator(weights, gradient);
  else
    pullback.add(weights, gradient, op.getLoc());
}

/// Adds the cotangent of the operand that the other op, of the cotangent and
/// the weights, gives.
template <typename Transposed, typename Op>
static void addOperandGradient(Op op, Value cotangent, Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  auto type = cast<RankedTensorType>(op.getFirst().getType());
  Value empty =
      tensor::EmptyOp::create(builder, op.getLoc(), type, ValueRange());
  Value gradient = Transposed::create(builder, op.getLoc(), cotangent,
                                      pullback.getPrimal(op.getSecond()), empty,
                                      op.getStrides(), op.getDilations(),
                                      op.getPads(), op.getGroups())
                       .getResult(0);
  pullback.add(op.getFirst(), gradient, op.getLoc());
}

static LogicalResult pullBackConv(nn::ConvOp op, Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult(0));
  if (pullback.isActive(op.getSecond()))
    addWeightGradient(op, pullback.getPrimal(op.getFirst()), dy, pullback);
  if (pullback.isActive(op.getFirst()))
    addOperandGradient<nn::ConvInputGradOp>(op, dy, pullback);
  return success();
}

static LogicalResult pullBackInputGrad(nn::ConvInputGradOp op,
                                       Pullback &pullback) {
  Value dx = pullback.getCotangent(op.getResult(0));
  if (pullback.isActive(op.getSecond()))
    addWeightGradient(op, dx, pullback.getPrimal(op.getFirst()), pullback);
  if (pullback.isActive(op.getFirst()))
    addOperandGradient<nn::ConvOp>(op, dx, pullback);
  return success();
}

namespace {
/// The destination is overwritten.
template <typename Op, LogicalResult (*rule)(Op, Pullback &)>
struct ConvModel
    : DifferentiableOpInterface::ExternalModel<ConvModel<Op, rule>, Op> {
  LogicalResult pullBack(Operation *op, Pullback &pullback) const {
    return rule(cast<Op>(op), pullback);
  }
  bool carriesGradient(Operation *op, Value operand, Value result) const {
    return operand == cast<Op>(op).getFirst() ||
           operand == cast<Op>(op).getSecond();
  }
};
} // namespace

void penstock::registerConvRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    nn::ConvOp::attachInterface<ConvModel<nn::ConvOp, pullBackConv>>(*context);
    nn::ConvInputGradOp::attachInterface<
        ConvModel<nn::ConvInputGradOp, pullBackInputGrad>>(*context);
  });
}
