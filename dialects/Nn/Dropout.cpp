//===- Dropout.cpp - The two forms of dropout -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In training a mask is drawn and applied, two elementwise ops; the backward
// multiplies by the same mask. In evaluation the operand is the result.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace penstock::nn;

LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio <= 1))
    return emitOpError("M27: ratio is from 0 to 1, got ") << ratio;
  return success();
}

static Value filled(OpBuilder &builder, Location loc, RankedTensorType type,
                    TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

LogicalResult DropoutOp::expandForInference(OpBuilder &builder,
                                            SmallVectorImpl<Value> &results) {
  Value input = getInput();
  // A function of a stage returns none of its arguments.
  if (isa<BlockArgument>(input)) {
    RankedTensorType type = getInput().getType();
    Value empty =
        tensor::EmptyOp::create(builder, getLoc(), type, ValueRange());
    SmallVector<AffineMap> maps(2,
                                builder.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> iterators(type.getRank(),
                                               utils::IteratorType::parallel);
    input = linalg::GenericOp::create(
                builder, getLoc(), TypeRange(type), input, ValueRange(empty),
                maps, iterators,
                [](OpBuilder &body, Location loc, ValueRange in) {
                  linalg::YieldOp::create(body, loc, in[0]);
                })
                .getResult(0);
  }
  results.push_back(input);
  results.push_back(filled(builder, getLoc(), getMask().getType(),
                           builder.getBoolAttr(true)));
  return success();
}

/// The position of the current element in a row-major tensor.
static Value linearIndex(OpBuilder &builder, Location loc,
                         ArrayRef<int64_t> shape) {
  Value position;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    Value index = linalg::IndexOp::create(builder, loc, dim);
    if (!position) {
      position = index;
      continue;
    }
    Value extent = arith::ConstantIndexOp::create(builder, loc, size);
    Value scaled = arith::MulIOp::create(builder, loc, position, extent);
    position = arith::AddIOp::create(builder, loc, scaled, index);
  }
  if (!position)
    position = arith::ConstantIndexOp::create(builder, loc, 0);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    position);
}

/// A mask whose elements are true with probability 1 - ratio.
static Value drawMask(OpBuilder &builder, DropoutOp op,
                      TrainingContext &context) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getMask().getType();
  // An element is kept where its 32 bits, as a number, reach the threshold.
  double limit = std::ldexp(op.getRatio().convertToDouble(), 32);
  if (limit > 0xffffffff)
    return filled(builder, loc, type, builder.getBoolAttr(false));
  Value threshold = arith::ConstantOp::create(
      builder, loc,
      builder.getIntegerAttr(
          builder.getI32Type(),
          static_cast<int32_t>(static_cast<uint32_t>(std::round(limit)))));
  Value seed = context.getSeed();
  Value microbatch = arith::IndexCastOp::create(
      builder, loc, builder.getI64Type(), context.getMicrobatch());
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(type), ValueRange(), ValueRange(empty),
             builder.getMultiDimIdentityMap(type.getRank()), iterators,
             [&](OpBuilder &body, Location loc, ValueRange) {
               Value element = linearIndex(body, loc, type.getShape());
               Value bits =
                   RandomBitsOp::create(body, loc, seed, microbatch, element,
                                        static_cast<uint32_t>(op.getNode()));
               Value kept = arith::CmpIOp::create(
                   body, loc, arith::CmpIPredicate::uge, bits, threshold);
               linalg::YieldOp::create(body, loc, kept);
             })
      .getResult(0);
}

LogicalResult DropoutOp::expandForTraining(OpBuilder &builder,
                                           TrainingContext &context,
                                           SmallVectorImpl<Value> &results) {
  double ratio = getRatio().convertToDouble();
  if (ratio == 0)
    return expandForInference(builder, results);
  Location loc = getLoc();
  RankedTensorType type = getInput().getType();
  Type element = type.getElementType();
  Value mask = drawMask(builder, *this, context);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getFloatAttr(element, 0));
  Value scale = arith::ConstantOp::create(
      builder, loc,
      builder.getFloatAttr(element, ratio < 1 ? 1 / (1 - ratio) : 0));
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps(3, identity);
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  Value result =
      linalg::GenericOp::create(
          builder, loc, TypeRange(type), ValueRange{getInput(), mask},
          ValueRange(empty), maps, iterators,
          [&](OpBuilder &body, Location loc, ValueRange in) {
            Value scaled = arith::MulFOp::create(body, loc, in[0], scale);
            Value kept =
                arith::SelectOp::create(body, loc, in[1], scaled, zero);
            linalg::YieldOp::create(body, loc, kept);
          })
          .getResult(0);
  results.append({result, mask});
  return success();
}
