//===- IndexRules.cpp - Derivatives of ops that go by positions -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gather is pulled back by a scatter that adds, and a scatter by gathers.
// Which of several updates of one position counted is found by scattering once
// more: their numbers, or how many were equal.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "lib/Autodiff/Rules.h"
#include "penstock/Support/NodeName.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;
using arith::CmpFPredicate;

//===--- Gather ---===//

static LogicalResult pullBackGather(nn::GatherOp op, Pullback &pullback) {
  Value data = op.getData();
  Value dy = pullback.getCotangent(op.getResult());
  OpBuilder &builder = pullback.getBuilder();
  Value accumulator = pullback.getAccumulator(data);
  Value start = accumulator
                    ? accumulator
                    : createZeros(builder, op.getLoc(), op.getData().getType());
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(pullback.getPrimal(index));
  Value gradient = nn::ScatterOp::create(
      builder, op.getLoc(), start.getType(), dy, start, indices,
      nn::ScatterKind::Add, op.getAt(), op.getIndexMaps());
  if (accumulator)
    pullback.setAccumulator(data, gradient);
  else
    pullback.add(data, gradient, op.getLoc());
  return success();
}

//===--- Scatter ---===//

namespace {

/// What the rules of one scatter are made of.
class ScatterPullback {
public:
  ScatterPullback(nn::ScatterOp op, Pullback &pullback)
      : op(op), pullback(pullback), builder(pullback.getBuilder()),
        loc(op.getLoc()), dy(pullback.getCotangent(op.getResult())) {
    for (Value index : op.getIndices())
      indices.push_back(pullback.getPrimal(index));
  }

  void replace();
  void add();
  void multiply();
  void extremum();

private:
  using Body = function_ref<Value(OpBuilder &, ValueRange)>;

