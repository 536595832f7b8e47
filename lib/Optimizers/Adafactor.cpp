//===- Adafactor.cpp - Steps by factored means of squares -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory
// cost" (2018), algorithms 4 and 5, as PyTorch defines it: the mean of squares
// of a matrix is the product of the means of its rows and columns, steps are
// relative to the size of the weights, and their root mean square is bounded.
//===----------------------------------------------------------------------===//

#include "OptimizerTable.h"
#include "penstock/Support/Structured.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

namespace {

/// Emits loops over the elements of a tensor of a type.
struct Loops {
  OpBuilder &builder;
  Location loc;
  RankedTensorType type;

  int64_t rank() const { return type.getRank(); }
  AffineMap identity() const { return builder.getMultiDimIdentityMap(rank()); }
  /// From an element to the place that it shares with those that differ in
  /// these dimensions alone.
  AffineMap without(ArrayRef<int64_t> dropped) const {
    SmallVector<AffineExpr> kept;
    for (int64_t dim : llvm::seq<int64_t>(0, rank()))
      if (!llvm::is_contained(dropped, dim))
        kept.push_back(builder.getAffineDimExpr(dim));
    return AffineMap::get(rank(), 0, kept, builder.getContext());
  }
  RankedTensorType typeWithout(ArrayRef<int64_t> dropped) const {
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
        shape.push_back(size);
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// Adds up `emit` of the inputs over `dropped`, in `element`.
  template <typename Emit>
  Value sum(ValueRange inputs, ArrayRef<AffineMap> inputMaps,
            ArrayRef<int64_t> dropped, Type element, Emit emit) const {
    RankedTensorType result = typeWithout(dropped).clone(element);
    Structured s(builder, loc);
    Value zero = s.constant(element, 0);
    SmallVector<AffineMap> maps(inputMaps);
    maps.push_back(without(dropped));
    Structured::Iterators kinds = Structured::parallel(rank());
    for (int64_t dim : dropped)
      kinds[dim] = utils::IteratorType::reduction;
    return s.generic(
        inputs, s.filled(result, zero), maps, kinds,
        [&](Scalars &s, ValueRange elements) {
          Value term =
              emit(Arithmetic{s, type.getElementType()}, elements.drop_back());
          return s.add(elements.back(), Arithmetic{s, element}.from(term));
        });
  }

  /// Writes `emit` of the inputs and of each element of `target` to it.
  template <typename Emit>
  Value map(ValueRange inputs, Value target, Emit emit) const {
    SmallVector<AffineMap> maps(inputs.size() + 1, identity());
    return Structured(builder, loc)
        .generic(inputs, target, maps, Structured::parallel(rank()),
                 [&](Scalars &s, ValueRange elements) {
                   return emit(Arithmetic{s, type.getElementType()}, elements);
                 });
  }

  /// The sum of all elements, in double precision: of rows first, which are
  /// what a loop is good at.
  template <typename Emit>
  Value sumAll(ValueRange inputs, ArrayRef<AffineMap> maps, Emit emit) const {
    Type f64 = builder.getF64Type();
    if (rank() < 2)
      return sum(inputs, maps, llvm::to_vector(llvm::seq<int64_t>(0, rank())),
                 f64, emit);
    Value rows = sum(inputs, maps, {rank() - 1}, f64, emit);
    Loops outer{builder, loc, cast<RankedTensorType>(rows.getType())};
    return outer.sum(
        rows, outer.identity(),
        llvm::to_vector(llvm::seq<int64_t>(0, outer.rank())), f64,
        [](Arithmetic, ValueRange elements) { return elements.front(); });
  }
};

/// Rates: [min(lr, 1 / sqrt(step)), step^beta2-decay], and with weight decay
/// [1 - lr * weight-decay]. States of a matrix, or a stack of them: the means
/// of squares of rows and of columns; else the mean of squares.
class Adafactor : public Optimizer {
public:
  explicit Adafactor(const OptimizerSpec &spec)
      : Optimizer(spec), beta2Decay(spec.get("beta2-decay")),
        clipping(spec.get("d")), leastScale(spec.get("eps2")),
        weightDecay(spec.get("weight-decay")) {}

