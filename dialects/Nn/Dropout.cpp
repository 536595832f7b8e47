//===- Dropout.cpp - The two forms of dropout -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In training a mask is drawn and applied, two elementwise ops; the backward
// multiplies by the same mask. In evaluation the operand is the result.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "penstock/Support/Structured.h"

#include <cmath>

using namespace mlir;
using namespace penstock;
using namespace penstock::nn;

LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio <= 1))
    return emitOpError("M27: ratio is from 0 to 1, got ") << ratio;
  return success();
}

LogicalResult DropoutOp::expandForInference(OpBuilder &builder,
                                            SmallVectorImpl<Value> &results) {
  Structured emit(builder, getLoc());
  Value input = getInput();
  // A function of a stage returns none of its arguments.
  if (isa<BlockArgument>(input))
    input = emit.elementwise(getInput().getType(), input,
                             [](Scalars &, ValueRange in) { return in[0]; });
  results.push_back(input);
  results.push_back(emit.filled(getMask().getType(), 1));
  return success();
}

/// The position of the current element in a row-major tensor.
static Value linearIndex(Scalars &s, ArrayRef<int64_t> shape) {
  Value position;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    Value index = s.make<linalg::IndexOp>(dim);
    if (!position) {
      position = index;
      continue;
    }
    Value extent = s.make<arith::ConstantIndexOp>(size);
    position = s.add(s.mul(position, extent), index);
  }
  if (!position)
    position = s.make<arith::ConstantIndexOp>(0);
  return s.make<arith::IndexCastOp>(s.builder.getI64Type(), position);
}

/// A mask whose elements are true with probability 1 - ratio.
static Value drawMask(OpBuilder &builder, DropoutOp op,
                      TrainingContext &context) {
  Structured emit(builder, op.getLoc());
  RankedTensorType type = op.getMask().getType();
  // An element is kept where its 32 bits, as a number, reach the threshold.
  double limit = std::ldexp(op.getRatio().convertToDouble(), 32);
  if (limit > 0xffffffff)
    return emit.filled(type, 0);
  Value threshold = emit.integer(
      builder.getI32Type(),
      static_cast<int32_t>(static_cast<uint32_t>(std::round(limit))));
  Value seed = context.getSeed();
  Value microbatch = emit.make<arith::IndexCastOp>(builder.getI64Type(),
                                                   context.getMicrobatch());
  return emit.elementwise(type, ValueRange(), [&](Scalars &s, ValueRange) {
    Value element = linearIndex(s, type.getShape());
    Value bits = s.make<RandomBitsOp>(seed, microbatch, element,
                                      static_cast<uint32_t>(op.getNode()));
    return s.compare(arith::CmpIPredicate::uge, bits, threshold);
  });
}

LogicalResult DropoutOp::expandForTraining(OpBuilder &builder,
                                           TrainingContext &context,
                                           SmallVectorImpl<Value> &results) {
  double ratio = getRatio().convertToDouble();
  if (ratio == 0)
    return expandForInference(builder, results);
  Structured emit(builder, getLoc());
  RankedTensorType type = getInput().getType();
  Type element = type.getElementType();
  Value mask = drawMask(builder, *this, context);
  Value zero = emit.constant(element, 0);
  Value scale = emit.constant(element, ratio < 1 ? 1 / (1 - ratio) : 0);
  Value result = emit.elementwise(
      type, {getInput(), mask}, [&](Scalars &s, ValueRange in) {
        return s.select(in[1], s.mul(in[0], scale), zero);
      });
  results.append({result, mask});
  return success();
}
