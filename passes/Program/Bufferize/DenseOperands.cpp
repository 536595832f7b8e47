//===- DenseOperands.cpp - Dense operands for library calls ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is copied is what the op reads or writes: products and gradients of
// weights add to their destinations, other convolutions overwrite theirs.
//===----------------------------------------------------------------------===//

#include "passes/Program/Bufferize/DenseOperands.h"

#include "dialects/Nn/Convolution.h"
#include "passes/Kernels/Widening.h"
#include "penstock/Target/MatrixProduct.h"

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

static bool isPart(Value operand) {
  auto type = dyn_cast<MemRefType>(operand.getType());
  return type && !type.getLayout().isIdentity();
}

static void makeDense(Operation *op, Value destination, bool adds) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value part = operand.get();
    if (!isPart(part))
      continue;
    auto type = cast<MemRefType>(part.getType());
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
}

/// Whether matrices in these buffers, or in dense ones of their shapes, are
/// something that a library multiplies.
static bool isProduct(linalg::ContractOp contract, bool dense) {
  auto op = cast<linalg::LinalgOp>(contract.getOperation());
  SmallVector<SmallVector<int64_t>> strides;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    int64_t offset;
    if (!type || (!type.getElementType().isF32() && !isNarrowProduct(contract)))
      return false;
    if (dense)
      type = MemRefType::get(type.getShape(), type.getElementType());
    if (failed(type.getStridesAndOffset(strides.emplace_back(), offset)))
      return false;
  }
  return succeeded(readMatrixProduct(op.getStaticLoopRanges(),
                                     op.getIndexingMapsArray(), strides));
}

void penstock::makeOperandsDense(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (std::optional<nn::Convolution> conv = nn::Convolution::match(op))
      return makeDense(op, destinationOf(*conv),
                       conv->kind == nn::Convolution::WeightGrad);
    auto contract = dyn_cast<linalg::ContractOp>(op);
    if (contract && llvm::any_of(contract->getOperands(), isPart) &&
        !isProduct(contract, /*dense=*/false) &&
        isProduct(contract, /*dense=*/true))
      makeDense(contract, contract.getDpsInits().front(), /*adds=*/true);
  });
}
