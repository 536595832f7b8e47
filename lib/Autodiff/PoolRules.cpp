//===- PoolRules.cpp - Derivatives of pooling -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of a maximum goes to where the maximum was; that of a sum to all
// elements of the window.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "lib/Autodiff/Rules.h"

using namespace mlir;
using namespace penstock;

static LogicalResult pullBackMaxPool(nn::MaxPoolOp op, Pullback &pullback) {
  Value dx = nn::MaxPoolGradOp::create(
      pullback.getBuilder(), op.getLoc(), op.getInput().getType(),
      pullback.getCotangent(op.getResult()),
      pullback.getPrimal(op.getIndices()), op.getWindow(), op.getStrides(),
      op.getDilations(), op.getPads());
  pullback.add(op.getInput(), dx, op.getLoc());
  return success();
}

static LogicalResult pullBackSumPool(nn::SumPoolOp op, Pullback &pullback) {
  Value dx = nn::SumPoolGradOp::create(
      pullback.getBuilder(), op.getLoc(), op.getInput().getType(),
      pullback.getCotangent(op.getResult()), op.getWindow(), op.getStrides(),
      op.getDilations(), op.getPads());
  pullback.add(op.getInput(), dx, op.getLoc());
  return success();
}

void penstock::registerPoolRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    nn::MaxPoolOp::attachInterface<RuleModel<nn::MaxPoolOp, pullBackMaxPool>>(
        *context);
    nn::SumPoolOp::attachInterface<RuleModel<nn::SumPoolOp, pullBackSumPool>>(
        *context);
  });
}
