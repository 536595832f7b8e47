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
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

static LogicalResult pullBackCrossEntropy(nn::CrossEntropyOp op,
                                          Pullback &pullback) {
  if (pullback.getCotangent(op.getProbabilities()))
    return op.emitError() << "a gradient flows into the probabilities of "
                             "'nn.cross_entropy': use a softmax of its own";
  Value dl = pullback.getCotangent(op.getLoss());
  Value gradient = nn::CrossEntropyGradOp::create(
      pullback.getBuilder(), op.getLoc(), op.getLogits().getType(),
      pullback.getPrimal(op.getProbabilities()),
      pullback.getPrimal(op.getLabels()), dl, op.getIgnoreAttr());
  pullback.add(op.getLogits(), gradient, op.getLoc());
  return success();
}

void penstock::registerNnRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                         tensor::TensorDialect>();
    nn::CrossEntropyOp::attachInterface<
        RuleModel<nn::CrossEntropyOp, pullBackCrossEntropy>>(*context);
  });
}

void penstock::registerAutodiffModels(DialectRegistry &registry) {
  registerLinalgRules(registry);
  registerNnRules(registry);
  registerTensorRules(registry);
}
