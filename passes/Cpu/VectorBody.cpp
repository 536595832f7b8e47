//===- VectorBody.cpp - The body of a linalg.generic on vectors -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, the scalar body op by op, stores, and how partial results of a
// reduction are joined.
//===----------------------------------------------------------------------===//

#include "passes/Cpu/VectorBody.h"
#include "passes/Kernels/ReductionOrder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

VectorBody::VectorBody(OpBuilder &builder, linalg::GenericOp op,
                       unsigned dimension, int64_t width)
    : builder(builder), loc(op.getLoc()), op(op), dimension(dimension),
      width(width), counters(op.getNumLoops()) {
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!isVector(init))
      reductions.push_back(init.getOperandNumber() - op.getNumDpsInputs());
  loadRowValues();
}

VectorBody::RowValues VectorBody::enter(unsigned dim, Value counter) {
  RowValues outside = rowValues;
  counters[dim] = counter;
  loadRowValues();
  return outside;
}

void VectorBody::leave(unsigned dim, RowValues outside) {
  counters[dim] = Value();
  rowValues = std::move(outside);
}

void VectorBody::loadRowValues() {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    unsigned number = operand->getOperandNumber();
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (isVector(*operand) || rowValues.contains(number) ||
        op.getMatchingBlockArgument(operand).use_empty())
      continue;
    bool isKnown = true;
    for (unsigned dim = 0; dim < counters.size(); ++dim)
      isKnown &= !map.isFunctionOfDim(dim) || counters[dim];
    if (isKnown)
      rowValues[number] = broadcast(loadScalar(*operand));
  }
}

Value VectorBody::start(unsigned output) {
  Operation *combiner = getCombiner(op, output);
  Type element = op.getRegionOutputArgs()[output].getType();
  TypedAttr number;
  if (isa<math::FmaOp>(combiner)) {
    number = builder.getFloatAttr(element, 0.0);
  } else if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner)) {
    // Neutral would be NaN, which no partial result shall be: see `combine`.
    const auto &semantics = cast<FloatType>(element).getFloatSemantics();
    bool isNegative = isa<arith::MaxNumFOp>(combiner);
    number = FloatAttr::get(element, APFloat::getInf(semantics, isNegative));
  } else {
    number = *arith::getNeutralElement(combiner);
  }
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(getVectorType(element), number));
}

void VectorBody::finish(unsigned output, ArrayRef<Value> parts) {
  SmallVector<Value> level(parts);
  while (level.size() > 1) {
    SmallVector<Value> next;
    for (size_t k = 0; k + 1 < level.size(); k += 2)
      next.push_back(combine(output, level[k], level[k + 1]));
    if (level.size() % 2)
      next.push_back(level.back());
    level = next;
  }
  OpOperand &operand = *op.getDpsInitOperand(output);
  Value old = loadScalar(operand), sum = fold(output, level.front());
  Operation *combiner = getCombiner(op, output);
  Value result;
  if (isa<math::FmaOp>(combiner))
    result = arith::AddFOp::create(builder, loc, old, sum);
  else // Unlike partial results, what was there may be NaN.
    result = clone(*combiner, {old, sum}, [](Type type) {
               return type;
             })->getResult(0);
  memref::StoreOp::create(builder, loc, result, operand.get(),
                          indices(operand));
}

/// Joins the lower and the upper half until one element is left.
Value VectorBody::fold(unsigned output, Value vector) {
  for (int64_t half = width / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    Value a = vector::ShuffleOp::create(builder, loc, vector, vector, low);
    Value b = vector::ShuffleOp::create(builder, loc, vector, vector, high);
    vector = combine(output, a, b);
  }
  return vector::ExtractOp::create(builder, loc, vector, 0);
}

Value VectorBody::combine(unsigned output, Value value, Value accumulator) {
  Operation *combiner = getCombiner(op, output);
  if (isa<math::FmaOp>(combiner))
    return arith::AddFOp::create(builder, loc, value, accumulator);
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner)) {
    // The accumulator is never NaN, so that one instruction leaves out those
    // of the values; else it takes three.
    auto isBetter = isa<arith::MaxNumFOp>(combiner) ? arith::CmpFPredicate::OGT
                                                    : arith::CmpFPredicate::OLT;
    Value better =
        arith::CmpFOp::create(builder, loc, isBetter, value, accumulator);
    return arith::SelectOp::create(builder, loc, better, value, accumulator);
  }
  return clone(*combiner, {value, accumulator},
               [&](Type) { return value.getType(); })
      ->getResult(0);
}

Operation *VectorBody::clone(Operation &inner, ValueRange operands,
                             llvm::function_ref<Type(Type)> getType) {
  SmallVector<Type> types;
  for (Type type : inner.getResultTypes())
    types.push_back(getType(type));
  return builder.create(
      OperationState(loc, inner.getName(), operands, types, inner.getAttrs()));
}

