//===- BatchNorm.cpp - The two forms of batch normalization ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With the microbatch's statistics, which also move the running ones; or with
// those stored.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "penstock/Support/Structured.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::nn;

/// body(elements) for every element of `type`; operands are of that type, or
/// have an element per channel (axis 1).
static Value elementwise(Structured &emit, RankedTensorType type,
                         ValueRange operands, Structured::Body body) {
  int64_t rank = type.getRank();
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(
        operand.getType() == type
            ? emit.identity(rank)
            : AffineMap::get(rank, 0, emit.builder.getAffineDimExpr(1)));
  maps.push_back(emit.identity(rank));
  return emit.generic(operands, emit.empty(type), maps,
                      Structured::parallel(rank), body);
}

/// momentum * old + (1 - momentum) * current.
static Value move(Structured &emit, BatchNormOp op, Value old, Value current) {
  double momentum = op.getMomentum().convertToDouble();
  return elementwise(emit, op.getScale().getType(), {old, current},
                     [&](Scalars &s, ValueRange in) {
                       Value keep = s.mul(in[0], s.like(in[0], momentum));
                       Value take = s.mul(in[1], s.like(in[1], 1.0 - momentum));
                       return s.add(keep, take);
                     });
}

bool BatchNormOp::trainsByItself() { return getTraining(); }

LogicalResult BatchNormOp::expandForInference(OpBuilder &builder,
                                              SmallVectorImpl<Value> &results) {
  Structured emit(builder, getLoc());
  Type element = getInput().getType().getElementType();
  Value eps = emit.constant(element, getEpsilon().convertToDouble());
  Value one = emit.constant(element, 1.0);
  // The reciprocal per channel, not per element.
  Value inverse =
      elementwise(emit, getScale().getType(), getVariance(),
                  [&](Scalars &s, ValueRange in) {
                    return s.div(one, s.make<math::SqrtOp>(s.add(in[0], eps)));
                  });
  results.push_back(
      elementwise(emit, getInput().getType(),
                  {getInput(), getMean(), inverse, getScale(), getBias()},
                  [](Scalars &s, ValueRange in) {
                    Value normal = s.mul(s.sub(in[0], in[1]), in[2]);
                    return s.add(s.mul(normal, in[3]), in[4]);
                  }));
  results.append({getMean(), getVariance()});
  return success();
}

LogicalResult BatchNormOp::expandForTraining(OpBuilder &builder,
                                             TrainingContext &context,
                                             SmallVectorImpl<Value> &results) {
  if (context.freezesStatistics())
    return expandForInference(builder, results);
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < getInput().getType().getRank(); ++dim)
    if (dim != 1)
      dims.push_back(dim);
  auto normal = NormalizeOp::create(builder, getLoc(), getInput(), dims,
                                    getEpsilon().convertToDouble());
  Structured emit(builder, getLoc());
  results.push_back(elementwise(emit, getInput().getType(),
                                {normal.getResult(), getScale(), getBias()},
                                [](Scalars &s, ValueRange in) {
                                  return s.add(s.mul(in[0], in[1]), in[2]);
                                }));
  for (auto [state, current] : {std::pair(getMean(), normal.getMean()),
                                {getVariance(), normal.getVariance()}}) {
    Value next = move(emit, *this, context.getState(state), current);
    context.setState(state, next);
    results.push_back(next);
  }
  return success();
}
