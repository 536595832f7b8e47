//===- TensorRules.cpp - Derivatives of tensor ops ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move elements: the cotangent moves back. Shapes are static.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;

static SmallVector<OpFoldResult> getAttrs(OpBuilder &builder,
                                          ArrayRef<int64_t> values) {
  return llvm::map_to_vector(values, [&](int64_t value) -> OpFoldResult {
    return builder.getIndexAttr(value);
  });
}

template <typename Op> static LogicalResult reportDynamic(Op op) {
  return op.emitError() << "'" << op->getName()
                        << "' with offsets or sizes that are not constant has "
                           "no derivative rule";
}

static LogicalResult pullBackExpand(tensor::ExpandShapeOp op,
                                    Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult());
  pullback.add(op.getSrc(),
               tensor::CollapseShapeOp::create(pullback.getBuilder(),
                                               op.getLoc(), op.getSrcType(), dy,
                                               op.getReassociationIndices()),
               op.getLoc());
  return success();
}

static LogicalResult pullBackCollapse(tensor::CollapseShapeOp op,
                                      Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult());
  pullback.add(op.getSrc(),
               tensor::ExpandShapeOp::create(pullback.getBuilder(), op.getLoc(),
                                             op.getSrcType(), dy,
                                             op.getReassociationIndices()),
               op.getLoc());
  return success();
}

static LogicalResult pullBackCast(tensor::CastOp op, Pullback &pullback) {
  pullback.add(op.getSource(),
               tensor::CastOp::create(pullback.getBuilder(), op.getLoc(),
                                      op.getSource().getType(),
                                      pullback.getCotangent(op.getResult())),
               op.getLoc());
  return success();
}

static LogicalResult pullBackExtractSlice(tensor::ExtractSliceOp op,
                                          Pullback &pullback) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty())
    return reportDynamic(op);
  OpBuilder &builder = pullback.getBuilder();
  Value zeros = createZeros(builder, op.getLoc(), op.getSourceType());
  pullback.add(op.getSource(),
               tensor::InsertSliceOp::create(
                   builder, op.getLoc(), pullback.getCotangent(op.getResult()),
                   zeros, op.getMixedOffsets(), op.getMixedSizes(),
                   op.getMixedStrides()),
               op.getLoc());
  return success();
}

static LogicalResult pullBackInsertSlice(tensor::InsertSliceOp op,
                                         Pullback &pullback) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty())
    return reportDynamic(op);
  OpBuilder &builder = pullback.getBuilder();
  Value dy = pullback.getCotangent(op.getResult());
  if (pullback.isActive(op.getSource()))
    pullback.add(op.getSource(),
                 tensor::ExtractSliceOp::create(
                     builder, op.getLoc(), op.getSourceType(), dy,
                     op.getMixedOffsets(), op.getMixedSizes(),
                     op.getMixedStrides()),
                 op.getLoc());
  if (pullback.isActive(op.getDest())) {
    Value zeros = createZeros(builder, op.getLoc(), op.getSourceType());
    pullback.add(op.getDest(),
                 tensor::InsertSliceOp::create(
                     builder, op.getLoc(), zeros, dy, op.getMixedOffsets(),
                     op.getMixedSizes(), op.getMixedStrides()),
                 op.getLoc());
  }
  return success();
}

static LogicalResult pullBackPad(tensor::PadOp op, Pullback &pullback) {
  if (!op.getLow().empty() || !op.getHigh().empty())
    return reportDynamic(op);
  Value padding = op.getConstantPaddingValue();
  if (!padding || pullback.isActive(padding))
    return op.emitError() << "'tensor.pad' with a value that is not constant "
                             "has no derivative rule";
  OpBuilder &builder = pullback.getBuilder();
  RankedTensorType type = op.getSourceType();
  SmallVector<int64_t> ones(type.getRank(), 1);
  pullback.add(op.getSource(),
               tensor::ExtractSliceOp::create(
                   builder, op.getLoc(), type,
                   pullback.getCotangent(op.getResult()), op.getMixedLowPad(),
                   getAttrs(builder, type.getShape()), getAttrs(builder, ones)),
               op.getLoc());
  return success();
}

static LogicalResult pullBackConcat(tensor::ConcatOp op, Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  Value dy = pullback.getCotangent(op.getResult());
  int64_t dim = op.getDim();
  SmallVector<int64_t> offsets(op.getResultType().getRank(), 0);
  SmallVector<int64_t> ones(offsets.size(), 1);
  // Every part by its own offset, the last part first, as everywhere.
  for (Value input : op.getInputs())
    offsets[dim] += cast<RankedTensorType>(input.getType()).getDimSize(dim);
  for (Value input : llvm::reverse(op.getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    offsets[dim] -= type.getDimSize(dim);
    if (!pullback.isActive(input))
      continue;
    pullback.add(input,
                 tensor::ExtractSliceOp::create(
                     builder, op.getLoc(), type, dy, getAttrs(builder, offsets),
                     getAttrs(builder, type.getShape()),
                     getAttrs(builder, ones)),
                 op.getLoc());
  }
  return success();
}

void penstock::registerTensorRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect>();
    tensor::ExpandShapeOp::attachInterface<
        RuleModel<tensor::ExpandShapeOp, pullBackExpand>>(*context);
    tensor::CollapseShapeOp::attachInterface<
        RuleModel<tensor::CollapseShapeOp, pullBackCollapse>>(*context);
    tensor::CastOp::attachInterface<RuleModel<tensor::CastOp, pullBackCast>>(
        *context);
    tensor::ExtractSliceOp::attachInterface<
        RuleModel<tensor::ExtractSliceOp, pullBackExtractSlice>>(*context);
    tensor::InsertSliceOp::attachInterface<
        RuleModel<tensor::InsertSliceOp, pullBackInsertSlice>>(*context);
    tensor::PadOp::attachInterface<RuleModel<tensor::PadOp, pullBackPad>>(
        *context);
    tensor::ConcatOp::attachInterface<
        RuleModel<tensor::ConcatOp, pullBackConcat>>(*context);
  });
}