  bool isElementwise() const override { return false; }
  SmallVector<StringRef> getStates() const override { return {}; }
  SmallVector<OptimizerState> listStates(RankedTensorType type) const override {
    int64_t rank = type.getRank();
    if (rank < 2)
      return {{"variance", type}};
    SmallVector<int64_t> rows(type.getShape().drop_back());
    SmallVector<int64_t> columns(type.getShape());
    columns.erase(columns.begin() + rank - 2);
    Type element = type.getElementType();
    return {{"row_var", RankedTensorType::get(rows, element)},
            {"col_var", RankedTensorType::get(columns, element)}};
  }
  bool hasRates() const override { return true; }

  SmallVector<Value> emitRates(Arithmetic f, Value rate,
                               Value step) const override {
    Value one = f.constant(1);
    SmallVector<Value> rates = {f.min(rate, f.div(one, f.sqrt(step))),
                                f.pow(step, f.constant(beta2Decay))};
    if (weightDecay != 0)
      rates.push_back(f.sub(one, f.mul(rate, f.constant(weightDecay))));
    return rates;
  }

  Value emitDecay(Arithmetic f, Value weight, ValueRange rates) const override {
    return weightDecay == 0 ? weight : f.mul(weight, rates[2]);
  }

  UpdateTensors emitTensors(OpBuilder &builder, Location loc, Value weight,
                            Value gradient, ValueRange state,
                            ValueRange rates) const override;

  SmallVector<Value> emitState(Arithmetic, Value, Value &, ValueRange state,
                               ValueRange) const override {
    return llvm::to_vector(state);
  }

  /// Takes elements of the tensors that emitTensors gives.
  Value emitStep(Arithmetic f, Value gradient, ValueRange state,
                 ValueRange rates) const override {
    return f.mul(state.back(), emitQuotient(f, gradient, state.drop_back()));
  }

  bool hasDirection() const override { return false; }

private:
  /// g / sqrt(v), where v is given, or its row, column and their mean.
  Value emitQuotient(Arithmetic f, Value gradient, ValueRange factors) const {
    Value variance = factors[0];
    if (factors.size() > 1)
      variance = f.div(f.mul(variance, factors[1]), factors[2]);
    double least = getLeastMean(f.type);
    return f.div(gradient, f.sqrt(f.max(variance, f.constant(least * least))));
  }

  /// eps1: where it is not given, the spacing of numbers at 1.
  double getLeastMean(Type type) const {
    if (spec.isGiven("eps1"))
      return spec.get("eps1");
    return std::ldexp(
        1.0, 1 - static_cast<int>(cast<FloatType>(type).getFPMantissaWidth()));
  }

