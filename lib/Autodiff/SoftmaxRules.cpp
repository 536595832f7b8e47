//===- SoftmaxRules.cpp - Derivatives of softmax and its logarithm --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are a sum along the axis, and an expression of it and of each element.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"
#include "penstock/Support/Structured.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

/// The space of one tensor, one axis of which is summed over.
struct Axis : Structured {
  Axis(Pullback &pullback, Location loc, Value like, int64_t dimension)
      : Structured(pullback.getBuilder(), loc), dimension(dimension),
        type(cast<RankedTensorType>(like.getType())),
        all(identity(type.getRank())), reduced(all.dropResult(dimension)) {}

  /// The sum along the axis of what `term` makes of the elements.
  Value sum(ValueRange inputs, Body term) {
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dimension);
    auto sumType = RankedTensorType::get(shape, type.getElementType());
    SmallVector<AffineMap> maps(inputs.size(), all);
    maps.push_back(reduced);
    Iterators iterators = parallel(type.getRank());
    iterators[dimension] = IteratorType::reduction;
    return generic(inputs, createZeros(builder, loc, sumType), maps, iterators,
                   [&](Scalars &s, ValueRange in) {
                     Value next = term(s, in.drop_back());
                     return s.add(in.back(), next);
                   });
  }

  /// Emits `expression` on the elements and the sum of their row.
  Value map(ValueRange inputs, Value sum, Body expression) {
    SmallVector<Value> operands(inputs);
    SmallVector<AffineMap> maps(inputs.size(), all);
    operands.push_back(sum);
    maps.append({reduced, all});
    return generic(operands, empty(type), maps, parallel(type.getRank()),
                   [&](Scalars &s, ValueRange in) {
                     return expression(s, in.drop_back());
                   });
  }

  int64_t dimension;
  RankedTensorType type;
  AffineMap all, reduced;
};

} // namespace

/// dx = y * (dy - sum(dy * y)).
LogicalResult penstock::pullBackSoftmax(linalg::SoftmaxOp op,
                                        Pullback &pullback) {
  Value dy = pullback.getCotangent(op->getResult(0));
  Value y = pullback.getPrimal(op->getResult(0));
  Axis axis(pullback, op.getLoc(), dy, op.getDimension());
  Value sum = axis.sum(
      {dy, y}, [](Scalars &s, ValueRange in) { return s.mul(in[0], in[1]); });
  Value dx = axis.map({dy, y}, sum, [](Scalars &s, ValueRange in) {
    return s.mul(in[1], s.sub(in[0], in[2]));
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
  Value sum = axis.sum(dy, [](Scalars &, ValueRange in) { return in[0]; });
  Value dx = axis.map({dy, y}, sum, [](Scalars &s, ValueRange in) {
    Value softmax = s.make<math::ExpOp>(in[1]);
    return s.sub(in[0], s.mul(softmax, in[2]));
  });
  pullback.add(op.getInput(), dx, op.getLoc());
  return success();
}
