//===- ExpandConvolutions.cpp - Convolutions that no library takes --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain loops for other element types, for shapes that the library has no fast
// implementation of, and as what tests compare the library with.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Convolution.h"
#include "passes/Kernels/Composites.h"
#include "passes/Kernels/WindowLoops.h"

using namespace mlir;
using namespace penstock;

namespace {

using Dims = SmallVector<int64_t>;

Dims range(int64_t from, int64_t count) {
  return llvm::to_vector(llvm::seq<int64_t>(from, from + count));
}

Dims joined(Dims a, const Dims &b) {
  a.append(b);
  return a;
}

class Expander {
public:
  Expander(OpBuilder &builder, Operation *op, const nn::Convolution &conv)
      : builder(builder), loc(op->getLoc()), conv(conv),
        rank(conv.getSpatialRank()), x(conv.getType(conv.input).getShape()),
        w(conv.getType(conv.weights).getShape()),
        y(conv.getType(conv.output).getShape()),
        element(conv.getType(conv.input).getElementType()) {}

  Value forward();
  Value inputGrad();
  Value weightGrad();

private:
  /// The input at element k of window o of the channel; dimensions of o and k
  /// begin at these loops.
  Value readInput(Position &at, Value sample, Value channel, unsigned o,
                  unsigned k) {
    SmallVector<Value> indices{sample, channel};
    Value condition;
    for (unsigned i = 0; i < rank; ++i) {
      indices.push_back(at.element(at.loop(o + i), at.loop(k + i),
                                   conv.strides[i], conv.dilations[i],
                                   conv.getPadBefore(i)));
      condition = at.both(condition, at.inside(indices.back(), x[i + 2]));
    }
    return at.read(conv.input, indices, condition);
  }
  Value zeros(Value like) {
    return Structured(builder, loc)
        .filled(cast<RankedTensorType>(like.getType()), 0.0);
  }

  OpBuilder &builder;
  Location loc;
  const nn::Convolution &conv;
  unsigned rank;
  ArrayRef<int64_t> x, w, y;
  Type element;
};

} // namespace

/// Loops (n, m, o..., c, k...).
Value Expander::forward() {
  unsigned o = 2, c = o + rank, k = c + 1;
  int64_t perGroup = w[0] / conv.groups;
  return createWindowLoops(
             builder, loc, k + rank,
             {{conv.weights, joined({1, c}, range(k, rank))}},
             zeros(conv.output),
             [&](Position &at, ValueRange scalars) -> SmallVector<Value> {
               Value group = at.quotient(at.loop(1), perGroup);
               Value channel = at.add(at.times(group, w[1]), at.loop(c));
               Value input = readInput(at, at.loop(0), channel, o, k);
               return {at.add(scalars[1], at.mul(input, scalars[0]))};
             })
      .front();
}

/// Loops (n, c, i..., m of the group, k...).
Value Expander::inputGrad() {
  unsigned i = 2, m = i + rank, k = m + 1;
  int64_t perGroup = w[0] / conv.groups;
  SmallVector<int64_t> extent{perGroup};
  llvm::append_range(extent, w.drop_front(2));
  Value lengths =
      Structured(builder, loc).empty(RankedTensorType::get(extent, element));
  return createWindowLoops(
             builder, loc, k + rank, {{lengths, joined({m}, range(k, rank))}},
             zeros(conv.input),
             [&](Position &at, ValueRange scalars) -> SmallVector<Value> {
               Value group = at.quotient(at.loop(1), w[1]);
               Value output = at.add(at.times(group, perGroup), at.loop(m));
               SmallVector<Value> window{at.loop(0), output};
               SmallVector<Value> weight{output,
                                         at.remainder(at.loop(1), w[1])};
               Value condition;
               for (unsigned d = 0; d < rank; ++d) {
                 window.push_back(
                     at.emitWindow(at.loop(i + d), at.loop(k + d),
                                   conv.strides[d], conv.dilations[d],
                                   conv.getPadBefore(d), y[d + 2], condition));
                 weight.push_back(at.loop(k + d));
               }
               Value dy = at.read(conv.output, window, condition);
               return {
                   at.add(scalars[1],
                          at.mul(dy, at.read(conv.weights, weight, Value())))};
             })
      .front();
}

/// Loops (m, c, k..., n, o...).
Value Expander::weightGrad() {
  unsigned k = 2, n = k + rank, o = n + 1;
  int64_t perGroup = w[0] / conv.groups;
  return createWindowLoops(
             builder, loc, o + rank,
             {{conv.output, joined({n, 0}, range(o, rank))}}, conv.weights,
             [&](Position &at, ValueRange scalars) -> SmallVector<Value> {
               Value group = at.quotient(at.loop(0), perGroup);
               Value channel = at.add(at.times(group, w[1]), at.loop(1));
               Value input = readInput(at, at.loop(n), channel, o, k);
               return {at.add(scalars[1], at.mul(input, scalars[0]))};
             })
      .front();
}

void penstock::expandConvolution(Operation *op) {
  nn::Convolution conv = *nn::Convolution::match(op);
  OpBuilder builder(op);
  Expander expander(builder, op, conv);
  Value result = conv.kind == nn::Convolution::Forward ? expander.forward()
                 : conv.kind == nn::Convolution::InputGrad
                     ? expander.inputGrad()
                     : expander.weightGrad();
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
}
