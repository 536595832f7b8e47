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
      op.getIgnoreAttr(), op.getSmoothingAttr(), op.getClassWeightsAttr());
  pullback.add(op.getLogits(), gradient, loc);
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
