//===- ExpandIndexing.cpp - Gathers and scatters become loops -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Axes of the data that are taken whole form rows, which are copied or combined
// as vectors; a loop runs over the others. Without rows a gather is one
// generic, and a scatter, whose updates must stay in order, a loop over all of
// them.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Lowering/Composites.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// What stands where an index was out of range.
TypedAttr getMark(Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type, APFloat::getNaN(type.getFloatSemantics()));
  unsigned width = element.getIntOrFloatBitWidth();
  APInt value = element.isInteger(1) || element.isUnsignedInteger()
                    ? APInt::getZero(width)
                    : APInt::getSignedMinValue(width);
  return IntegerAttr::get(element, value);
}

/// Emits for one gather or scatter: `space` is what it iterates over, `data`
/// where the positions are.
class Walker {
public:
  Walker(OpBuilder &builder, Location loc, RankedTensorType space,
         RankedTensorType data, ValueRange indices, AffineMap at,
         ArrayAttr indexMaps)
      : builder(builder), loc(loc), space(space), data(data), indices(indices),
        at(at) {
    for (Attribute map : indexMaps)
      this->indexMaps.push_back(cast<AffineMapAttr>(map).getValue());
    countRowAxes();
  }

  /// Nothing is at any position.
  bool hasNoPositions() const {
    return llvm::is_contained(data.getShape(), 0) ||
           llvm::is_contained(space.getShape(), 0);
  }
  int64_t outerRank() const { return space.getRank() - rowAxes; }
  /// Rows that are worth a vector loop.
  bool hasRows() const {
    int64_t size = 1;
    for (int64_t extent : space.getShape().take_back(rowAxes))
      size *= extent;
    return rowAxes > 0 && size >= 4;
  }
  RankedTensorType rowType() const {
    return RankedTensorType::get(space.getShape().take_back(rowAxes),
                                 space.getElementType());
  }

  struct Position {
    /// Indices into the data, in range.
    SmallVector<Value> at;
    /// Whether they are the ones that were meant.
    Value valid;
  };
  /// The position of an iteration; `values` are its index tensors' elements.
  /// With rows, the row's own axes have no index.
  Position find(OpBuilder &b, ValueRange iteration, ValueRange values,
                bool rows);
  /// The elements of the index tensors at an iteration.
  SmallVector<Value> loadIndices(OpBuilder &b, ValueRange iteration);

  /// The row of `tensor` at a position of its leading axes.
  struct Slice {
    SmallVector<OpFoldResult> offsets, sizes, strides;
  };
  Slice rowAt(ValueRange position);

  /// A loop over the first `rank` axes of the space, through which `start` is
  /// carried.
  Value loop(int64_t rank, Value start,
             function_ref<Value(OpBuilder &, ValueRange, Value)> body);

