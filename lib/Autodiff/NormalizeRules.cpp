//===- NormalizeRules.cpp - Derivatives of normalisations -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule of nn.normalize, which keeps the normalised values and one number
// per group instead of differences and squares.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "lib/Autodiff/Rules.h"

using namespace mlir;
using namespace penstock;

static LogicalResult pullBackNormalize(nn::NormalizeOp op, Pullback &pullback) {
  if (pullback.getCotangent(op.getMean()) ||
      pullback.getCotangent(op.getVariance()))
    return op.emitError() << "a gradient flows into the mean or the variance "
                             "of 'nn.normalize': only its normalised values "
                             "have a derivative";
  Value dy = pullback.getCotangent(op.getResult());
  Value dx = nn::NormalizeGradOp::create(
      pullback.getBuilder(), op.getLoc(), dy.getType(), dy,
      pullback.getPrimal(op.getResult()), pullback.getPrimal(op.getVariance()),
      op.getDimsAttr(), op.getEpsilonAttr());
  pullback.add(op.getInput(), dx, op.getLoc());
  return success();
}

void penstock::registerNormalizeRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    nn::NormalizeOp::attachInterface<
        RuleModel<nn::NormalizeOp, pullBackNormalize>>(*context);
  });
}
