//===- Rows.cpp - Generics over tensors and over their rows ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Rows.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace penstock;

Rows::Rows(OpBuilder &builder, Location loc, RankedTensorType full,
           ArrayRef<int64_t> axes)
    : emit(builder, loc), full(full), axes(axes),
      fullMap(emit.identity(full.getRank())), rowMap(fullMap),
      reducing(Structured::parallel(full.getRank())) {
  SmallVector<int64_t> shape(full.getShape());
  for (int64_t axis : llvm::reverse(axes)) {
    shape.erase(shape.begin() + axis);
    rowMap = rowMap.dropResult(axis);
    reducing[axis] = utils::IteratorType::reduction;
  }
  row = RankedTensorType::get(shape, full.getElementType());
}

Value Rows::perClass(ArrayRef<double> values) {
  SmallVector<Attribute> elements;
  for (double value : values)
    elements.push_back(emit.builder.getFloatAttr(elementType(), value));
  auto type = RankedTensorType::get({classes()}, elementType());
  classValues =
      emit.make<arith::ConstantOp>(DenseElementsAttr::get(type, elements));
  return classValues;
}

Value Rows::elements(ValueRange inputs, Body body) {
  return generic(inputs, emit.empty(full), fullMap,
                 Structured::parallel(full.getRank()), body);
}

Value Rows::reduce(ValueRange inputs, double start, Body body) {
  return generic(inputs, emit.filled(row, start), rowMap, reducing, body);
}

SmallVector<Value> Rows::sums(ValueRange inputs, unsigned outputs,
                              Bodies body) {
  Value zero = constant(0);
  SmallVector<Value> zeros;
  for (unsigned i = 0; i < outputs; ++i)
    zeros.push_back(emit.filled(row, zero));
  return generics(inputs, zeros, rowMap, reducing, body);
}

Value Rows::perRow(ValueRange inputs, Body body) {
  return generic(inputs, emit.empty(row), emit.identity(row.getRank()),
                 Structured::parallel(row.getRank()), body);
}

Value Rows::total(ValueRange inputs, Value start, Body body) {
  auto type = RankedTensorType::get({}, start.getType());
  return generic(inputs, emit.filled(type, start), emit.toScalar(row.getRank()),
                 Structured::reduction(row.getRank()), body);
}

Value Rows::classNumber(Scalars &inside, Type type) {
  return inside.make<arith::IndexCastOp>(
      type, inside.make<linalg::IndexOp>(axes.front()));
}

SmallVector<Value> Rows::generics(ValueRange inputs, ValueRange outputs,
                                  AffineMap outputMap,
                                  const Structured::Iterators &iterators,
                                  Bodies body) {
  auto dims = static_cast<int64_t>(iterators.size());
  SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
    if (input == classValues)
      maps.push_back(
          AffineMap::get(dims, 0, emit.builder.getAffineDimExpr(axes.front())));
    else if (rank == dims)
      maps.push_back(emit.identity(dims));
    else if (dims == full.getRank() && rank == row.getRank())
      maps.push_back(rowMap);
    else
      maps.push_back(emit.toScalar(dims));
  }
  maps.append(outputs.size(), outputMap);
  return emit.generics(inputs, outputs, maps, iterators,
                       [&](Scalars &inside, ValueRange all) {
                         return body(inside, all.take_front(inputs.size()),
                                     all.drop_front(inputs.size()));
                       });
}

Value Rows::generic(ValueRange inputs, Value output, AffineMap outputMap,
                    const Structured::Iterators &iterators, Body body) {
  return generics(inputs, output, outputMap, iterators,
                  [&](Scalars &inside, ValueRange in, ValueRange old) {
                    return SmallVector<Value>{body(inside, in, old.front())};
                  })
      .front();
}

StableExp penstock::computeStableExp(Rows &rows, Value x) {
  StableExp result;
  result.maximum = rows.reduce(x, -std::numeric_limits<double>::infinity(),
                               [](Scalars &s, ValueRange in, Value old) {
                                 return s.make<arith::MaxNumFOp>(in[0], old);
                               });
  result.exponentials =
      rows.elements({x, result.maximum}, [](Scalars &s, ValueRange in, Value) {
        return s.make<math::ExpOp>(s.sub(in[0], in[1]));
      });
  result.sum = rows.reduce(
      result.exponentials, 0.0,
      [](Scalars &s, ValueRange in, Value old) { return s.add(in[0], old); });
  return result;
}

Value penstock::divideBySum(Rows &rows, const StableExp &parts) {
  Value one = rows.constant(1.0);
  Value inverse = rows.perRow(parts.sum, [&](Scalars &s, ValueRange in, Value) {
    return s.div(one, in[0]);
  });
  return rows.elements(
      {parts.exponentials, inverse},
      [](Scalars &s, ValueRange in, Value) { return s.mul(in[0], in[1]); });
}
