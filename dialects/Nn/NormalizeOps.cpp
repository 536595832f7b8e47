//===- NormalizeOps.cpp - Normalizations ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and verifiers of the ops in NormalizeOps.td.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock::nn;

RankedTensorType NormalizeOp::getStatisticType(RankedTensorType input,
                                               ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(input.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return RankedTensorType::get(shape, input.getElementType());
}

void NormalizeOp::build(OpBuilder &builder, OperationState &state, Value input,
                        ArrayRef<int64_t> dims, double epsilon) {
  auto type = cast<RankedTensorType>(input.getType());
  RankedTensorType statistic = getStatisticType(type, dims);
  build(builder, state, type, statistic, statistic, input, dims,
        APFloat(epsilon));
}

void RmsNormalizeOp::build(OpBuilder &builder, OperationState &state,
                           Value input, ArrayRef<int64_t> dims,
                           double epsilon) {
  auto type = cast<RankedTensorType>(input.getType());
  build(builder, state, type, NormalizeOp::getStatisticType(type, dims), input,
        dims, APFloat(epsilon));
}

static LogicalResult verifyNormalize(Operation *op, RankedTensorType input,
                                     RankedTensorType statistic,
                                     ArrayRef<int64_t> dims,
                                     const APFloat &epsilon) {
  for (auto [index, dim] : llvm::enumerate(dims))
    if (dim < (index ? dims[index - 1] + 1 : 0) || dim >= input.getRank())
      return op->emitOpError("M17: dims are axes of ")
             << input << " in ascending order, got " << dim;
  RankedTensorType expected = NormalizeOp::getStatisticType(input, dims);
  if (statistic != expected)
    return op->emitOpError("M24: statistics of ")
           << input << " over these dims are " << expected << ", got "
           << statistic;
  if (!epsilon.isFinite() || epsilon.isNegative())
    return op->emitOpError("M25: epsilon is negative or not finite");
  return success();
}

LogicalResult NormalizeOp::verify() {
  return verifyNormalize(*this, getInput().getType(), getMean().getType(),
                         getDims(), getEpsilon());
}

LogicalResult RmsNormalizeOp::verify() {
  return verifyNormalize(*this, getInput().getType(), getMeanSquare().getType(),
                         getDims(), getEpsilon());
}

LogicalResult StandardizeOp::verify() {
  if (getMean() && getMean().getType() != getVariance().getType())
    return emitOpError("M24: has a mean of type ")
           << getMean().getType() << " and a variance of type "
           << getVariance().getType();
  return verifyNormalize(*this, getInput().getType(), getVariance().getType(),
                         getDims(), getEpsilon());
}

LogicalResult NormalizeGradOp::verify() {
  return verifyNormalize(*this, getCotangent().getType(),
                         getVariance().getType(), getDims(), getEpsilon());
}

LogicalResult BatchNormOp::verify() {
  RankedTensorType input = getInput().getType();
  if (input.getRank() < 2)
    return emitOpError("M26: needs a channel axis, got ") << input;
  RankedTensorType statistic = getScale().getType();
  if (statistic.getRank() != 1 ||
      statistic.getDimSize(0) != input.getDimSize(1) ||
      statistic.getElementType() != input.getElementType())
    return emitOpError("M26: scale, bias and statistics are ")
           << statistic << ", but the channels of " << input << " are "
           << input.getDimSize(1);
  if (!getEpsilon().isFinite() || getEpsilon().isNegative())
    return emitOpError("M25: epsilon is negative or not finite");
  return success();
}
