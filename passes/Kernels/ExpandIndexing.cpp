//===- ExpandIndexing.cpp - Gathers and scatters become loops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Axes of the data that are taken whole form rows, which are copied or combined
// as vectors; a loop runs over the others. Without rows, or where the target
// prefers parallel loops, a gather is one generic. A scatter, whose updates
// must stay in order, is a loop over all of them.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/Composites.h"
#include "penstock/Support/Structured.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <functional>

using namespace mlir;
using namespace penstock;

// Index tensors say at which positions of the data an op reads or writes. Here
// is the arithmetic of these positions, kept in range, and the loops over them.

namespace {
/// Emits for one gather or scatter: `space` is what it iterates over, `data`
/// where the positions are.
class IndexWalker : public Structured {
public:
  IndexWalker(mlir::OpBuilder &builder, mlir::Location loc,
              mlir::RankedTensorType space, mlir::RankedTensorType data,
              mlir::ValueRange indices, mlir::AffineMap at,
              mlir::ArrayAttr indexMaps);

  /// Nothing is at any position.
  bool hasNoPositions() const {
    return llvm::is_contained(data.getShape(), 0) ||
           llvm::is_contained(space.getShape(), 0);
  }
  int64_t outerRank() const { return space.getRank() - rowAxes; }
  /// Rows that are worth a vector loop.
  bool hasRows() const;

  /// The unit that is read or written at a time.
  enum class Unit { Element, Row };

  struct Position {
    /// Indices into the data, in range.
    llvm::SmallVector<mlir::Value> at;
    /// True if they are the ones that were meant; null if they always are.
    mlir::Value valid;
  };
  /// The position of an iteration; `values` are its index tensors' elements.
  /// That of a row has no index for the row's own axes.
  Position find(Scalars &s, mlir::ValueRange iteration, mlir::ValueRange values,
                Unit unit);
  /// With the index tensors' elements at the iteration.
  Position find(Scalars &s, mlir::ValueRange iteration, Unit unit);

  /// `into` with another row at a position `to` of the leading axes: `body` has
  /// the elements of the row of `from`, and those that are there.
  mlir::Value combineRows(Structured &s, mlir::Value from,
                          mlir::ValueRange position, mlir::Value into,
                          mlir::ValueRange to, Body body);

  /// A loop over the first `rank` axes of the space, through which `start` is
  /// carried.
  using LoopBody =
      std::function<mlir::Value(Structured &, mlir::ValueRange, mlir::Value)>;
  mlir::Value loop(int64_t rank, mlir::Value start, const LoopBody &body);

  mlir::RankedTensorType space, data;
  mlir::ValueRange indices;
  mlir::AffineMap at;
  llvm::SmallVector<mlir::AffineMap> indexMaps;
  int64_t rowAxes = 0;

private:
  void countRowAxes();
  struct Slice {
    llvm::SmallVector<mlir::OpFoldResult> offsets, sizes, strides;
  };
  Slice getRow(mlir::ValueRange position);
};
} // namespace

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

namespace {

/// Returns the value that marks an index out of range.
TypedAttr getMark(Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type, APFloat::getNaN(type.getFloatSemantics()));
  unsigned width = element.getIntOrFloatBitWidth();
  APInt value = element.isInteger(1) || element.isUnsignedInteger()
                    ? APInt::getZero(width)
                    : APInt::getSignedMinValue(width);
  return IntegerAttr::get(element, value);
}

//===--- Gather ---===//

