//===- Emitter.cpp - Emits linalg on static tensors -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Emitter.h.
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace penstock::onnx;

//===--- Scalars ---===//

Value Emitter::lowest(Type type) {
  if (isa<FloatType>(type))
    return scalar(type, -std::numeric_limits<double>::infinity());
  return make<arith::ConstantOp>(IntegerAttr::get(
      type, APInt::getSignedMinValue(type.getIntOrFloatBitWidth())));
}

Value Emitter::highest(Type type) {
  if (isa<FloatType>(type))
    return scalar(type, std::numeric_limits<double>::infinity());
  return make<arith::ConstantOp>(IntegerAttr::get(
      type, APInt::getSignedMaxValue(type.getIntOrFloatBitWidth())));
}

Value Emitter::divideIntegers(Value a, Value b) {
  // The smallest integer by -1 traps, as anything by 0 does.
  Value zero = scalar(a.getType(), 0), one = scalar(a.getType(), 1);
  Value byZero = equal(b, zero);
  Value byMinusOne = equal(b, scalar(a.getType(), -1));
  Value divisor = select(byZero, one, select(byMinusOne, one, b));
  Value quotient = arith::DivSIOp::create(builder, loc, a, divisor);
  return select(byZero, zero, select(byMinusOne, sub(zero, a), quotient));
}

Type Emitter::computedType(Type element) {
  return element.isUnsignedInteger()
             ? IntegerType::get(element.getContext(), 64)
             : element;
}

Value Emitter::widen(Value value) {
  Type type = value.getType();
  if (!type.isUnsignedInteger())
    return value;
  unsigned width = type.getIntOrFloatBitWidth();
  value = UnrealizedConversionCastOp::create(
              builder, loc, builder.getIntegerType(width), value)
              .getResult(0);
  if (width == 64)
    return value;
  return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value);
}

Value Emitter::narrow(Value value, Type element) {
  if (!element.isUnsignedInteger())
    return value;
  unsigned width = element.getIntOrFloatBitWidth();
  if (width < 64)
    value = arith::TruncIOp::create(builder, loc, builder.getIntegerType(width),
                                    value);
  return UnrealizedConversionCastOp::create(builder, loc, element, value)
      .getResult(0);
}

Value Emitter::cast(Value value, Type to) {
  Type from = value.getType();
  if (from == to)
    return value;
  // Anything to bool: whether it is not zero. NaN is not zero.
  if (to.isInteger(1)) {
    Value zero = scalar(from, 0);
    return isFloat(value) ? compare(arith::CmpFPredicate::UNE, value, zero)
                          : compare(arith::CmpIPredicate::ne, value, zero);
  }
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  unsigned toWidth = to.getIntOrFloatBitWidth();
  if (isFloat(value) && isa<FloatType>(to)) {
    // f16 and bf16 have no direct way to each other.
    if (fromWidth == toWidth)
      value = make<arith::ExtFOp>(builder.getF32Type(), value);
    return fromWidth < toWidth ? make<arith::ExtFOp>(to, value)
                               : make<arith::TruncFOp>(to, value);
  }
  if (isFloat(value))
    return make<arith::FPToSIOp>(to, value);
  bool isBool = from.isInteger(1);
  if (isa<FloatType>(to))
    return isBool ? make<arith::UIToFPOp>(to, value)
                  : make<arith::SIToFPOp>(to, value);
  if (isBool)
    return make<arith::ExtUIOp>(to, value);
  return fromWidth < toWidth ? make<arith::ExtSIOp>(to, value)
                             : make<arith::TruncIOp>(to, value);
}

//===--- Tensors ---===//

Value Emitter::constant(DenseElementsAttr value) {
  RankedTensorType type = cast<RankedTensorType>(value.getType());
  Type element = type.getElementType();
  if (!element.isUnsignedInteger())
    return arith::ConstantOp::create(builder, loc, value);
  // `arith` has no unsigned constants.
  Type stored = builder.getIntegerType(element.getIntOrFloatBitWidth());
  Value bits = arith::ConstantOp::create(
      builder, loc, cast<DenseElementsAttr>(value.bitcast(stored)));
  return elementwise(type, bits, [](Emitter &inside, ArrayRef<Value> scalars) {
    unsigned width = scalars[0].getType().getIntOrFloatBitWidth();
    if (width == 64)
      return scalars[0];
    return Value(
        inside.make<arith::ExtUIOp>(inside.builder.getI64Type(), scalars[0]));
  });
}

Value Emitter::reshape(Value value, ArrayRef<int64_t> shape) {
  RankedTensorType from = getType(value);
  if (from.getShape() == shape)
    return value;
  auto to = RankedTensorType::get(shape, from.getElementType());
  // Without elements the sizes do not tell which axes belong together, and
  // there is nothing to keep.
  if (to.getNumElements() == 0)
    return empty(to);
  if (from.getRank() > to.getRank())
    if (auto groups = getReassociationIndicesForReshape(from, to))
      return tensor::CollapseShapeOp::create(builder, loc, to, value, *groups);
  if (from.getRank() < to.getRank())
    if (auto groups = getReassociationIndicesForReshape(from, to))
      return tensor::ExpandShapeOp::create(builder, loc, to, value, *groups);
  // Neither alone: through one axis.
  auto flat =
      RankedTensorType::get({from.getNumElements()}, from.getElementType());
  auto all = [](int64_t rank) -> SmallVector<ReassociationIndices> {
    if (rank == 0)
      return {};
    return {llvm::to_vector<2>(llvm::seq<int64_t>(0, rank))};
  };
  if (from.getRank() > 1)
    value = tensor::CollapseShapeOp::create(builder, loc, flat, value,
                                            all(from.getRank()));
  else if (from.getRank() == 0)
    value = tensor::ExpandShapeOp::create(builder, loc, flat, value, all(0));
  if (to == flat)
    return value;
  if (to.getRank() == 0)
    return tensor::CollapseShapeOp::create(builder, loc, to, value, all(0));
  return tensor::ExpandShapeOp::create(builder, loc, to, value,
                                       all(to.getRank()));
}

