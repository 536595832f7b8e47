//===- SoftmaxRules.cpp - Derivatives of softmax and its logarithm --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are a sum along the axis, and an expression of it and of each element.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// The space of one tensor, one axis of which is summed over.
struct Axis {
  Axis(Pullback &pullback, Location loc, Value like, int64_t dimension)
      : builder(pullback.getBuilder()), loc(loc), dimension(dimension),
        type(cast<RankedTensorType>(like.getType())),
        identity(builder.getMultiDimIdentityMap(type.getRank())),
        reduced(identity.dropResult(dimension)) {}

  /// The sum along the axis of what `term` makes of the elements.
  Value sum(ValueRange inputs, Body term) {
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dimension);
    auto sumType = RankedTensorType::get(shape, type.getElementType());
    SmallVector<AffineMap> maps(inputs.size(), identity);
    maps.push_back(reduced);
    SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
    iterators[dimension] = IteratorType::reduction;
    return linalg::GenericOp::create(
               builder, loc, TypeRange(sumType), inputs,
               ValueRange(createZeros(builder, loc, sumType)), maps, iterators,
               [&](OpBuilder &body, Location loc, ValueRange arguments) {
                 Value next = term(body, loc, arguments.drop_back());
                 Value sum =
                     arith::AddFOp::create(body, loc, arguments.back(), next);
                 linalg::YieldOp::create(body, loc, sum);
               })
        .getResult(0);
  }

  /// What `expression` makes of the elements and the sum of their row.
  Value map(ValueRange inputs, Value sum, Body expression) {
    SmallVector<Value> operands(inputs);
    SmallVector<AffineMap> maps(inputs.size(), identity);
    operands.push_back(sum);
    maps.append({reduced, identity});
    Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
    return linalg::GenericOp::create(
               builder, loc, TypeRange(type), operands, ValueRange(empty), maps,
               SmallVector<IteratorType>(type.getRank(),
                                         IteratorType::parallel),
               [&](OpBuilder &body, Location loc, ValueRange arguments) {
                 linalg::YieldOp::create(
                     body, loc, expression(body, loc, arguments.drop_back()));
               })
        .getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  int64_t dimension;
  RankedTensorType type;
  AffineMap identity, reduced;
};

} // namespace

/// dx = y * (dy - sum(dy * y)).
LogicalResult penstock::pullBackSoftmax(linalg::SoftmaxOp op,
                                        Pullback &pullback) {
  Value dy = pullback.getCotangent(op->getResult(0));
  Value y = pullback.getPrimal(op->getResult(0));
  Axis axis(pullback, op.getLoc(), dy, op.getDimension());
  Value sum =
      axis.sum({dy, y}, [](OpBuilder &body, Location loc, ValueRange in) {
        return arith::MulFOp::create(body, loc, in[0], in[1]).getResult();
      });
  Value dx =
      axis.map({dy, y}, sum, [](OpBuilder &body, Location loc, ValueRange in) {
        Value centred = arith::SubFOp::create(body, loc, in[0], in[2]);
        return arith::MulFOp::create(body, loc, in[1], centred).getResult();
      });
  pullback.add(op.getInput(), dx, op.getLoc());
  return success();
}

/// dx = dy - exp(y) * sum(dy).
LogicalResult penstock::pullBackLogSoftmax(nn::LogSoftmaxOp op,
                                           Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult());
  Value y = pullback.getPrimal(op.getResult());
  Axis axis(pullback, op.getLoc(), dy, op.getDim());
  Value sum =
      axis.sum(dy, [](OpBuilder &, Location, ValueRange in) { return in[0]; });
  Value dx =
      axis.map({dy, y}, sum, [](OpBuilder &body, Location loc, ValueRange in) {
        Value softmax = math::ExpOp::create(body, loc, in[1]);
        Value share = arith::MulFOp::create(body, loc, softmax, in[2]);
        return arith::SubFOp::create(body, loc, in[0], share).getResult();
      });
  pullback.add(op.getInput(), dx, op.getLoc());
  return success();
}
