//===- WindowLoops.cpp - Loops over windows -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads outside become reads of the first element whose value is not used: no
// branch, and no copy of the tensor with its padding.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/WindowLoops.h"

using namespace mlir;
using namespace penstock;

Value Position::emitWindow(Value position, Value window, int64_t stride,
                           int64_t dilation, int64_t pad, int64_t count,
                           Value &condition) {
  Value offset = sub(add(position, index(pad)), times(window, dilation));
  if (stride != 1)
    condition = both(condition, isZero(remainder(offset, stride)));
  Value number = quotient(offset, stride);
  condition = both(condition, inside(number, count));
  return number;
}

Value Position::read(Value tensor, ArrayRef<Value> indices, Value condition) {
  if (!condition)
    return tensor::ExtractOp::create(builder, loc, tensor, indices);
  SmallVector<Value> safe;
  for (Value position : indices)
    safe.push_back(select(condition, position, index(0)));
  Value value = make<tensor::ExtractOp>(tensor, safe);
  return select(condition, value, like(value, 0));
}

SmallVector<Value> penstock::createWindowLoops(
    OpBuilder &builder, Location loc, unsigned loops,
    ArrayRef<std::pair<Value, SmallVector<int64_t>>> inputs, ValueRange outputs,
    WindowBody body) {
  MLIRContext *context = builder.getContext();
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (auto &[value, dims] : inputs) {
    SmallVector<AffineExpr> results;
    for (int64_t dim : dims)
      results.push_back(builder.getAffineDimExpr(dim));
    operands.push_back(value);
    maps.push_back(AffineMap::get(loops, 0, results, context));
  }
  unsigned kept = cast<RankedTensorType>(outputs[0].getType()).getRank();
  maps.append(
      outputs.size(),
      AffineMap::getMultiDimIdentityMap(loops, context).getMajorSubMap(kept));
  Structured::Iterators iterators = Structured::reduction(loops);
  std::fill_n(iterators.begin(), kept, utils::IteratorType::parallel);
  return Structured(builder, loc)
      .generics(operands, outputs, maps, iterators,
                [&](Scalars &s, ValueRange scalars) {
                  Position at(s.builder, s.loc);
                  return body(at, scalars);
                });
}