Value Emitter::transpose(Value value, ArrayRef<int64_t> order) {
  if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
    return value;
  RankedTensorType from = getType(value);
  SmallVector<int64_t> shape;
  for (int64_t axis : order)
    shape.push_back(from.getDimSize(axis));
  Value out = empty(RankedTensorType::get(shape, from.getElementType()));
  return linalg::TransposeOp::create(builder, loc, value, out, order)
      ->getResult(0);
}

Value Emitter::slice(Value value, ArrayRef<int64_t> offsets,
                     ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> ones(offsets.size(), 1);
  return tensor::ExtractSliceOp::create(
      builder, loc, value, getAsIndexOpFoldResult(getContext(), offsets),
      getAsIndexOpFoldResult(getContext(), sizes),
      getAsIndexOpFoldResult(getContext(), strides.empty() ? ones : strides));
}

Value Emitter::insert(Value part, Value into, ArrayRef<int64_t> offsets) {
  SmallVector<int64_t> ones(offsets.size(), 1);
  return tensor::InsertSliceOp::create(
      builder, loc, part, into, getAsIndexOpFoldResult(getContext(), offsets),
      getAsIndexOpFoldResult(getContext(), getShape(part)),
      getAsIndexOpFoldResult(getContext(), ones));
}

AffineMap Emitter::map(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> results;
  for (int64_t dim : dims)
    results.push_back(builder.getAffineDimExpr(dim));
  return AffineMap::get(rank, 0, results, builder.getContext());
}

Value Emitter::generic(ArrayRef<Value> operands, Value out,
                       ArrayRef<AffineMap> maps,
                       ArrayRef<utils::IteratorType> iterators, Body body) {
  auto op = linalg::GenericOp::create(
      builder, loc, out.getType(), operands, out, maps, iterators,
      [&](OpBuilder &nested, Location nestedLoc, ValueRange arguments) {
        Emitter inside(nested, nestedLoc);
        Value result = body(inside, SmallVector<Value>(arguments));
        linalg::YieldOp::create(nested, nestedLoc, result);
      });
  // Constants stand before the op, as canonicalization would have them.
  for (Operation &nested : llvm::make_early_inc_range(*op.getBody()))
    if (isa<arith::ConstantOp>(nested))
      nested.moveBefore(op);
  return op.getResult(0);
}

Value Emitter::elementwise(RankedTensorType type, ArrayRef<Value> operands,
                           Body body) {
  int64_t rank = type.getRank();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (Value operand : operands) {
    ArrayRef<int64_t> shape = getShape(operand);
    int64_t offset = rank - static_cast<int64_t>(shape.size());
    SmallVector<int64_t> dims, kept;
    for (auto [d, size] : llvm::enumerate(shape))
      if (size == type.getDimSize(offset + d)) {
        dims.push_back(offset + d);
        kept.push_back(size);
      }
    inputs.push_back(reshape(operand, kept));
    maps.push_back(map(rank, dims));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, builder.getContext()));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return generic(inputs, empty(type), maps, iterators,
                 [&](Emitter &inside, ArrayRef<Value> scalars) {
                   SmallVector<Value> wide;
                   for (Value scalar : scalars.drop_back())
                     wide.push_back(inside.widen(scalar));
                   return inside.narrow(body(inside, wide),
                                        type.getElementType());
                 });
}

Value Emitter::broadcast(Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return elementwise(type, value, [](Emitter &, ArrayRef<Value> scalars) {
    return scalars[0];
  });
}

Value Emitter::reduce(Value value, ArrayRef<int64_t> axes, Value neutral,
                      Body combine) {
  RankedTensorType from = getType(value);
  int64_t rank = from.getRank();
  SmallVector<int64_t> kept, shape;
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::reduction);
  for (int64_t d = 0; d < rank; ++d) {
    if (llvm::is_contained(axes, d))
      continue;
    kept.push_back(d);
    shape.push_back(from.getDimSize(d));
    iterators[d] = utils::IteratorType::parallel;
  }
  Value out =
      filled(RankedTensorType::get(shape, from.getElementType()), neutral);
  return generic(value, out,
                 {AffineMap::getMultiDimIdentityMap(rank, builder.getContext()),
                  map(rank, kept)},
                 iterators, [&](Emitter &inside, ArrayRef<Value> scalars) {
                   return combine(inside, {scalars[1], scalars[0]});
                 });
}

Value Emitter::contract(Value a, Value b, RankedTensorType type,
                        ArrayRef<AffineMap> maps) {
  Value zeros = filled(type, scalar(type.getElementType(), 0));
  SmallVector<Attribute> attributes;
  for (AffineMap map : maps)
    attributes.push_back(AffineMapAttr::get(map));
  return linalg::ContractOp::create(builder, loc, TypeRange(type),
                                    ValueRange{a, b}, ValueRange(zeros),
                                    builder.getArrayAttr(attributes))
      ->getResult(0);
}