  Value select(OpBuilder &b, Value condition, Value a, Value other) {
    return arith::SelectOp::create(b, loc, condition, a, other);
  }
  Value index(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType space, data;
  ValueRange indices;
  AffineMap at;
  SmallVector<AffineMap> indexMaps;
  int64_t rowAxes = 0;

private:
  void countRowAxes();
};

/// How many of the last axes of data and space go together, and say nothing
/// else.
void Walker::countRowAxes() {
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

SmallVector<Value> Walker::loadIndices(OpBuilder &b, ValueRange iteration) {
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

Walker::Position Walker::find(OpBuilder &b, ValueRange iteration,
                              ValueRange values, bool rows) {
  Position position;
  int64_t rank = data.getRank() - (rows ? rowAxes : 0);
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

Walker::Slice Walker::rowAt(ValueRange position) {
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

Value Walker::loop(int64_t rank, Value start,
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

/// One op on a row: `body` has the elements of `inputs` and the old one.
Value emitRow(OpBuilder &b, Location loc, ValueRange inputs, Value out,
              function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = cast<RankedTensorType>(out.getType());
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, TypeRange(type), inputs, ValueRange(out), maps, iterators,
             [&](OpBuilder &inside, Location, ValueRange elements) {
               linalg::YieldOp::create(inside, loc, body(inside, elements));
             })
      .getResult(0);
}

//===--- Gather ---===//

struct ExpandGather : OpRewritePattern<nn::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = op.getResult().getType();
    Walker walker(rewriter, loc, type, op.getData().getType(), op.getIndices(),
                  op.getAt(), op.getIndexMaps());
    Value mark = arith::ConstantOp::create(rewriter, loc,
                                           getMark(type.getElementType()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    if (walker.hasNoPositions()) {
      rewriter.replaceOpWithNewOp<linalg::FillOp>(op, mark, empty);
      return success();
    }
    rewriter.replaceOp(op, walker.hasRows()
                               ? rows(walker, op, mark, empty)
                               : elements(walker, op, mark, empty));
    return success();
  }

  static Value rows(Walker &walker, nn::GatherOp op, Value mark, Value empty) {
    Location loc = op.getLoc();
    return walker.loop(
        walker.outerRank(), empty,
        [&](OpBuilder &b, ValueRange iteration, Value carried) -> Value {
          Walker::Position from =
              walker.find(b, iteration, walker.loadIndices(b, iteration),
                          /*rows=*/true);
          Walker::Slice source = walker.rowAt(from.at);
          Walker::Slice target = walker.rowAt(iteration);
          RankedTensorType rowType = walker.rowType();
          Value row = tensor::ExtractSliceOp::create(
              b, loc, rowType, op.getData(), source.offsets, source.sizes,
              source.strides);
          Value place = tensor::ExtractSliceOp::create(
              b, loc, rowType, carried, target.offsets, target.sizes,
              target.strides);
          row = emitRow(b, loc, row, place,
                        [&](OpBuilder &inside, ValueRange elements) {
                          return from.valid ? walker.select(inside, from.valid,
                                                            elements[0], mark)
                                            : elements[0];
                        });
          return tensor::InsertSliceOp::create(b, loc, row, carried,
                                               target.offsets, target.sizes,
                                               target.strides);
        });
  }

  static Value elements(Walker &walker, nn::GatherOp op, Value mark,
                        Value empty) {
    Location loc = op.getLoc();
    OpBuilder &builder = walker.builder;
    int64_t rank = walker.space.getRank();
    SmallVector<AffineMap> maps = walker.indexMaps;
    maps.push_back(builder.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               builder, loc, TypeRange(walker.space), op.getIndices(),
               ValueRange(empty), maps, iterators,
               [&](OpBuilder &b, Location, ValueRange scalars) {
                 SmallVector<Value> iteration;
                 for (int64_t d = 0; d < rank; ++d)
                   iteration.push_back(linalg::IndexOp::create(b, loc, d));
                 Walker::Position from = walker.find(
                     b, iteration, scalars.drop_back(), /*rows=*/false);
                 Value value =
                     tensor::ExtractOp::create(b, loc, op.getData(), from.at);
                 if (from.valid)
                   value = walker.select(b, from.valid, value, mark);
                 linalg::YieldOp::create(b, loc, value);
               })
        .getResult(0);
  }
};

//===--- Scatter ---===//

Value combine(OpBuilder &b, Location loc, nn::ScatterKind kind, Value old,
              Value update) {
  bool isFloat = isa<FloatType>(update.getType());
  switch (kind) {
  case nn::ScatterKind::None:
    return update;
  case nn::ScatterKind::Add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, old, update))
                   : Value(arith::AddIOp::create(b, loc, old, update));
  case nn::ScatterKind::Mul:
    return isFloat ? Value(arith::MulFOp::create(b, loc, old, update))
                   : Value(arith::MulIOp::create(b, loc, old, update));
  case nn::ScatterKind::Max:
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, old, update))
                   : Value(arith::MaxSIOp::create(b, loc, old, update));
  case nn::ScatterKind::Min:
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, old, update))
                   : Value(arith::MinSIOp::create(b, loc, old, update));
  }
  return update;
}

/// What the updates go into. An argument that must stay is copied to where the
/// result will be; bufferization would make room for it in between.
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
    Location loc = op.getLoc();
    Walker walker(rewriter, loc, op.getUpdates().getType(),
                  op.getInit().getType(), op.getIndices(), op.getAt(),
                  op.getIndexMaps());
    if (walker.hasNoPositions()) {
      rewriter.replaceOp(op, op.getInit());
      return success();
    }
    Value mark = arith::ConstantOp::create(
        rewriter, loc, getMark(walker.space.getElementType()));
    auto join = [&](OpBuilder &b, Value old, Value update, Value valid) {
      Value value = combine(b, loc, op.getKind(), old, update);
      return valid ? walker.select(b, valid, value, mark) : value;
    };
    bool rows = walker.hasRows();
    rewriter.replaceOp(
        op,
        walker.loop(
            rows ? walker.outerRank() : walker.space.getRank(),
            getStart(rewriter, op),
            [&](OpBuilder &b, ValueRange iteration, Value carried) -> Value {
              Walker::Position to = walker.find(
                  b, iteration, walker.loadIndices(b, iteration), rows);
              if (!rows) {
                Value update = tensor::ExtractOp::create(
                    b, loc, op.getUpdates(), iteration);
                Value old = tensor::ExtractOp::create(b, loc, carried, to.at);
                return tensor::InsertOp::create(
                    b, loc, join(b, old, update, to.valid), carried, to.at);
              }
              Walker::Slice source = walker.rowAt(iteration);
              Walker::Slice target = walker.rowAt(to.at);
              Value update = tensor::ExtractSliceOp::create(
                  b, loc, walker.rowType(), op.getUpdates(), source.offsets,
                  source.sizes, source.strides);
              Value place = tensor::ExtractSliceOp::create(
                  b, loc, walker.rowType(), carried, target.offsets,
                  target.sizes, target.strides);
              Value row = emitRow(b, loc, update, place,
                                  [&](OpBuilder &inside, ValueRange elements) {
                                    return join(inside, elements[1],
                                                elements[0], to.valid);
                                  });
              return tensor::InsertSliceOp::create(b, loc, row, carried,
                                                   target.offsets, target.sizes,
                                                   target.strides);
            }));
    return success();
  }
};

} // namespace

void penstock::populateExpandIndexing(RewritePatternSet &patterns) {
  patterns.add<ExpandGather, ExpandScatter>(patterns.getContext());
}