struct ExpandGather : OpRewritePattern<nn::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getResult().getType();
    IndexWalker walker(rewriter, op.getLoc(), type, op.getData().getType(),
                       op.getIndices(), op.getAt(), op.getIndexMaps());
    Value mark = walker.make<arith::ConstantOp>(getMark(type.getElementType()));
    if (walker.hasNoPositions()) {
      rewriter.replaceOp(op, walker.filled(type, mark));
      return success();
    }
    bool byRows = walker.hasRows() && !prefersParallelLoops(op);
    Value empty = walker.empty(type);
    rewriter.replaceOp(op, byRows ? rows(walker, op, mark, empty)
                                  : elements(walker, op, mark, empty));
    return success();
  }

  static Value rows(IndexWalker &walker, nn::GatherOp op, Value mark,
                    Value empty) {
    return walker.loop(walker.outerRank(), empty,
                       [&](Structured &s, ValueRange iteration, Value carried) {
                         IndexWalker::Position from =
                             walker.find(s, iteration, IndexWalker::Unit::Row);
                         return walker.combineRows(
                             s, op.getData(), from.at, carried, iteration,
                             [&](Scalars &s, ValueRange in) {
                               return from.valid
                                          ? s.select(from.valid, in[0], mark)
                                          : in[0];
                             });
                       });
  }

  static Value elements(IndexWalker &walker, nn::GatherOp op, Value mark,
                        Value empty) {
    int64_t rank = walker.space.getRank();
    SmallVector<AffineMap> maps = walker.indexMaps;
    maps.push_back(walker.identity(rank));
    return walker.generic(
        op.getIndices(), empty, maps, Structured::parallel(rank),
        [&](Scalars &s, ValueRange in) {
          SmallVector<Value> iteration;
          for (int64_t d = 0; d < rank; ++d)
            iteration.push_back(s.make<linalg::IndexOp>(d));
          IndexWalker::Position from = walker.find(s, iteration, in.drop_back(),
                                                   IndexWalker::Unit::Element);
          Value value = s.make<tensor::ExtractOp>(op.getData(), from.at);
          return from.valid ? s.select(from.valid, value, mark) : value;
        });
  }
};

//===--- Scatter ---===//

Value combine(Scalars &s, nn::ScatterKind kind, Value old, Value update) {
  switch (kind) {
  case nn::ScatterKind::None:
    return update;
  case nn::ScatterKind::Add:
    return s.add(old, update);
  case nn::ScatterKind::Mul:
    return s.mul(old, update);
  case nn::ScatterKind::Max:
    return s.max(old, update);
  case nn::ScatterKind::Min:
    return s.min(old, update);
  }
  return update;
}

/// Returns the tensor that the updates go into. An argument that must stay is
/// copied to where the result will be; bufferization would make room for it in
/// between.
Value getStart(OpBuilder &builder, nn::ScatterOp op) {
  auto argument = dyn_cast<BlockArgument>(op.getInit());
  auto function = op->getParentOfType<func::FuncOp>();
  if (!argument || !function || argument.getOwner() != &function.front() ||
      function.getArgAttr(argument.getArgNumber(), pipeline::kIntoAttr))
    return op.getInit();
  Value empty = tensor::EmptyOp::create(builder, op.getLoc(),
                                        op.getInit().getType(), ValueRange());
  return linalg::CopyOp::create(builder, op.getLoc(), argument, empty)
      .getResult(0);
}

struct ExpandScatter : OpRewritePattern<nn::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    IndexWalker walker(rewriter, op.getLoc(), op.getUpdates().getType(),
                       op.getInit().getType(), op.getIndices(), op.getAt(),
                       op.getIndexMaps());
    if (walker.hasNoPositions()) {
      rewriter.replaceOp(op, op.getInit());
      return success();
    }
    Value mark =
        walker.make<arith::ConstantOp>(getMark(walker.space.getElementType()));
    auto join = [&](Scalars &s, Value old, Value update, Value valid) {
      Value value = combine(s, op.getKind(), old, update);
      return valid ? s.select(valid, value, mark) : value;
    };
    auto scatterRow = [&](Structured &s, ValueRange iteration, Value carried) {
      IndexWalker::Position to =
          walker.find(s, iteration, IndexWalker::Unit::Row);
      return walker.combineRows(s, op.getUpdates(), iteration, carried, to.at,
                                [&](Scalars &s, ValueRange in) {
                                  return join(s, in[1], in[0], to.valid);
                                });
    };
    auto scatterElement = [&](Structured &s, ValueRange iteration,
                              Value carried) {
      IndexWalker::Position to =
          walker.find(s, iteration, IndexWalker::Unit::Element);
      Value update = s.make<tensor::ExtractOp>(op.getUpdates(), iteration);
      Value old = s.make<tensor::ExtractOp>(carried, to.at);
      return s.make<tensor::InsertOp>(join(s, old, update, to.valid), carried,
                                      to.at);
    };
    Value start = getStart(rewriter, op);
    rewriter.replaceOp(
        op, walker.hasRows()
                ? walker.loop(walker.outerRank(), start, scatterRow)
                : walker.loop(walker.space.getRank(), start, scatterElement));
    return success();
  }
};

} // namespace

void penstock::populateExpandIndexing(RewritePatternSet &patterns) {
  patterns.add<ExpandGather, ExpandScatter>(patterns.getContext());
}
