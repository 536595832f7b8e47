//===- DenseConvolutions.cpp - Convolutions work on dense buffers ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is copied is what the op reads or writes: the gradient of weights adds
// to its destination, the others overwrite theirs.
//===----------------------------------------------------------------------===//

#include "passes/Program/DenseConvolutions.h"

#include "dialects/Nn/Convolution.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

static Value destinationOf(const nn::Convolution &conv) {
  switch (conv.kind) {
  case nn::Convolution::Forward:
    return conv.output;
  case nn::Convolution::InputGrad:
    return conv.input;
  case nn::Convolution::WeightGrad:
    return conv.weights;
  }
  return nullptr;
}

void penstock::makeConvolutionsDense(func::FuncOp function) {
  function.walk([](Operation *op) {
    std::optional<nn::Convolution> conv = nn::Convolution::match(op);
    if (!conv)
      return;
    Value destination = destinationOf(*conv);
    bool adds = conv->kind == nn::Convolution::WeightGrad;
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type || type.getLayout().isIdentity())
        continue;
      Value part = operand.get();
      builder.setInsertionPoint(op);
      Value dense = memref::AllocOp::create(
          builder, op->getLoc(),
          MemRefType::get(type.getShape(), type.getElementType()));
      if (part != destination || adds)
        linalg::CopyOp::create(builder, op->getLoc(), part, dense);
      operand.set(dense);
      if (part != destination)
        continue;
      builder.setInsertionPointAfter(op);
      linalg::CopyOp::create(builder, op->getLoc(), dense, part);
    }
  });
}
