//===- FewLines.cpp - Long lines shared by many threads -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. What a line is divided into follows from the shape alone. The
// order of nn.top_k has no equals, so that each rank occurs once, and all ways
// to find it agree.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/FewLines.h"
#include "penstock/Support/Structured.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

/// A line of this length is divided unless there are so many of them.
constexpr int64_t kLongLine = 256, kManyLines = 1024;

/// Pairs of elements that a GPU compares while one thread does one pair.
constexpr int64_t kPairsAtOnce = 16384;

int64_t countLines(RankedTensorType type, int64_t dim) {
  return type.getNumElements() / type.getDimSize(dim);
}

SmallVector<Value> createIndices(Scalars &s, int64_t count) {
  SmallVector<Value> indices;
  for (int64_t dim = 0; dim < count; ++dim)
    indices.push_back(s.make<linalg::IndexOp>(dim));
  return indices;
}

/// Cumulative sums of lines in parts of `length` elements.
class PartialSums : Structured {
public:
  PartialSums(OpBuilder &builder, nn::CumulativeSumOp op)
      : Structured(builder, op.getLoc()), op(op),
        type(cast<RankedTensorType>(op.getInput().getType())),
        dim(static_cast<int64_t>(op.getDim())), size(type.getDimSize(dim)) {
    length = int64_t(1) << ((llvm::Log2_64_Ceil(size) + 1) / 2);
    parts = llvm::divideCeil(size, length);
  }

  Value write();

private:
  /// Sums within the parts, of the elements before and including each one, and
  /// those of whole parts.
  SmallVector<Value> writeParts();
  /// Adds the parts before to each sum.
  Value writeSums(Value within, Value before);
  /// The other end where sums begin at the last element.
  Value mirror(Scalars &s, Value position) {
    if (!op.getReverse())
      return position;
    return s.sub(s.make<arith::ConstantIndexOp>(size - 1), position);
  }

  nn::CumulativeSumOp op;
  RankedTensorType type;
  int64_t dim, size, length, parts;
};

SmallVector<Value> PartialSums::writeParts() {
  // 1. Loops over parts, in the place of the axis, and over their elements.
  int64_t rank = type.getRank() + 1;
  Type element = type.getElementType();
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = parts;
  auto totals = RankedTensorType::get(shape, element);
  shape.insert(shape.begin() + dim + 1, length);
  AffineMap all = identity(rank);
  Iterators iterators = parallel(rank);
  iterators[dim + 1] = IteratorType::reduction;
  Value within = empty(RankedTensorType::get(shape, element));
  Value zeros = filled(totals, 0);

  // 2. Behind the end are zeros.
  return generics(
      ValueRange(), {within, zeros}, {all, all.dropResult(dim + 1)}, iterators,
      [&](Scalars &s, ValueRange scalars) -> SmallVector<Value> {
        SmallVector<Value> at = createIndices(s, rank);
        Value count = s.make<arith::ConstantIndexOp>(length);
        Value position = s.add(s.mul(at[dim], count), at[dim + 1]);
        Value last = s.make<arith::ConstantIndexOp>(size - 1);
        Value isInside = s.compare(arith::CmpIPredicate::sle, position, last);
        position = s.min(position, last);
        at.erase(at.begin() + dim + 1);
        at[dim] = mirror(s, position);
        Value value = s.make<tensor::ExtractOp>(op.getInput(), at);
        value = s.select(isInside, value, s.like(value, 0));
        Value sum = s.add(scalars[1], value);
        return {op.getExclusive() ? scalars[1] : sum, sum};
      });
}

Value PartialSums::writeSums(Value within, Value before) {
  int64_t rank = type.getRank();
  return generic(ValueRange(), empty(type), identity(rank), parallel(rank),
                 [&](Scalars &s, ValueRange) {
                   SmallVector<Value> at = createIndices(s, rank);
                   Value position = mirror(s, at[dim]);
                   Value count = s.make<arith::ConstantIndexOp>(length);
                   at[dim] = s.make<arith::DivUIOp>(position, count);
                   Value first = s.make<tensor::ExtractOp>(before, at);
                   at.insert(at.begin() + dim + 1,
                             s.make<arith::RemUIOp>(position, count));
                   return s.add(first, s.make<tensor::ExtractOp>(within, at));
                 });
}

