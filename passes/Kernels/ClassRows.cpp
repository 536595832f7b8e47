//===- ClassRows.cpp - Generics over classes and over rows ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ClassRows.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/ClassRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace penstock;

static SmallVector<utils::IteratorType> parallel(int64_t rank) {
  return SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel);
}

ClassRows::ClassRows(OpBuilder &builder, Location loc, RankedTensorType full,
                     int64_t axis)
    : builder(builder), loc(loc), full(full), axis(axis) {
  SmallVector<int64_t> shape(full.getShape());
  shape.erase(shape.begin() + axis);
  row = RankedTensorType::get(shape, full.getElementType());
  fullMap = builder.getMultiDimIdentityMap(full.getRank());
  rowMap = fullMap.dropResult(axis);
}

Value ClassRows::constant(Type type, double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}

Value ClassRows::integer(Type type, int64_t value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(type, value));
}

Value ClassRows::perClass(ArrayRef<double> values) {
  SmallVector<Attribute> elements;
  for (double value : values)
    elements.push_back(builder.getFloatAttr(elementType(), value));
  auto type = RankedTensorType::get({classes()}, elementType());
  classValues = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, elements));
  return classValues;
}

Value ClassRows::elements(ValueRange inputs, Body body) {
  Value empty = tensor::EmptyOp::create(builder, loc, full.getShape(),
                                        full.getElementType());
  return generic(inputs, empty, fullMap, parallel(full.getRank()), body);
}

Value ClassRows::reduce(ValueRange inputs, double start, Body body) {
  SmallVector<utils::IteratorType> iterators = parallel(full.getRank());
  iterators[axis] = utils::IteratorType::reduction;
  return generic(inputs, filled(row, constant(start)), rowMap, iterators, body);
}

Value ClassRows::perRow(ValueRange inputs, Body body) {
  Value empty = tensor::EmptyOp::create(builder, loc, row.getShape(),
                                        row.getElementType());
  return generic(inputs, empty, builder.getMultiDimIdentityMap(row.getRank()),
                 parallel(row.getRank()), body);
}

Value ClassRows::total(ValueRange inputs, Value start, Body body) {
  SmallVector<utils::IteratorType> iterators(row.getRank(),
                                             utils::IteratorType::reduction);
  return generic(
      inputs, filled(RankedTensorType::get({}, start.getType()), start),
      AffineMap::get(row.getRank(), 0, builder.getContext()), iterators, body);
}

Value ClassRows::classNumber(OpBuilder &b, Location loc, Type type) {
  Value index = linalg::IndexOp::create(b, loc, axis);
  return arith::IndexCastOp::create(b, loc, type, index);
}

Value ClassRows::filled(RankedTensorType type, Value start) {
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::FillOp::create(builder, loc, start, empty).getResult(0);
}

Value ClassRows::generic(ValueRange inputs, Value output, AffineMap outputMap,
                         ArrayRef<utils::IteratorType> iterators, Body body) {
  size_t dims = iterators.size();
  SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
    if (input == classValues)
      maps.push_back(AffineMap::get(dims, 0, builder.getAffineDimExpr(axis)));
    else if (rank == static_cast<int64_t>(dims))
      maps.push_back(builder.getMultiDimIdentityMap(dims));
    else if (dims == fullMap.getNumDims() && rank == row.getRank())
      maps.push_back(rowMap);
    else
      maps.push_back(AffineMap::get(dims, 0, builder.getContext()));
  }
  maps.push_back(outputMap);
  return linalg::GenericOp::create(
             builder, loc, output.getType(), inputs, output, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange arguments) {
               Value result =
                   body(b, loc, arguments.drop_back(), arguments.back());
               linalg::YieldOp::create(b, loc, result);
             })
      .getResult(0);
}

StableExp penstock::computeStableExp(ClassRows &rows, Value x) {
  StableExp result;
  result.maximum =
      rows.reduce(x, -std::numeric_limits<double>::infinity(),
                  [](OpBuilder &b, Location loc, ValueRange in, Value old) {
                    return arith::MaxNumFOp::create(b, loc, in[0], old);
                  });
  result.exponentials = rows.elements(
      {x, result.maximum},
      [](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
        return math::ExpOp::create(b, loc,
                                   arith::SubFOp::create(b, loc, in[0], in[1]));
      });
  result.sum = rows.reduce(
      result.exponentials, 0.0,
      [](OpBuilder &b, Location loc, ValueRange in, Value old) -> Value {
        return arith::AddFOp::create(b, loc, in[0], old);
      });
  return result;
}

Value penstock::divideBySum(ClassRows &rows, const StableExp &parts) {
  Value one = rows.constant(1.0);
  Value inverse = rows.perRow(
      parts.sum, [&](OpBuilder &b, Location loc, ValueRange in, Value) {
        return arith::DivFOp::create(b, loc, one, in[0]);
      });
  return rows.elements(
      {parts.exponentials, inverse},
      [](OpBuilder &b, Location loc, ValueRange in, Value) -> Value {
        return arith::MulFOp::create(b, loc, in[0], in[1]);
      });
}
