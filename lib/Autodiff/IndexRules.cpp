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
#include "penstock/Support/Structured.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace penstock;

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

/// The values that the rules of one scatter are made of.
class ScatterPullback : Structured {
public:
  ScatterPullback(nn::ScatterOp op, Pullback &pullback)
      : Structured(pullback.getBuilder(), op.getLoc()), op(op),
        pullback(pullback), dy(pullback.getCotangent(op.getResult())) {
    for (Value index : op.getIndices())
      indices.push_back(pullback.getPrimal(index));
  }

  void replace();
  void add();
  void multiply();
  void extremum();

private:
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
  Value elementwise(ValueRange inputs, Body body) {
    return elementwise(inputs, element(), body);
  }
  Value elementwise(ValueRange inputs, Type element, Body body) {
    auto shape = cast<RankedTensorType>(inputs[0].getType()).getShape();
    return Structured::elementwise(RankedTensorType::get(shape, element),
                                   inputs, body);
  }
  Type element() { return op.getUpdates().getType().getElementType(); }
  Value updates() { return op.getUpdates(); }
  Value init() { return op.getInit(); }

  nn::ScatterOp op;
  Pullback &pullback;
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
    Value numbers =
        elementwise(filled(numberType, 0), i64, [&](Scalars &s, ValueRange) {
          Value linear;
          for (auto [d, size] : llvm::enumerate(type.getShape())) {
            Value index = s.make<linalg::IndexOp>(d);
            if (linear)
              index = s.add(
                  index, s.mul(linear, s.make<arith::ConstantIndexOp>(size)));
            linear = index;
          }
          if (!linear)
            linear = s.make<arith::ConstantIndexOp>(0);
          return s.make<arith::IndexCastOp>(i64, linear);
        });
    auto winnerType =
        RankedTensorType::get(op.getInit().getType().getShape(), i64);
    Value winners =
        scatter(nn::ScatterKind::None, numbers, filled(winnerType, -1));
    Value share = elementwise(
        {gather(dy), gather(winners), numbers}, [&](Scalars &s, ValueRange in) {
          Value stayed = s.equal(in[1], in[2]);
          return s.select(stayed, in[0], s.like(in[0], 0));
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
  RankedTensorType type = op.getInit().getType();
  Value factors = pullback.getPrimal(updates());
  if (pullback.isActive(updates())) {
    auto nonZero = [](Scalars &s, ValueRange in) {
      Value isZero = s.equal(in[0], s.like(in[0], 0));
      return s.select(isZero, s.like(in[0], 1), in[0]);
    };
    auto isZero = [](Scalars &s, ValueRange in) {
      Value zero = s.like(in[0], 0);
      return s.select(s.equal(in[0], zero), s.like(in[0], 1), zero);
    };
    Value product = scatter(nn::ScatterKind::Mul, elementwise(factors, nonZero),
                            pullback.getPrimal(init()));
    Value zeros = scatter(nn::ScatterKind::Add, elementwise(factors, isZero),
                          createZeros(builder, loc, type));
    Value share =
        elementwise({gather(dy), gather(product), gather(zeros), factors},
                    [](Scalars &s, ValueRange in) {
                      Value zero = s.like(in[0], 0), unit = s.like(in[0], 1);
                      Value own = s.equal(in[3], zero);
                      Value others = s.sub(in[2], s.select(own, unit, zero));
                      Value rest = s.div(in[1], s.select(own, unit, in[3]));
                      Value value = s.mul(in[0], rest);
                      return s.select(s.equal(others, zero), value, zero);
                    });
    pullback.add(updates(), share, loc);
  }
  if (pullback.isActive(init())) {
    Value product = scatter(nn::ScatterKind::Mul, factors, filled(type, 1));
    Value share = elementwise({dy, product}, [](Scalars &s, ValueRange in) {
      return s.mul(in[0], in[1]);
    });
    pullback.add(init(), share, loc);
  }
}

/// Those equal to the result share the cotangent evenly.
void ScatterPullback::extremum() {
  Value result = pullback.getPrimal(op.getResult());
  Value start = pullback.getPrimal(init());
  Value values = pullback.getPrimal(updates());
  auto isEqual = [](Scalars &s, ValueRange in) {
    Value equal = s.equal(in[0], in[1]);
    return s.select(equal, s.like(in[0], 1), s.like(in[0], 0));
  };
  Value reached = elementwise({values, gather(result)}, isEqual);
  Value count = scatter(nn::ScatterKind::Add, reached,
                        elementwise({start, result}, isEqual));
  auto part = [](Scalars &s, ValueRange in) {
    Value share = s.div(in[0], in[1]), zero = s.like(in[0], 0);
    return s.select(s.equal(in[2], in[3]), share, zero);
  };
  if (pullback.isActive(updates()))
    pullback.add(
        updates(),
        elementwise({gather(dy), gather(count), values, gather(result)}, part),
        loc);
  if (pullback.isActive(init()))
    pullback.add(init(), elementwise({dy, count, start, result}, part), loc);
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
  Structured emit(pullback.getBuilder(), op.getLoc());
  RankedTensorType type = op.getInput().getType();
  AffineMap identity = emit.identity(type.getRank());
  AffineMap reduced = identity;
  for (int64_t dim : llvm::reverse(op.getDims()))
    reduced = reduced.dropResult(dim);
  Value dx = emit.generic(
      {pullback.getPrimal(op.getInput()), pullback.getPrimal(op.getResult()),
       pullback.getCotangent(op.getResult())},
      emit.empty(type), {identity, reduced, reduced, identity},
      Structured::parallel(type.getRank()), [&](Scalars &s, ValueRange in) {
        Value lowest = s.like(in[0], -std::numeric_limits<double>::infinity());
        Value zero = s.like(in[0], 0);
        Value share = s.make<math::ExpOp>(s.sub(in[0], in[1]));
        Value scaled = s.mul(share, in[2]);
        return s.select(s.equal(in[0], lowest), zero, scaled);
      });
  pullback.add(op.getInput(), dx, emit.loc);
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