Value PartialSums::write() {
  SmallVector<Value> sums = writeParts();
  Value before = nn::CumulativeSumOp::create(builder, loc, sums[1], dim,
                                             /*exclusive=*/true,
                                             /*reverse=*/false);
  return writeSums(sums[0], before);
}

} // namespace

bool penstock::hasLongSums(nn::CumulativeSumOp op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  auto dim = static_cast<int64_t>(op.getDim());
  return type.getNumElements() > 0 && type.getDimSize(dim) >= kLongLine &&
         countLines(type, dim) < kManyLines;
}

Value penstock::expandInParts(OpBuilder &builder, nn::CumulativeSumOp op) {
  return PartialSums(builder, op).write();
}

bool penstock::ranksFaster(nn::TopKOp op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  auto dim = static_cast<int64_t>(op.getDim());
  int64_t lines = countLines(type, dim), size = type.getDimSize(dim);
  return size > 1 && (lines == 1 ||
                      lines * size < op.getResult().getType().getDimSize(dim) *
                                         kPairsAtOnce);
}

Value penstock::expandByRank(OpBuilder &builder, nn::TopKOp op) {
  // 1. How many elements of the line come before each one: a loop over these,
  // behind the others.
  Structured emit(builder, op.getLoc());
  auto type = cast<RankedTensorType>(op.getInput().getType());
  auto dim = static_cast<int64_t>(op.getDim());
  int64_t rank = type.getRank();
  Type i64 = builder.getI64Type();
  AffineMap element = emit.identity(rank + 1).dropResult(rank);
  AffineMap other =
      element.replace(builder.getAffineDimExpr(dim),
                      builder.getAffineDimExpr(rank), rank + 1, 0);
  Structured::Iterators iterators = Structured::parallel(rank);
  iterators.push_back(IteratorType::reduction);
  Value ranks = emit.generic(
      {op.getInput(), op.getInput()},
      emit.filled(RankedTensorType::get(type.getShape(), i64), 0),
      {element, other, element}, iterators, [&](Scalars &s, ValueRange in) {
        Value i = s.make<linalg::IndexOp>(dim);
        Value j = s.make<linalg::IndexOp>(rank);
        Value isBefore =
            comesBefore(s.builder, s.loc, op.getSmallest(), in[1], j, in[0], i);
        return s.add(in[2], s.make<arith::ExtUIOp>(i64, isBefore));
      });

  // 2. The element of each rank.
  return emit.generic(
      ranks, emit.filled(op.getResult().getType(), -1), {other, element},
      iterators, [&](Scalars &s, ValueRange in) {
        Value place = s.make<linalg::IndexOp>(dim);
        Value j = s.make<linalg::IndexOp>(rank);
        place = s.make<arith::IndexCastOp>(i64, place);
        j = s.make<arith::IndexCastOp>(i64, j);
        Value isHere = s.equal(in[0], place);
        return s.max(in[1], s.select(isHere, j, s.integer(i64, -1)));
      });
}

Value penstock::comesBefore(OpBuilder &builder, Location loc, bool smallest,
                            Value a, Value i, Value b, Value j) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  Scalars s(builder, loc);
  Value better, equal;
  if (Scalars::isFloat(a)) {
    Value nanA = s.isNaN(a), nanB = s.isNaN(b);
    Value numberA = s.compare(F::ORD, a, a), numberB = s.compare(F::ORD, b, b);
    // NaN is the largest.
    Value ordered = s.compare(smallest ? F::OLT : F::OGT, a, b);
    better = s.any(ordered,
                   smallest ? s.both(numberA, nanB) : s.both(nanA, numberB));
    Value same = s.compare(F::OEQ, a, b);
    equal = s.any(same, s.both(nanA, nanB));
  } else {
    better = s.compare(smallest ? I::slt : I::sgt, a, b);
    equal = s.compare(I::eq, a, b);
  }
  Value earlier = s.compare(I::slt, i, j);
  return s.any(better, s.both(equal, earlier));
}