  /// The elements of `data` at the positions of the updates.
  Value gather(Value data) {
    auto type = RankedTensorType::get(op.getUpdates().getType().getShape(),
                                      getElementTypeOrSelf(data.getType()));
    return nn::GatherOp::create(builder, loc, type, data, indices, op.getAt(),
                                op.getIndexMaps());
  }
  Value scatter(nn::ScatterKind kind, Value updates, Value start) {
    return nn::ScatterOp::create(builder, loc, start.getType(), updates, start,
                                 indices, kind, op.getAt(), op.getIndexMaps());
  }
  Value filled(RankedTensorType type, TypedAttr value) {
    Value scalar = arith::ConstantOp::create(builder, loc, value);
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
  }
  Value elementwise(ValueRange inputs, Type element, Body body) {
    auto shape = cast<RankedTensorType>(inputs[0].getType()).getShape();
    auto type = RankedTensorType::get(shape, element);
    Value empty = tensor::EmptyOp::create(builder, loc, shape, element);
    auto rank = static_cast<int64_t>(shape.size());
    SmallVector<AffineMap> maps(inputs.size() + 1,
                                builder.getMultiDimIdentityMap(rank));
    return linalg::GenericOp::create(
               builder, loc, TypeRange(type), inputs, ValueRange(empty), maps,
               SmallVector<utils::IteratorType>(rank,
                                                utils::IteratorType::parallel),
               [&](OpBuilder &inside, Location, ValueRange scalars) {
                 linalg::YieldOp::create(inside, loc,
                                         body(inside, scalars.drop_back()));
               })
        .getResult(0);
  }
  Value number(OpBuilder &b, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(element(), value));
  }
  Value compare(OpBuilder &b, CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value select(OpBuilder &b, Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Type element() { return op.getUpdates().getType().getElementType(); }
  Value updates() { return op.getUpdates(); }
  Value init() { return op.getInit(); }

  nn::ScatterOp op;
  Pullback &pullback;
  OpBuilder &builder;
  Location loc;
  Value dy;
  SmallVector<Value> indices;
};

} // namespace

/// The last update of a position is the one that stayed: the numbers of the
/// updates, scattered in the same way, tell which.
void ScatterPullback::replace() {
  if (pullback.isActive(updates())) {
    RankedTensorType type = op.getUpdates().getType();
    Type i64 = builder.getI64Type();
    auto numberType = RankedTensorType::get(type.getShape(), i64);
    Value empty = filled(numberType, builder.getI64IntegerAttr(0));
    Value numbers = elementwise(empty, i64, [&](OpBuilder &b, ValueRange) {
      Value linear;
      for (auto [d, size] : llvm::enumerate(type.getShape())) {
        Value index = linalg::IndexOp::create(b, loc, d);
        if (linear)
          index = arith::AddIOp::create(
              b, loc, index,
              arith::MulIOp::create(
                  b, loc, linear,
                  arith::ConstantIndexOp::create(b, loc, size)));
        linear = index;
      }
      if (!linear)
        linear = arith::ConstantIndexOp::create(b, loc, 0);
      return arith::IndexCastOp::create(b, loc, i64, linear).getResult();
    });
    Value winners = scatter(
        nn::ScatterKind::None, numbers,
        filled(RankedTensorType::get(op.getInit().getType().getShape(), i64),
               builder.getI64IntegerAttr(-1)));
    Value share =
        elementwise({gather(dy), gather(winners), numbers}, element(),
                    [&](OpBuilder &b, ValueRange in) {
                      Value stayed = arith::CmpIOp::create(
                          b, loc, arith::CmpIPredicate::eq, in[1], in[2]);
                      return select(b, stayed, in[0], number(b, 0));
                    });
    pullback.add(updates(), share, loc);
  }
  if (pullback.isActive(init())) {
    Value zeros = createZeros(builder, loc, op.getUpdates().getType());
    pullback.add(init(), scatter(nn::ScatterKind::None, zeros, dy), loc);
  }
}

void ScatterPullback::add() {
  if (pullback.isActive(updates()))
    pullback.add(updates(), gather(dy), loc);
  if (pullback.isActive(init()))
    pullback.add(init(), dy, loc);
}

/// A factor's share is the product of all others. Zeros are left out of the
/// product and counted: beside one, only its own share is not zero.
void ScatterPullback::multiply() {
  auto one = builder.getFloatAttr(element(), 1);
  RankedTensorType type = op.getInit().getType();
  Value factors = pullback.getPrimal(updates());
  if (pullback.isActive(updates())) {
    auto nonZero = [&](OpBuilder &b, ValueRange in) {
      Value isZero = compare(b, CmpFPredicate::OEQ, in[0], number(b, 0));
      return select(b, isZero, number(b, 1), in[0]);
    };
    auto isZero = [&](OpBuilder &b, ValueRange in) {
      Value zero = compare(b, CmpFPredicate::OEQ, in[0], number(b, 0));
      return select(b, zero, number(b, 1), number(b, 0));
    };
    Value product =
        scatter(nn::ScatterKind::Mul, elementwise(factors, element(), nonZero),
                pullback.getPrimal(init()));
    Value zeros =
        scatter(nn::ScatterKind::Add, elementwise(factors, element(), isZero),
                createZeros(builder, loc, type));
    Value share = elementwise(
        {gather(dy), gather(product), gather(zeros), factors}, element(),
        [&](OpBuilder &b, ValueRange in) {
          Value zero = number(b, 0), unit = number(b, 1);
          Value own = compare(b, CmpFPredicate::OEQ, in[3], zero);
          Value others =
              arith::SubFOp::create(b, loc, in[2], select(b, own, unit, zero));
          Value rest =
              arith::DivFOp::create(b, loc, in[1], select(b, own, unit, in[3]));
          Value value = arith::MulFOp::create(b, loc, in[0], rest);
          return select(b, compare(b, CmpFPredicate::OEQ, others, zero), value,
                        zero);
        });
    pullback.add(updates(), share, loc);
  }
  if (pullback.isActive(init())) {
    Value product = scatter(nn::ScatterKind::Mul, factors, filled(type, one));
    Value share =
        elementwise({dy, product}, element(), [&](OpBuilder &b, ValueRange in) {
          return arith::MulFOp::create(b, loc, in[0], in[1]).getResult();
        });
    pullback.add(init(), share, loc);
  }
}

/// Those equal to the result share the cotangent evenly.
void ScatterPullback::extremum() {
  Value result = pullback.getPrimal(op.getResult());
  Value start = pullback.getPrimal(init());
  Value values = pullback.getPrimal(updates());
  auto isEqual = [&](OpBuilder &b, ValueRange in) {
    Value equal = compare(b, CmpFPredicate::OEQ, in[0], in[1]);
    return select(b, equal, number(b, 1), number(b, 0));
  };
  Value reached = elementwise({values, gather(result)}, element(), isEqual);
  Value count = scatter(nn::ScatterKind::Add, reached,
                        elementwise({start, result}, element(), isEqual));
  auto part = [&](OpBuilder &b, ValueRange in) {
    Value share = arith::DivFOp::create(b, loc, in[0], in[1]);
    Value zero = number(b, 0);
    return select(b, compare(b, CmpFPredicate::OEQ, in[2], in[3]), share, zero);
  };
  if (pullback.isActive(updates()))
    pullback.add(
        updates(),
        elementwise({gather(dy), gather(count), values, gather(result)},
                    element(), part),
        loc);
  if (pullback.isActive(init()))
    pullback.add(init(),
                 elementwise({dy, count, start, result}, element(), part), loc);
}

static LogicalResult pullBackScatter(nn::ScatterOp op, Pullback &pullback) {
  ScatterPullback rule(op, pullback);
  switch (op.getKind()) {
  case nn::ScatterKind::None:
    rule.replace();
    return success();
  case nn::ScatterKind::Add:
    rule.add();
    return success();
  case nn::ScatterKind::Mul:
    rule.multiply();
    return success();
  case nn::ScatterKind::Max:
  case nn::ScatterKind::Min:
    if (pullback.mixesDataAndParameters(op))
      return op.emitError()
             << "node '" << getNodeName(op.getLoc())
             << "': a scatter by max or min has no derivative where some of "
                "what it compares are activations and some parameters; freeze "
                "these (--freeze)";
    rule.extremum();
    return success();
  }
  return failure();
}

//===--- Along an axis ---===//

static LogicalResult pullBackCumulativeSum(nn::CumulativeSumOp op,
                                           Pullback &pullback) {
  pullback.add(
      op.getInput(),
      nn::CumulativeSumOp::create(pullback.getBuilder(), op.getLoc(),
                                  pullback.getCotangent(op.getResult()),
                                  static_cast<int64_t>(op.getDim()),
                                  op.getExclusive(), !op.getReverse()),
      op.getLoc());
  return success();
}

/// dx = exp(x - y) * dy; 0 where x is -inf, which may be y as well.
static LogicalResult pullBackLogSumExp(nn::LogSumExpOp op, Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  Location loc = op.getLoc();
  RankedTensorType type = op.getInput().getType();
  auto element = cast<FloatType>(type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap reduced = identity;
  for (int64_t dim : llvm::reverse(op.getDims()))
    reduced = reduced.dropResult(dim);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  Value dx =
      linalg::GenericOp::create(
          builder, loc, TypeRange(type),
          ValueRange{pullback.getPrimal(op.getInput()),
                     pullback.getPrimal(op.getResult()),
                     pullback.getCotangent(op.getResult())},
          ValueRange(empty),
          ArrayRef<AffineMap>{identity, reduced, reduced, identity},
          SmallVector<utils::IteratorType>(type.getRank(),
                                           utils::IteratorType::parallel),
          [&](OpBuilder &b, Location loc, ValueRange in) {
            Value lowest = arith::ConstantOp::create(
                b, loc,
                FloatAttr::get(
                    element,
                    APFloat::getInf(element.getFloatSemantics(), true)));
            Value zero =
                arith::ConstantOp::create(b, loc, b.getFloatAttr(element, 0));
            Value share = math::ExpOp::create(
                b, loc, arith::SubFOp::create(b, loc, in[0], in[1]));
            Value scaled = arith::MulFOp::create(b, loc, share, in[2]);
            Value isLowest = arith::CmpFOp::create(b, loc, CmpFPredicate::OEQ,
                                                   in[0], lowest);
            Value result =
                arith::SelectOp::create(b, loc, isLowest, zero, scaled);
            linalg::YieldOp::create(b, loc, result);
          })
          .getResult(0);
  pullback.add(op.getInput(), dx, loc);
  return success();
}

void penstock::registerIndexRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    nn::GatherOp::attachInterface<RuleModel<nn::GatherOp, pullBackGather>>(
        *context);
    nn::ScatterOp::attachInterface<RuleModel<nn::ScatterOp, pullBackScatter>>(
        *context);
    nn::CumulativeSumOp::attachInterface<
        RuleModel<nn::CumulativeSumOp, pullBackCumulativeSum>>(*context);
    nn::LogSumExpOp::attachInterface<
        RuleModel<nn::LogSumExpOp, pullBackLogSumExp>>(*context);
  });
}