  double beta2Decay, clipping, leastScale, weightDecay;
};

} // namespace

UpdateTensors Adafactor::emitTensors(OpBuilder &builder, Location loc,
                                     Value weight, Value gradient,
                                     ValueRange state, ValueRange rates) const {
  auto type = cast<RankedTensorType>(weight.getType());
  Type element = type.getElementType();
  Loops loops{builder, loc, type};
  int64_t rank = type.getRank();
  auto square = [](Arithmetic f, ValueRange elements) {
    return f.mul(elements[0], elements[0]);
  };
  // mean + part * (new - mean)
  auto moveTo = [&](Arithmetic f, Value mean, Value value) {
    return f.add(mean, f.mul(rates[1], f.sub(value, mean)));
  };

  // 1. The new state, and what each element takes of it.
  UpdateTensors result;
  if (rank < 2) {
    result.states = {
        loops.map(gradient, state[0], [&](Arithmetic f, ValueRange elements) {
          return moveTo(f, elements[1], square(f, elements[0]));
        })};
    result.inputs = result.states;
    result.maps = {loops.identity()};
  } else {
    auto addMean = [&](Value old, int64_t dim) {
      double size = static_cast<double>(type.getDimSize(dim));
      Value sum = loops.sum(gradient, loops.identity(), {dim}, element, square);
      Loops few{builder, loc, cast<RankedTensorType>(old.getType())};
      result.states.push_back(
          few.map(sum, old, [&](Arithmetic f, ValueRange elements) {
            return moveTo(f, elements[1], f.div(elements[0], f.constant(size)));
          }));
      result.maps.push_back(loops.without({dim}));
    };
    addMean(state[0], rank - 1);
    addMean(state[1], rank - 2);
    result.inputs = result.states;

    // The mean of the rows, which both factors have in them.
    Value rows = result.states[0];
    Loops ofRows{builder, loc, cast<RankedTensorType>(rows.getType())};
    Value sum = ofRows.sum(
        rows, ofRows.identity(), {rank - 2}, element,
        [](Arithmetic, ValueRange elements) { return elements.front(); });
    Loops ofMeans{builder, loc, cast<RankedTensorType>(sum.getType())};
    Value empty =
        tensor::EmptyOp::create(builder, loc, sum.getType(), ValueRange());
    result.inputs.push_back(
        ofMeans.map(sum, empty, [&](Arithmetic f, ValueRange elements) {
          Value mean =
              f.div(elements[0],
                    f.constant(static_cast<double>(type.getDimSize(rank - 2))));
          return f.max(mean, f.constant(getLeastMean(element)));
        }));
    result.maps.push_back(loops.without({rank - 2, rank - 1}));
  }

  // 2. The length of the step: relative to the root mean square of the
  //    weights, and less where that of the direction is above d.
  SmallVector<Value> inputs = {gradient};
  SmallVector<AffineMap> maps = {loops.identity()};
  llvm::append_range(inputs, result.inputs);
  llvm::append_range(maps, result.maps);
  Value directions =
      loops.sumAll(inputs, maps, [&](Arithmetic f, ValueRange elements) {
        Value direction = emitQuotient(f, elements[0], elements.drop_front());
        return f.mul(direction, direction);
      });
  Value weights = loops.sumAll(weight, loops.identity(), square);
  Value length =
      Structured(builder, loc)
          .elementwise(
              RankedTensorType::get({}, element), {directions, weights},
              [&](Scalars &s, ValueRange elements) {
                Arithmetic f{s, s.builder.getF64Type()};
                double root =
                    std::sqrt(static_cast<double>(type.getNumElements()));
                auto emitMean = [&](Value sum, double scale) {
                  return f.div(f.sqrt(sum), f.constant(root * scale));
                };
                Value size =
                    f.max(f.constant(leastScale), emitMean(elements[1], 1));
                Value bound =
                    f.max(f.constant(1), emitMean(elements[0], clipping));
                Value step = f.div(f.mul(size, f.from(rates[0])), bound);
                return Arithmetic{s, element}.from(step);
              });
  result.inputs.push_back(length);
  result.maps.push_back(
      loops.without(llvm::to_vector(llvm::seq<int64_t>(0, rank))));
  return result;
}

static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec) {
  return std::make_unique<Adafactor>(spec);
}

static constexpr SpecKey kKeys[] = {
    {.name = "lr", .fallback = 1e-2},
    {.name = "beta2-decay",
     .fallback = -0.8,
     .least = -SpecKey::kNoLimit,
     .below = std::numeric_limits<double>::min(),
     .wants = "a number of at most 0",
     .example = "-0.8"},
    {.name = "eps1"},
    {.name = "eps2", .fallback = 1e-3},
    {.name = "d",
     .fallback = 1,
     .least = 1,
     .wants = "a number of at least 1",
     .example = "1"},
    {.name = "weight-decay"},
    kAverage};

const OptimizerKind penstock::kAdafactor = {{"adafactor", kKeys}, create};
