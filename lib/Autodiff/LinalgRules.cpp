//===- LinalgRules.cpp - Derivatives of linalg ops ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions, whose derivatives are contractions with the maps exchanged, and
// softmax; other structured ops have the rule of their body.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"
#include "penstock/Support/Structured.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

/// A contraction, or, where no dimension is contracted, the generic with the
/// same meaning: linalg.contract demands one.
static Value createContraction(OpBuilder &builder, Location loc,
                               ArrayRef<Value> inputs, Value destination,
                               ArrayRef<AffineMap> maps) {
  SmallVector<utils::IteratorType> iterators;
  for (unsigned dim = 0; dim < maps[2].getNumDims(); ++dim)
    iterators.push_back(maps[2].isFunctionOfDim(dim)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  if (llvm::is_contained(iterators, utils::IteratorType::reduction))
    return linalg::ContractOp::create(
               builder, loc, TypeRange(destination.getType()), inputs,
               ValueRange(destination), builder.getAffineMapArrayAttr(maps))
        .getResult(0);
  return Structured(builder, loc)
      .generic(inputs, destination, maps, iterators,
               [](Scalars &s, ValueRange elements) {
                 return s.add(elements[2], s.mul(elements[0], elements[1]));
               });
}

/// dA = dC . B and dB = A . dC over the same iteration space, into the
/// accumulator where the operand is a parameter.
static LogicalResult pullBackContract(linalg::ContractOp op,
                                      Pullback &pullback) {
  Value dy = pullback.getCotangent(op->getResult(0));
  OpBuilder &builder = pullback.getBuilder();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (int i : {1, 0}) {
    Value operand = op.getInputs()[i], other = op.getInputs()[1 - i];
    if (!pullback.isActive(operand))
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.getElementType() != getElementTypeOrSelf(dy.getType()) ||
        getElementTypeOrSelf(other.getType()) != type.getElementType())
      return op.emitError() << "the derivative of a contraction of mixed "
                               "element types is not supported";
    Value accumulator = pullback.getAccumulator(operand);
    Value destination =
        accumulator ? accumulator : createZeros(builder, op.getLoc(), type);
    SmallVector<Value> inputs = {pullback.getPrimal(other), dy};
    SmallVector<AffineMap> permuted = {maps[1 - i], maps[2], maps[i]};
    if (i == 0) {
      std::swap(inputs[0], inputs[1]);
      std::swap(permuted[0], permuted[1]);
    }
    Value gradient =
        createContraction(builder, op.getLoc(), inputs, destination, permuted);
    if (accumulator)
      pullback.setAccumulator(operand, gradient);
    else
      pullback.add(operand, gradient, op.getLoc());
  }
  pullback.add(op.getOutputs()[0], dy, op.getLoc());
  return success();
}

/// The filled tensor depends on the scalar only.
static LogicalResult pullBackFill(linalg::FillOp op, Pullback &pullback) {
  if (pullback.isActive(op.getInputs()[0]))
    return op.emitError()
           << "'linalg.fill' with a value that needs a gradient has no rule";
  return success();
}

namespace {

template <typename Op>
struct StructuredModel
    : DifferentiableOpInterface::ExternalModel<StructuredModel<Op>, Op> {
  LogicalResult pullBack(Operation *op, Pullback &pullback) const {
    return pullBackStructured(cast<linalg::LinalgOp>(op), pullback);
  }
  bool carriesGradient(Operation *op, Value operand, Value result) const {
    return structuredCarriesGradient(cast<linalg::LinalgOp>(op), operand,
                                     result);
  }
};

struct FillModel
    : DifferentiableOpInterface::ExternalModel<FillModel, linalg::FillOp> {
  LogicalResult pullBack(Operation *op, Pullback &pullback) const {
    return pullBackFill(cast<linalg::FillOp>(op), pullback);
  }
  bool carriesGradient(Operation *op, Value operand, Value result) const {
    return operand == cast<linalg::FillOp>(op).getInputs()[0];
  }
};

/// The destination of softmax is overwritten.
struct SoftmaxModel
    : DifferentiableOpInterface::ExternalModel<SoftmaxModel,
                                               linalg::SoftmaxOp> {
  LogicalResult pullBack(Operation *op, Pullback &pullback) const {
    return pullBackSoftmax(cast<linalg::SoftmaxOp>(op), pullback);
  }
  bool carriesGradient(Operation *op, Value operand, Value result) const {
    return operand == cast<linalg::SoftmaxOp>(op).getInput();
  }
};

} // namespace

void penstock::registerLinalgRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    context->loadDialect<arith::ArithDialect, math::MathDialect,
                         tensor::TensorDialect>();
    linalg::ContractOp::attachInterface<
        RuleModel<linalg::ContractOp, pullBackContract>>(*context);
    linalg::SoftmaxOp::attachInterface<SoftmaxModel>(*context);
    linalg::FillOp::attachInterface<FillModel>(*context);
    linalg::GenericOp::attachInterface<StructuredModel<linalg::GenericOp>>(
        *context);
    linalg::TransposeOp::attachInterface<StructuredModel<linalg::TransposeOp>>(
        *context);
    linalg::BroadcastOp::attachInterface<StructuredModel<linalg::BroadcastOp>>(
        *context);
    linalg::ReduceOp::attachInterface<StructuredModel<linalg::ReduceOp>>(
        *context);
  });
}
