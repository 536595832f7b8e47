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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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

Value createFilled(OpBuilder &builder, Location loc, RankedTensorType type,
                   TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

Value add(OpBuilder &builder, Location loc, Value a, Value b) {
  return isa<FloatType>(a.getType())
             ? Value(arith::AddFOp::create(builder, loc, a, b))
             : Value(arith::AddIOp::create(builder, loc, a, b));
}

SmallVector<Value> createIndices(OpBuilder &builder, Location loc,
                                 int64_t count) {
  SmallVector<Value> indices;
  for (int64_t dim = 0; dim < count; ++dim)
    indices.push_back(linalg::IndexOp::create(builder, loc, dim));
  return indices;
}

/// Cumulative sums of lines in parts of `length` elements.
class PartialSums {
public:
  PartialSums(OpBuilder &builder, nn::CumulativeSumOp op)
      : builder(builder), loc(op.getLoc()), op(op),
        type(cast<RankedTensorType>(op.getInput().getType())),
        dim(static_cast<int64_t>(op.getDim())), size(type.getDimSize(dim)) {
    length = int64_t(1) << ((llvm::Log2_64_Ceil(size) + 1) / 2);
    parts = llvm::divideCeil(size, length);
  }

  Value write();

private:
  /// Sums within the parts, of the elements before and including each one, and
  /// those of whole parts.
  linalg::GenericOp writeParts();
  /// Adds the parts before to each sum.
  Value writeSums(Value within, Value before);
  /// The other end where sums begin at the last element.
  Value mirror(OpBuilder &b, Value position) {
    if (!op.getReverse())
      return position;
    Value last = arith::ConstantIndexOp::create(b, loc, size - 1);
    return arith::SubIOp::create(b, loc, last, position);
  }

  OpBuilder &builder;
  Location loc;
  nn::CumulativeSumOp op;
  RankedTensorType type;
  int64_t dim, size, length, parts;
};

linalg::GenericOp PartialSums::writeParts() {
  // 1. Loops over parts, in the place of the axis, and over their elements.
  int64_t rank = type.getRank() + 1;
  Type element = type.getElementType();
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = parts;
  auto totals = RankedTensorType::get(shape, element);
  shape.insert(shape.begin() + dim + 1, length);
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators[dim + 1] = IteratorType::reduction;
  Value within = tensor::EmptyOp::create(builder, loc, shape, element);
  Value zeros =
      createFilled(builder, loc, totals, builder.getZeroAttr(element));

  // 2. Behind the end are zeros.
  auto body = [&](OpBuilder &b, Location, ValueRange scalars) {
    SmallVector<Value> at = createIndices(b, loc, rank);
    Value count = arith::ConstantIndexOp::create(b, loc, length);
    Value position = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, at[dim], count), at[dim + 1]);
    Value last = arith::ConstantIndexOp::create(b, loc, size - 1);
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                           position, last);
    position = arith::MinSIOp::create(b, loc, position, last);
    at.erase(at.begin() + dim + 1);
    at[dim] = mirror(b, position);
    Value value = tensor::ExtractOp::create(b, loc, op.getInput(), at);
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    value = arith::SelectOp::create(b, loc, isInside, value, zero);
    Value sum = add(b, loc, scalars[1], value);
    linalg::YieldOp::create(
        b, loc, ValueRange{op.getExclusive() ? scalars[1] : sum, sum});
  };
  return linalg::GenericOp::create(
      builder, loc, TypeRange{within.getType(), totals}, ValueRange(),
      ValueRange{within, zeros},
      ArrayRef<AffineMap>{all, all.dropResult(dim + 1)}, iterators, body);
}

Value PartialSums::writeSums(Value within, Value before) {
  int64_t rank = type.getRank();
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  auto body = [&](OpBuilder &b, Location, ValueRange) {
    SmallVector<Value> at = createIndices(b, loc, rank);
    Value position = mirror(b, at[dim]);
    Value count = arith::ConstantIndexOp::create(b, loc, length);
    at[dim] = arith::DivUIOp::create(b, loc, position, count);
    Value first = tensor::ExtractOp::create(b, loc, before, at);
    at.insert(at.begin() + dim + 1,
              arith::RemUIOp::create(b, loc, position, count));
    Value second = tensor::ExtractOp::create(b, loc, within, at);
    linalg::YieldOp::create(b, loc, add(b, loc, first, second));
  };
  return linalg::GenericOp::create(
             builder, loc, TypeRange(type), ValueRange(), ValueRange(empty),
             builder.getMultiDimIdentityMap(rank),
             SmallVector<IteratorType>(rank, IteratorType::parallel), body)
      .getResult(0);
}

