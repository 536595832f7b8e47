//===- RotaryEmbedding.cpp - RotaryEmbedding ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of elements turned by angles whose cosines and sines are operands. A
// pair is an element of each half of a head, or two neighbors.
//===----------------------------------------------------------------------===//

#include "Indexing.h"
#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct Rotary {
  enum Operand { X, Cosines, Sines, Positions };
  /// [batch, sequence, heads * size] instead of [batch, heads, sequence, size].
  bool isFlat;
  bool isInterleaved = false;
  /// `turned` elements of each head are turned, the rest stay.
  int64_t batch, heads = 0, sequence, size, turned = 0;

  LogicalResult bind(NodeBinder &node);
  SmallVector<int64_t> shape() const {
    return isFlat ? SmallVector<int64_t>{batch, sequence, heads, size}
                  : SmallVector<int64_t>{batch, heads, sequence, size};
  }
};
} // namespace

LogicalResult Rotary::bind(NodeBinder &node) {
  if (failed(
          node.operands({"X", "cos_cache", "sin_cache", "position_ids"}, 3)) ||
      failed(node.requireFloat(X)) ||
      failed(node.requireSameElementType(X, Cosines)) ||
      failed(node.requireSameElementType(X, Sines)) ||
      failed(node.attribute("interleaved", isInterleaved)) ||
      failed(node.attribute("num_heads", heads)) ||
      failed(node.attribute("rotary_embedding_dim", turned)))
    return failure();
  isFlat = node.rank(X) == 3;
  ArrayRef<int64_t> x = node.shape(X);
  if (node.rank(X) != 3 && node.rank(X) != 4)
    return node.error() << "operand 'X' is " << node.type(X)
                        << ", it must have 3 or 4 axes";
  if (isFlat && (heads < 1 || x[2] % heads != 0))
    return node.badAttribute("num_heads", "a divisor of the last axis of 'X'");
  batch = x[0];
  sequence = x[isFlat ? 1 : 2];
  heads = isFlat ? heads : x[1];
  size = isFlat ? x[2] / heads : x[3];
  if (turned == 0)
    turned = size;
  if (turned < 0 || turned > size || turned % 2 != 0)
    return node.badAttribute("rotary_embedding_dim",
                             "even, and at most the size of a head, " +
                                 Twine(size));
  bool fits = node.shape(Cosines) == node.shape(Sines);
  if (node.has(Positions))
    fits = fits && succeeded(node.requireInteger(Positions)) &&
           node.rank(Cosines) == 2 && node.shape(Cosines)[1] == turned / 2 &&
           node.shape(Positions) == ArrayRef<int64_t>({batch, sequence});
  else
    fits = fits && node.shape(Cosines) ==
                       ArrayRef<int64_t>({batch, sequence, turned / 2});
  if (!fits)
    return node.error() << "operands 'cos_cache' and 'sin_cache' are "
                        << node.type(Cosines) << " and " << node.type(Sines)
                        << ", which are no angles for " << turned / 2
                        << " pairs of elements at " << sequence << " positions";
  return success();
}

/// The cosines or sines of each position, along the axes of x.
static Value emitAngles(NodeBinder &node, Emitter &emitter,
                        const Rotary &rotary, unsigned i) {
  Value angles = node.operand(i);
  if (node.has(Rotary::Positions)) {
    MLIRContext *context = node.getContext();
    AffineExpr at[] = {getAffineSymbolExpr(0, context),
                       getAffineDimExpr(2, context)};
    angles = nn::GatherOp::create(
        emitter.builder, emitter.loc,
        node.makeType({rotary.batch, rotary.sequence, rotary.turned / 2},
                      Rotary::X),
        angles, node.operand(Rotary::Positions),
        AffineMap::get(3, 1, at, context),
        emitter.builder.getArrayAttr(
            AffineMapAttr::get(emitter.map(3, {0, 1}))));
  }
  SmallVector<int64_t> shape = {rotary.batch, rotary.sequence,
                                rotary.turned / 2};
  shape.insert(shape.begin() + (rotary.isFlat ? 2 : 1), 1);
  return emitter.reshape(angles, shape);
}

static Values lowerRotary(Rotary &rotary, NodeBinder &node, Emitter &emitter) {
  if (node.type(Rotary::X).getNumElements() == 0)
    return node.operand(Rotary::X);
  Value x = emitter.reshape(node.operand(Rotary::X), rotary.shape());
  Value cosine = emitAngles(node, emitter, rotary, Rotary::Cosines);
  Value sine = emitAngles(node, emitter, rotary, Rotary::Sines);

  // 1. The pairs are an axis of their own: before that of the elements of a
  //    half, or behind that of neighbors.
  SmallVector<int64_t> offsets(4, 0), sizes = rotary.shape();
  sizes.back() = rotary.turned;
  Value pairs = x;
  if (rotary.turned != rotary.size)
    pairs = emitter.slice(x, offsets, sizes);
  sizes.back() = rotary.turned / 2;
  unsigned pairAxis = rotary.isInterleaved ? 4 : 3;
  SmallVector<int64_t> paired(sizes);
  paired.insert(paired.begin() + pairAxis, 2);
  pairs = emitter.reshape(pairs, paired);
  auto half = node.makeType(sizes, Rotary::X);
  auto place = [&](int64_t which) {
    SmallVector<int64_t> at(5, 0);
    at[pairAxis] = which;
    return at;
  };
  SmallVector<int64_t> one(paired);
  one[pairAxis] = 1;
  Value first =
      emitter.reshape(emitter.slice(pairs, place(0), one), half.getShape());
  Value second =
      emitter.reshape(emitter.slice(pairs, place(1), one), half.getShape());

  // 2. Turned.
  Value real = emitter.elementwise(
      half, {first, second, cosine, sine}, [](Emitter &e, ArrayRef<Value> in) {
        return e.sub(e.mul(in[2], in[0]), e.mul(in[3], in[1]));
      });
  Value imaginary = emitter.elementwise(
      half, {first, second, cosine, sine}, [](Emitter &e, ArrayRef<Value> in) {
        return e.add(e.mul(in[3], in[0]), e.mul(in[2], in[1]));
      });

  // 3. Back to where they were.
  Value result = emitter.empty(node.makeType(paired, Rotary::X));
  result = emitter.insert(emitter.reshape(real, one), result, place(0));
  result = emitter.insert(emitter.reshape(imaginary, one), result, place(1));
  sizes.back() = rotary.turned;
  result = emitter.reshape(result, sizes);
  if (rotary.turned != rotary.size)
    result = emitter.insert(result, x, offsets);
  return emitter.reshape(result, node.shape(Rotary::X));
}

void penstock::onnx::addRotaryEmbedding(OperatorTable &table) {
  table.add("RotaryEmbedding", {23}, bound<inferSame<Rotary>>, nullptr,
            bound<lowerRotary>);
}
