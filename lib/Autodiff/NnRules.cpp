//===- NnRules.cpp - Derivatives of nn ops --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Composite rules: the derivative of the whole is stabler than that of parts.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "lib/Autodiff/Rules.h"
#include "penstock/Autodiff/Autodiff.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

static LogicalResult pullBackCrossEntropy(nn::CrossEntropyOp op,
                                          Pullback &pullback) {
  if (pullback.getCotangent(op.getProbabilities()))
    return op.emitError() << "a gradient flows into the probabilities of "
                             "'nn.cross_entropy': use a softmax of its own";
  Value dl = pullback.getCotangent(op.getLoss());
  OpBuilder &builder = pullback.getBuilder();
  Location loc = op.getLoc();
  RankedTensorType type = op.getLogits().getType();
  Value probabilities;
  if (pullback.mixesDataAndParameters(op)) {
    // Logits made of parameters alone: those of the backward count.
    Value logits = pullback.getPrimal(op.getLogits());
    Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
    probabilities =
        linalg::SoftmaxOp::create(builder, loc, TypeRange(type), logits, empty,
                                  static_cast<uint64_t>(type.getRank() - 1))
            ->getResult(0);
  } else {
    probabilities = pullback.getPrimal(op.getProbabilities());
  }
  Value gradient = nn::CrossEntropyGradOp::create(
      builder, loc, type, probabilities, pullback.getPrimal(op.getLabels()), dl,
      op.getIgnoreAttr());
  pullback.add(op.getLogits(), gradient, loc);
  return success();
}

/// dx = dy - exp(y) * sum(dy), the sum along the softmax axis.
static LogicalResult pullBackLogSoftmax(nn::LogSoftmaxOp op,
                                        Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult());
  Value y = pullback.getPrimal(op.getResult());
  OpBuilder &builder = pullback.getBuilder();
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(dy.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap reduced = identity.dropResult(op.getDim());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + op.getDim());
  auto sumType = RankedTensorType::get(shape, type.getElementType());

  iterators[op.getDim()] = utils::IteratorType::reduction;
  Value sum = linalg::GenericOp::create(
                  builder, loc, TypeRange(sumType), ValueRange(dy),
                  ValueRange(createZeros(builder, loc, sumType)),
                  ArrayRef<AffineMap>{identity, reduced}, iterators,
                  [](OpBuilder &body, Location loc, ValueRange elements) {
                    Value sum = arith::AddFOp::create(body, loc, elements[1],
                                                      elements[0]);
                    linalg::YieldOp::create(body, loc, sum);
                  })
                  .getResult(0);
  iterators[op.getDim()] = utils::IteratorType::parallel;
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  Value dx =
      linalg::GenericOp::create(
          builder, loc, TypeRange(type), ValueRange{dy, y, sum},
          ValueRange(empty),
          ArrayRef<AffineMap>{identity, identity, reduced, identity}, iterators,
          [](OpBuilder &body, Location loc, ValueRange elements) {
            Value softmax = math::ExpOp::create(body, loc, elements[1]);
            Value share =
                arith::MulFOp::create(body, loc, softmax, elements[2]);
            Value dx = arith::SubFOp::create(body, loc, elements[0], share);
            linalg::YieldOp::create(body, loc, dx);
          })
          .getResult(0);
  pullback.add(op.getInput(), dx, loc);
  return success();
}

void penstock::registerNnRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                         math::MathDialect, tensor::TensorDialect>();
    nn::CrossEntropyOp::attachInterface<
        RuleModel<nn::CrossEntropyOp, pullBackCrossEntropy>>(*context);
    nn::LogSoftmaxOp::attachInterface<
        RuleModel<nn::LogSoftmaxOp, pullBackLogSoftmax>>(*context);
  });
}

void penstock::registerAutodiffModels(DialectRegistry &registry) {
  registerIndexRules(registry);
  registerLinalgRules(registry);
  registerNnRules(registry);
  registerConvRules(registry);
  registerNormalizeRules(registry);
  registerPoolRules(registry);
  registerTensorRules(registry);
}