Value PartialSums::write() {
  linalg::GenericOp sums = writeParts();
  Value before = nn::CumulativeSumOp::create(builder, loc, sums.getResult(1),
                                             dim, /*exclusive=*/true,
                                             /*reverse=*/false);
  return writeSums(sums.getResult(0), before);
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
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  RankedTensorType places = op.getResult().getType();
  auto dim = static_cast<int64_t>(op.getDim());
  int64_t rank = type.getRank();
  Type i64 = builder.getI64Type();
  AffineMap element = builder.getMultiDimIdentityMap(rank + 1).dropResult(rank);
  AffineMap other =
      element.replace(builder.getAffineDimExpr(dim),
                      builder.getAffineDimExpr(rank), rank + 1, 0);
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  auto rankType = RankedTensorType::get(type.getShape(), i64);
  auto count = [&](OpBuilder &b, Location, ValueRange scalars) {
    Value i = linalg::IndexOp::create(b, loc, dim);
    Value j = linalg::IndexOp::create(b, loc, rank);
    Value isBefore =
        comesBefore(b, loc, op.getSmallest(), scalars[1], j, scalars[0], i);
    Value one = arith::ExtUIOp::create(b, loc, i64, isBefore);
    linalg::YieldOp::create(
        b, loc, arith::AddIOp::create(b, loc, scalars[2], one).getResult());
  };
  Value ranks =
      linalg::GenericOp::create(
          builder, loc, TypeRange(rankType),
          ValueRange{op.getInput(), op.getInput()},
          createFilled(builder, loc, rankType, builder.getI64IntegerAttr(0)),
          ArrayRef<AffineMap>{element, other, element}, iterators, count)
          .getResult(0);

  // 2. The element of each rank.
  auto find = [&](OpBuilder &b, Location, ValueRange scalars) {
    Value place = linalg::IndexOp::create(b, loc, dim);
    Value j = linalg::IndexOp::create(b, loc, rank);
    place = arith::IndexCastOp::create(b, loc, i64, place);
    j = arith::IndexCastOp::create(b, loc, i64, j);
    Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         scalars[0], place);
    Value none = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(-1));
    Value found = arith::SelectOp::create(b, loc, isHere, j, none);
    linalg::YieldOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, scalars[1], found).getResult());
  };
  return linalg::GenericOp::create(
             builder, loc, TypeRange(places), ranks,
             createFilled(builder, loc, places, builder.getI64IntegerAttr(-1)),
             ArrayRef<AffineMap>{other, element}, iterators, find)
      .getResult(0);
}

Value penstock::comesBefore(OpBuilder &builder, Location loc, bool smallest,
                            Value a, Value i, Value b, Value j) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  Value better, equal;
  if (isa<FloatType>(a.getType())) {
    auto compare = [&](F predicate, Value x, Value y) -> Value {
      return arith::CmpFOp::create(builder, loc, predicate, x, y);
    };
    auto both = [&](Value x, Value y) -> Value {
      return arith::AndIOp::create(builder, loc, x, y);
    };
    Value nanA = compare(F::UNO, a, a), nanB = compare(F::UNO, b, b);
    Value numberA = compare(F::ORD, a, a), numberB = compare(F::ORD, b, b);
    // NaN is the largest.
    better = arith::OrIOp::create(
        builder, loc, compare(smallest ? F::OLT : F::OGT, a, b),
        smallest ? both(numberA, nanB) : both(nanA, numberB));
    equal = arith::OrIOp::create(builder, loc, compare(F::OEQ, a, b),
                                 both(nanA, nanB));
  } else {
    better =
        arith::CmpIOp::create(builder, loc, smallest ? I::slt : I::sgt, a, b);
    equal = arith::CmpIOp::create(builder, loc, I::eq, a, b);
  }
  Value earlier = arith::CmpIOp::create(builder, loc, I::slt, i, j);
  Value tie = arith::AndIOp::create(builder, loc, equal, earlier);
  return arith::OrIOp::create(builder, loc, better, tie);
}
