//===- ScalarBody.cpp - The body of a linalg.generic on scalars -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ScalarBody.h. A vector is loaded and stored as a whole and computed with
// element by element, so it has the bits of its scalars.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/ScalarBody.h"

#include "passes/Cuda/Alignment.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace penstock;

SmallVector<Value> ScalarBody::locate(OpOperand &operand,
                                      ArrayRef<Value> indices) {
  SmallVector<Value> result;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    result.push_back(
        affine::expandAffineExpr(builder, loc, expr, indices, ValueRange()));
  return result;
}

SmallVector<Value> ScalarBody::advance(ArrayRef<Value> indices, unsigned dim,
                                       int64_t by) {
  SmallVector<Value> result(indices);
  if (by)
    result[dim] =
        arith::AddIOp::create(builder, loc, result[dim],
                              arith::ConstantIndexOp::create(builder, loc, by));
  return result;
}

Value ScalarBody::load(OpOperand &operand, ArrayRef<Value> indices) {
  if (!isa<MemRefType>(operand.get().getType()))
    return operand.get();
  return memref::LoadOp::create(builder, loc, operand.get(),
                                locate(operand, indices));
}

void ScalarBody::store(OpOperand &init, Value value, ArrayRef<Value> indices) {
  memref::StoreOp::create(builder, loc, value, init.get(),
                          locate(init, indices));
}

bool penstock::isDenseAlong(linalg::GenericOp op, OpOperand &operand,
                            unsigned dim) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!type || map.getNumResults() == 0 ||
      map.getResults().back() != getAffineDimExpr(dim, map.getContext()) ||
      llvm::any_of(map.getResults().drop_back(), [&](AffineExpr result) {
        return result.isFunctionOfDim(dim);
      }))
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides.back() == 1 && getElementBytes(type.getElementType());
}

llvm::MaybeAlign ScalarBody::getAlignment(Value buffer, int64_t count) {
  if (!isAligned && !isVectorAligned(buffer, count))
    return llvm::MaybeAlign();
  auto type = cast<MemRefType>(buffer.getType());
  int64_t bytes = count * getElementBytes(type.getElementType());
  return llvm::Align(static_cast<uint64_t>(std::min(bytes, kVectorBytes)));
}

/// The buffer as vectors see it. Truth values are bytes in memory, and would be
/// bits in vectors; LLVM knows buffers of both by the same address.
static Value toBytes(OpBuilder &builder, Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (!type.getElementType().isInteger(1))
    return buffer;
  auto bytes = cast<MemRefType>(type.clone(builder.getI8Type()));
  return UnrealizedConversionCastOp::create(builder, loc, bytes, buffer)
      .getResult(0);
}

SmallVector<Value> ScalarBody::loadVector(OpOperand &operand,
                                          ArrayRef<Value> indices, unsigned dim,
                                          int64_t count) {
  if (!op.getMatchingIndexingMap(&operand).isFunctionOfDim(dim))
    return SmallVector<Value>(count, load(operand, indices));
  SmallVector<Value> result;
  if (!isDenseAlong(op, operand, dim)) {
    for (int64_t i = 0; i < count; ++i)
      result.push_back(load(operand, advance(indices, dim, i)));
    return result;
  }
  Type element = cast<MemRefType>(operand.get().getType()).getElementType();
  Value buffer = toBytes(builder, loc, operand.get());
  auto type = VectorType::get(
      count, cast<MemRefType>(buffer.getType()).getElementType());
  Value vector = vector::LoadOp::create(
      builder, loc, type, buffer, locate(operand, indices),
      /*nontemporal=*/false, getAlignment(operand.get(), count));
  for (int64_t i = 0; i < count; ++i) {
    Value value = vector::ExtractOp::create(builder, loc, vector, i);
    if (value.getType() != element)
      value = arith::TruncIOp::create(builder, loc, element, value);
    result.push_back(value);
  }
  return result;
}

void ScalarBody::storeVector(OpOperand &init, ArrayRef<Value> values,
                             ArrayRef<Value> indices, unsigned dim) {
  if (!isDenseAlong(op, init, dim)) {
    for (auto [i, value] : llvm::enumerate(values))
      store(init, value, advance(indices, dim, static_cast<int64_t>(i)));
    return;
  }
  auto count = static_cast<int64_t>(values.size());
  Value buffer = toBytes(builder, loc, init.get());
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  SmallVector<Value> elements(values);
  for (Value &value : elements)
    if (value.getType() != element)
      value = arith::ExtUIOp::create(builder, loc, element, value);
  Value vector = vector::FromElementsOp::create(
      builder, loc, VectorType::get(count, element), elements);
  vector::StoreOp::create(builder, loc, vector, buffer, locate(init, indices),
                          /*nontemporal=*/false,
                          getAlignment(init.get(), count));
}

SmallVector<Value> ScalarBody::compute(ArrayRef<Value> elements,
                                       ArrayRef<Value> indices) {
  IRMapping mapping;
  Block *body = op.getBody();
  for (auto [argument, element] :
       llvm::zip_equal(body->getArguments(), elements))
    if (element)
      mapping.map(argument, element);
  for (Operation &inner : body->without_terminator()) {
    if (auto number = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(number.getResult(), indices[number.getDim()]);
      continue;
    }
    Operation *clone = builder.clone(inner, mapping);
    clone->walk([&](linalg::IndexOp number) {
      number.replaceAllUsesWith(indices[number.getDim()]);
      number.erase();
    });
  }
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

void ScalarBody::writeElement(ArrayRef<Value> indices) {
  SmallVector<Value> elements;
  for (OpOperand &operand : op->getOpOperands())
    elements.push_back(reads(operand) ? load(operand, indices) : Value());
  for (auto [init, value] :
       llvm::zip_equal(op.getDpsInitsMutable(), compute(elements, indices)))
    store(init, value, indices);
}

void ScalarBody::writeVector(ArrayRef<Value> indices, unsigned dim,
                             int64_t count) {
  SmallVector<SmallVector<Value>> elements(
      count, SmallVector<Value>(op->getNumOperands()));
  for (OpOperand &operand : op->getOpOperands()) {
    if (!reads(operand))
      continue;
    for (auto [own, value] :
         llvm::zip_equal(elements, loadVector(operand, indices, dim, count)))
      own[operand.getOperandNumber()] = value;
  }
  SmallVector<SmallVector<Value>> results(op.getNumDpsInits());
  for (int64_t i = 0; i < count; ++i)
    for (auto [all, value] : llvm::zip_equal(
             results, compute(elements[i], advance(indices, dim, i))))
      all.push_back(value);
  for (auto [init, values] : llvm::zip_equal(op.getDpsInitsMutable(), results))
    storeVector(init, values, indices, dim);
}

SmallVector<Value> penstock::delinearize(OpBuilder &builder, Location loc,
                                         Value number,
                                         ArrayRef<int64_t> sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    indices[i] = number;
    if (i == 0)
      break;
    Value size = arith::ConstantIndexOp::create(builder, loc, sizes[i]);
    indices[i] = arith::RemUIOp::create(builder, loc, number, size);
    number = arith::DivUIOp::create(builder, loc, number, size);
  }
  return indices;
}
