//===- IndexWalker.cpp - Where a gather or scatter reads and writes -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See IndexWalker.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/IndexWalker.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <functional>

using namespace mlir;
using namespace penstock;

IndexWalker::IndexWalker(OpBuilder &builder, Location loc,
                         RankedTensorType space, RankedTensorType data,
                         ValueRange indices, AffineMap at, ArrayAttr indexMaps)
    : builder(builder), loc(loc), space(space), data(data), indices(indices),
      at(at) {
  for (Attribute map : indexMaps)
    this->indexMaps.push_back(cast<AffineMapAttr>(map).getValue());
  countRowAxes();
}

/// How many of the last axes of data and space go together, and say nothing
/// else.
void IndexWalker::countRowAxes() {
  int64_t limit = std::min(data.getRank(), space.getRank());
  for (; rowAxes < limit; ++rowAxes) {
    unsigned dim = space.getRank() - 1 - rowAxes;
    unsigned axis = data.getRank() - 1 - rowAxes;
    auto here = dyn_cast<AffineDimExpr>(at.getResult(axis));
    if (!here || here.getPosition() != dim)
      return;
    for (auto [other, result] : llvm::enumerate(at.getResults()))
      if (other != axis && result.isFunctionOfDim(dim))
        return;
    if (llvm::any_of(indexMaps,
                     [&](AffineMap map) { return map.isFunctionOfDim(dim); }))
      return;
  }
}

bool IndexWalker::hasRows() const {
  int64_t size = 1;
  for (int64_t extent : space.getShape().take_back(rowAxes))
    size *= extent;
  return rowAxes > 0 && size >= 4;
}

SmallVector<Value> IndexWalker::loadIndices(OpBuilder &b,
                                            ValueRange iteration) {
  SmallVector<Value> values;
  for (auto [tensor, map] : llvm::zip_equal(indices, indexMaps)) {
    SmallVector<Value> where;
    for (AffineExpr result : map.getResults()) {
      if (auto constant = dyn_cast<AffineConstantExpr>(result))
        where.push_back(index(b, constant.getValue()));
      else
        where.push_back(iteration[cast<AffineDimExpr>(result).getPosition()]);
    }
    values.push_back(tensor::ExtractOp::create(b, loc, tensor, where));
  }
  return values;
}

IndexWalker::Position IndexWalker::find(OpBuilder &b, ValueRange iteration,
                                        ValueRange values, Unit unit) {
  Position position;
  int64_t rank = data.getRank() - (unit == Unit::Row ? rowAxes : 0);
  for (int64_t axis = 0; axis < rank; ++axis) {
    AffineExpr result = at.getResult(axis);
    if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      position.at.push_back(iteration[dim.getPosition()]);
      continue;
    }
    Value value = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        values[cast<AffineSymbolExpr>(result).getPosition()]);
    int64_t extent = data.getDimSize(axis);
    Value zero = index(b, 0), size = index(b, extent);
    Value negative =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value, zero);
    value =
        select(b, negative, arith::AddIOp::create(b, loc, value, size), value);
    Value valid =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, value, size);
    value = arith::MaxSIOp::create(b, loc, value, zero);
    value = arith::MinSIOp::create(b, loc, value, index(b, extent - 1));
    position.at.push_back(value);
    position.valid =
        position.valid
            ? Value(arith::AndIOp::create(b, loc, position.valid, valid))
            : valid;
  }
  return position;
}

IndexWalker::Slice IndexWalker::rowAt(ValueRange position) {
  Slice slice;
  for (Value offset : position) {
    slice.offsets.push_back(offset);
    slice.sizes.push_back(builder.getIndexAttr(1));
  }
  for (int64_t extent : space.getShape().take_back(rowAxes)) {
    slice.offsets.push_back(builder.getIndexAttr(0));
    slice.sizes.push_back(builder.getIndexAttr(extent));
  }
  slice.strides.assign(slice.offsets.size(), builder.getIndexAttr(1));
  return slice;
}

Value IndexWalker::loop(
    int64_t rank, Value start,
    function_ref<Value(OpBuilder &, ValueRange, Value)> body) {
  SmallVector<Value> iteration;
  std::function<Value(OpBuilder &, Value)> nest = [&](OpBuilder &b,
                                                      Value carried) -> Value {
    auto depth = static_cast<int64_t>(iteration.size());
    if (depth == rank)
      return body(b, iteration, carried);
    if (space.getDimSize(depth) == 1) {
      iteration.push_back(index(b, 0));
      Value result = nest(b, carried);
      iteration.pop_back();
      return result;
    }
    auto loop = scf::ForOp::create(
        b, loc, index(b, 0), index(b, space.getDimSize(depth)), index(b, 1),
        carried,
        [&](OpBuilder &inside, Location, Value counter, ValueRange values) {
          iteration.push_back(counter);
          Value result = nest(inside, values.front());
          iteration.pop_back();
          scf::YieldOp::create(inside, loc, result);
        });
    return loop.getResult(0);
  };
  return nest(builder, start);
}