SmallVector<Value> VectorBody::step(Value counter, ArrayRef<Value> accumulators,
                                    int64_t lanes) {
  counters[dimension] = counter;
  // 1. Operands.
  IRMapping mapping;
  Block *body = op.getBody();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    if (isVector(operand))
      mapping.map(argument, load(operand, lanes));
    else if (op.isDpsInput(&operand))
      mapping.map(argument, rowValues.lookup(operand.getOperandNumber()));
  }
  for (auto [r, output] : llvm::enumerate(reductions))
    mapping.map(op.getRegionOutputArgs()[output], accumulators[r]);

  // 2. The body on vectors; what comes from outside of it is a scalar.
  auto lookup = [&](Value value) -> Value {
    if (Value mapped = mapping.lookupOrNull(value))
      return mapped;
    Value mapped = broadcast(value);
    mapping.map(value, mapped);
    return mapped;
  };
  for (Operation &inner : body->without_terminator()) {
    if (auto number = dyn_cast<linalg::IndexOp>(inner)) {
      Value vector = broadcast(counters[number.getDim()]);
      if (number.getDim() == dimension)
        vector = arith::AddIOp::create(
            builder, loc, vector,
            vector::StepOp::create(builder, loc, vector.getType()));
      mapping.map(number.getResult(), vector);
      continue;
    }
    if (isa<arith::ConstantOp>(inner)) {
      Value constant = builder.clone(inner)->getResult(0);
      mapping.map(inner.getResult(0), broadcast(constant));
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(lookup(operand));
    if (const auto *reduction = llvm::find_if(
            reductions,
            [&](unsigned output) { return getCombiner(op, output) == &inner; });
        reduction != reductions.end() &&
        isa<arith::MaxNumFOp, arith::MinNumFOp>(inner)) {
      Value accumulator = accumulators[reduction - reductions.begin()];
      Value value = operands[operands[0] == accumulator ? 1 : 0];
      mapping.map(inner.getResult(0), combine(*reduction, value, accumulator));
      continue;
    }
    Operation *onVectors =
        clone(inner, operands, [&](Type type) { return getVectorType(type); });
    mapping.map(inner.getResults(), onVectors->getResults());
  }

  // 3. Results.
  SmallVector<Value> next;
  Operation *yield = body->getTerminator();
  SmallVector<std::pair<OpOperand *, Value>> stores;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned output = init.getOperandNumber() - op.getNumDpsInputs();
    Value value = lookup(yield->getOperand(output));
    if (isVector(init)) {
      stores.push_back({&init, value});
      continue;
    }
    Value old = accumulators[next.size()];
    if (lanes < width)
      value = arith::SelectOp::create(builder, loc, mask(lanes), value, old);
    next.push_back(value);
  }
  for (auto [init, value] : stores)
    store(*init, value, lanes);
  return next;
}

bool VectorBody::isContiguous(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return type.isLastDimUnitStride() && !type.getElementType().isInteger(1);
}

SmallVector<Value> VectorBody::indices(OpOperand &operand, int64_t lane) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> result;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      Value counter = counters[dim.getPosition()];
      if (lane && dim.getPosition() == dimension)
        counter = arith::AddIOp::create(builder, loc, counter, index(lane));
      result.push_back(counter);
    } else if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      result.push_back(index(constant.getValue()));
    } else {
      // The dimension itself does not occur here: see ReductionOrder.h.
      // Counters that are not set yet do not either.
      SmallVector<Value> dims;
      for (Value counter : counters)
        dims.push_back(counter ? counter : index(0));
      AffineMap one = AffineMap::get(map.getNumDims(), 0, expr);
      result.push_back(affine::AffineApplyOp::create(builder, loc, one, dims));
    }
  }
  return result;
}

Value VectorBody::mask(int64_t lanes) {
  SmallVector<bool> bits(width, false);
  std::fill_n(bits.begin(), lanes, true);
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(getVectorType(builder.getI1Type()), bits));
}

Value VectorBody::loadScalar(OpOperand &operand) {
  if (!isa<MemRefType>(operand.get().getType()))
    return operand.get();
  return memref::LoadOp::create(builder, loc, operand.get(), indices(operand));
}

Value VectorBody::load(OpOperand &operand, int64_t lanes) {
  Value buffer = operand.get();
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  VectorType type = getVectorType(element);
  if (!isContiguous(buffer)) {
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < width; ++lane)
      elements.push_back(memref::LoadOp::create(
          builder, loc, buffer, indices(operand, std::min(lane, lanes - 1))));
    return vector::FromElementsOp::create(builder, loc, type, elements);
  }
  if (lanes == width)
    return vector::LoadOp::create(builder, loc, type, buffer, indices(operand));
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, buffer,
                                      indices(operand), mask(lanes), zero);
}

void VectorBody::store(OpOperand &operand, Value value, int64_t lanes) {
  Value buffer = operand.get();
  if (!isContiguous(buffer)) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      memref::StoreOp::create(
          builder, loc, vector::ExtractOp::create(builder, loc, value, lane),
          buffer, indices(operand, lane));
    return;
  }
  if (lanes == width)
    vector::StoreOp::create(builder, loc, value, buffer, indices(operand));
  else
    vector::MaskedStoreOp::create(builder, loc, buffer, indices(operand),
                                  mask(lanes), value);
}
