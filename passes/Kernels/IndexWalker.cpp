//===- IndexWalker.cpp - Where a gather or scatter reads and writes -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See IndexWalker.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/IndexWalker.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace penstock;

IndexWalker::IndexWalker(OpBuilder &builder, Location loc,
                         RankedTensorType space, RankedTensorType data,
                         ValueRange indices, AffineMap at, ArrayAttr indexMaps)
    : Structured(builder, loc), space(space), data(data), indices(indices),
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

IndexWalker::Position IndexWalker::find(Scalars &s, ValueRange iteration,
                                        Unit unit) {
  SmallVector<Value> values;
  for (auto [tensor, map] : llvm::zip_equal(indices, indexMaps)) {
    SmallVector<Value> where;
    for (AffineExpr result : map.getResults()) {
      if (auto constant = dyn_cast<AffineConstantExpr>(result))
        where.push_back(s.make<arith::ConstantIndexOp>(constant.getValue()));
      else
        where.push_back(iteration[cast<AffineDimExpr>(result).getPosition()]);
    }
    values.push_back(s.make<tensor::ExtractOp>(tensor, where));
  }
  return find(s, iteration, values, unit);
}

IndexWalker::Position IndexWalker::find(Scalars &s, ValueRange iteration,
                                        ValueRange values, Unit unit) {
  Position position;
  int64_t rank = data.getRank() - (unit == Unit::Row ? rowAxes : 0);
  for (int64_t axis = 0; axis < rank; ++axis) {
    AffineExpr result = at.getResult(axis);
    if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      position.at.push_back(iteration[dim.getPosition()]);
      continue;
    }
    Value value = s.make<arith::IndexCastOp>(
        s.builder.getIndexType(),
        values[cast<AffineSymbolExpr>(result).getPosition()]);
    int64_t extent = data.getDimSize(axis);
    Value zero = s.make<arith::ConstantIndexOp>(0);
    Value size = s.make<arith::ConstantIndexOp>(extent);
    Value negative = s.less(value, zero);
    value = s.select(negative, s.add(value, size), value);
    Value valid = s.compare(arith::CmpIPredicate::ult, value, size);
    value = s.max(value, zero);
    value = s.min(value, s.make<arith::ConstantIndexOp>(extent - 1));
    position.at.push_back(value);
    position.valid = position.valid ? s.both(position.valid, valid) : valid;
  }
  return position;
}

IndexWalker::Slice IndexWalker::getRow(ValueRange position) {
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

Value IndexWalker::combineRows(Structured &s, Value from, ValueRange position,
                               Value into, ValueRange to, Body body) {
  auto type = RankedTensorType::get(space.getShape().take_back(rowAxes),
                                    space.getElementType());
  auto read = [&](Value tensor, const Slice &slice) {
    return s.make<tensor::ExtractSliceOp>(type, tensor, slice.offsets,
                                          slice.sizes, slice.strides);
  };
  Slice target = getRow(to);
  Value row = read(from, getRow(position));
  AffineMap identity = s.identity(rowAxes);
  row = s.generic(row, read(into, target), {identity, identity},
                  parallel(rowAxes), body);
  return s.make<tensor::InsertSliceOp>(row, into, target.offsets, target.sizes,
                                       target.strides);
}

Value IndexWalker::loop(int64_t rank, Value start, const LoopBody &body) {
  SmallVector<Value> iteration;
  std::function<Value(Structured &, Value)> nest = [&](Structured &s,
                                                       Value carried) -> Value {
    auto depth = static_cast<int64_t>(iteration.size());
    if (depth == rank)
      return body(s, iteration, carried);
    Value zero = s.make<arith::ConstantIndexOp>(0);
    if (space.getDimSize(depth) == 1) {
      iteration.push_back(zero);
      Value result = nest(s, carried);
      iteration.pop_back();
      return result;
    }
    Value size = s.make<arith::ConstantIndexOp>(space.getDimSize(depth));
    Value one = s.make<arith::ConstantIndexOp>(1);
    return s.make<scf::ForOp>(
        zero, size, one, carried,
        [&](OpBuilder &inside, Location loc, Value counter, ValueRange values) {
          Structured nested(inside, loc);
          iteration.push_back(counter);
          Value result = nest(nested, values.front());
          iteration.pop_back();
          scf::YieldOp::create(inside, loc, result);
        });
  };
  return nest(*this, start);
}
