//===- Attention.cpp - Scaled dot-product attention -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two products with a softmax between them. Heads stay where they lie: the
// products read and write them by strides, and nothing is transposed. Grouped
// queries share keys and values in the maps, which are not repeated in memory.
//===----------------------------------------------------------------------===//

#include "AttentionShapes.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

static Types inferAttention(Attention &attention, NodeBinder &node) {
  auto [batch, heads, groups, queries, keys, size, valueSize] = std::tuple(
      attention.batch, attention.heads, attention.groups, attention.queries,
      attention.keys, attention.size, attention.valueSize);
  Type element = node.elementType(Attention::Query);
  const SmallVector<int64_t> shapes[] = {attention.resultShape(),
                                         {batch, groups, keys, size},
                                         {batch, groups, keys, valueSize},
                                         {batch, heads, queries, keys}};
  SmallVector<Type> types;
  for (unsigned i = 0; i < node.node.getNumResults() && i < 4; ++i)
    types.push_back(RankedTensorType::get(shapes[i], element));
  return types;
}

namespace {
/// Dimensions of the iteration spaces, and of scores: [batch, group, head in
/// the group, query, key].
enum Dim { B, G, H, Q, K, D };

class AttentionWriter {
public:
  AttentionWriter(NodeBinder &node, Emitter &emitter, Attention &attention)
      : node(node), emitter(emitter), attention(attention),
        element(node.elementType(Attention::Query).getIntOrFloatBitWidth() < 32
                    ? emitter.builder.getF32Type()
                    : node.elementType(Attention::Query)),
        scores(RankedTensorType::get({attention.batch, attention.groups,
                                      attention.perGroup(), attention.queries,
                                      attention.keys},
                                     element)) {}
  Values run();

private:
  /// The scores, and as they are before the softcap.
  Value emitScores(Value &raw);
  Value maskScores(Value raw, Value &rowIsMasked);
  Value emitSoftmax(Value masked, Value rowIsMasked);
  /// Scores of 0 in the masked rows, as the softmax takes them, are -inf.
  Value asMasked(Value masked, Value rowIsMasked);
  Value emitResult(Value probabilities);
  /// The mask as an addend, over axes (batch, group, head, query, key) of
  /// which those of size 1 are left in; null without a mask.
  Value emitBias();
  Value findMaskedRows(Value bias);
  /// In the body of an op over scores: the key is behind the query, which is
  /// behind all earlier steps.
  Value isLater(Emitter &inside) const;
  Value headsFirst(Value value, int64_t size);
  /// The keys or values with those of earlier steps in front.
  Value withPast(unsigned operand, unsigned past, int64_t size);
  Value cast(Value value, Type to);
  /// An operand, widened: half floats are computed with as f32.
  Value operand(unsigned i) { return cast(node.operand(i), element); }

  /// Joined with those of earlier steps, heads come before positions.
  bool keysAreFlat() const { return attention.isFlat && attention.past == 0; }

  NodeBinder &node;
  Emitter &emitter;
  Attention &attention;
  Type element;
  RankedTensorType scores;
  Value keys, values;
};
} // namespace

Value AttentionWriter::cast(Value value, Type to) {
  RankedTensorType type = Emitter::getType(value);
  if (type.getElementType() == to)
    return value;
  return emitter.elementwise(RankedTensorType::get(type.getShape(), to), value,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return inside.cast(scalars[0], to);
                             });
}

Value AttentionWriter::emitScores(Value &raw) {
  const Attention &a = attention;
  Value q = operand(Attention::Query), k = cast(keys, element);
  SmallVector<int64_t> dimsQ, dimsK;
  if (a.isFlat) {
    q = emitter.reshape(q,
                        {a.batch, a.queries, a.groups, a.perGroup(), a.size});
    dimsQ = {B, Q, G, H, D};
  } else {
    q = emitter.reshape(q,
                        {a.batch, a.groups, a.perGroup(), a.queries, a.size});
    dimsQ = {B, G, H, Q, D};
  }
  dimsK = {B, G, K, D};
  if (keysAreFlat()) {
    k = emitter.reshape(k, {a.batch, a.keys, a.groups, a.size});
    dimsK = {B, K, G, D};
  }
  Value product =
      emitter.contract(q, k, scores,
                       {emitter.map(6, dimsQ), emitter.map(6, dimsK),
                        emitter.map(6, {B, G, H, Q, K})});
  raw = emitter.elementwise(
      scores, product, [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.mul(scalars[0], inside.scalar(element, a.scale));
      });
  if (a.softcap == 0)
    return raw;
  return emitter.elementwise(
      scores, raw, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value cap = inside.scalar(element, a.softcap);
        Value bounded = inside.make<math::TanhOp>(inside.div(scalars[0], cap));
        return inside.mul(bounded, cap);
      });
}

Value AttentionWriter::emitBias() {
  if (!node.has(Attention::Mask))
    return {};
  Value mask = node.operand(Attention::Mask);
  ArrayRef<int64_t> shape = attention.mask;
  bool perHead = shape[1] != 1;
  SmallVector<int64_t> five = {shape[0], perHead ? attention.groups : 1,
                               perHead ? attention.perGroup() : 1, shape[2],
                               shape[3]};
  mask = emitter.reshape(mask, five);
  if (!Emitter::getType(mask).getElementType().isInteger(1))
    return cast(mask, element);
  return emitter.elementwise(RankedTensorType::get(five, element), mask,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return inside.select(scalars[0],
                                                    inside.scalar(element, 0),
                                                    inside.lowest(element));
                             });
}

Value AttentionWriter::isLater(Emitter &inside) const {
  OpBuilder &b = inside.builder;
  Value query = linalg::IndexOp::create(b, inside.loc, Q);
  Value key = linalg::IndexOp::create(b, inside.loc, K);
  if (attention.past != 0)
    query = arith::AddIOp::create(
        b, inside.loc, query,
        arith::ConstantIndexOp::create(b, inside.loc, attention.past));
  return arith::CmpIOp::create(b, inside.loc, arith::CmpIPredicate::ugt, key,
                               query);
}

/// Returns, per row, true if its largest addend is -inf: no key is attended.
Value AttentionWriter::findMaskedRows(Value bias) {
  ArrayRef<int64_t> shape = Emitter::getShape(bias);
  SmallVector<int64_t> rows(shape.drop_back());
  // With a causal mask the keys after the query are out as well.
  SmallVector<int64_t> full(shape);
  if (attention.isCausal) {
    full[Q] = rows[Q] = attention.queries;
    full[K] = attention.keys;
    bias = emitter.elementwise(RankedTensorType::get(full, element), bias,
                               [&](Emitter &inside, ArrayRef<Value> scalars) {
                                 Value later = isLater(inside);
                                 return inside.select(
                                     later, inside.lowest(element), scalars[0]);
                               });
  }
  Value largest = emitter.reduce(bias, static_cast<int64_t>(K),
                                 emitter.lowest(element), &Emitter::max);
  Value masked = emitter.elementwise(
      RankedTensorType::get(rows, emitter.builder.getI1Type()), largest,
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.equal(scalars[0], inside.lowest(element));
      });
  rows.push_back(1);
  return emitter.reshape(masked, rows);
}

Value AttentionWriter::maskScores(Value raw, Value &rowIsMasked) {
  Value bias = emitBias();
  if (!bias && !attention.isCausal)
    return raw;
  SmallVector<Value> operands = {raw};
  if (bias) {
    operands.push_back(bias);
    rowIsMasked = findMaskedRows(bias);
    operands.push_back(rowIsMasked);
  }
  return emitter.elementwise(
      scores, operands, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value score = scalars[0];
        if (bias)
          score = inside.add(score, scalars[1]);
        if (attention.isCausal) {
          Value later = isLater(inside);
          score = inside.select(later, inside.lowest(element), score);
        }
        // A row without keys stays finite, and is zero behind the softmax.
        if (bias)
          score = inside.select(scalars[2], inside.scalar(element, 0), score);
        return score;
      });
}

Value AttentionWriter::emitSoftmax(Value masked, Value rowIsMasked) {
  Value result = emitter.make<linalg::SoftmaxOp>(
      TypeRange(scores), masked, emitter.empty(scores), uint64_t(K));
  if (!rowIsMasked)
    return result;
  return emitter.elementwise(
      scores, {result, rowIsMasked},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.select(scalars[1], inside.scalar(element, 0), scalars[0]);
      });
}

Value AttentionWriter::asMasked(Value masked, Value rowIsMasked) {
  if (!rowIsMasked)
    return masked;
  return emitter.elementwise(
      scores, {masked, rowIsMasked},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.select(scalars[1], inside.lowest(element), scalars[0]);
      });
}

Value AttentionWriter::emitResult(Value probabilities) {
  const Attention &a = attention;
  Value v = cast(values, element);
  SmallVector<int64_t> dimsV = {B, G, D, K}, dimsY, shape;
  if (keysAreFlat()) {
    v = emitter.reshape(v, {a.batch, a.keys, a.groups, a.valueSize});
    dimsV = {B, D, G, K};
  }
  if (a.isFlat) {
    dimsY = {B, Q, G, H, K};
    shape = {a.batch, a.queries, a.groups, a.perGroup(), a.valueSize};
  } else {
    dimsY = {B, G, H, Q, K};
    shape = {a.batch, a.groups, a.perGroup(), a.queries, a.valueSize};
  }
  // Here K is the element of a value, and D the key that is summed over.
  Value product =
      emitter.contract(probabilities, v, RankedTensorType::get(shape, element),
                       {emitter.map(6, {B, G, H, Q, D}), emitter.map(6, dimsV),
                        emitter.map(6, dimsY)});
  return emitter.reshape(product, a.resultShape());
}

/// A key or value as the cache of the next step has it.
Value AttentionWriter::headsFirst(Value value, int64_t size) {
  if (!attention.isFlat)
    return value;
  int64_t steps = Emitter::getShape(value)[1];
  Value parts =
      emitter.reshape(value, {attention.batch, steps, attention.groups, size});
  return emitter.transpose(parts, {0, 2, 1, 3});
}

Value AttentionWriter::withPast(unsigned operand, unsigned past, int64_t size) {
  if (attention.past == 0)
    return node.operand(operand);
  Value all = emitter.empty(node.makeType(
      {attention.batch, attention.groups, attention.keys, size}, operand));
  SmallVector<int64_t> offsets(4, 0);
  for (Value part :
       {node.operand(past), headsFirst(node.operand(operand), size)}) {
    all = emitter.insert(part, all, offsets);
    offsets[2] += Emitter::getShape(part)[2];
  }
  return all;
}

Values AttentionWriter::run() {
  keys = withPast(Attention::Key, Attention::PastKey, attention.size);
  values =
      withPast(Attention::Values, Attention::PastValue, attention.valueSize);
  Value raw, rowIsMasked;
  Value bounded = emitScores(raw);
  Value masked = maskScores(bounded, rowIsMasked);
  Value probabilities = emitSoftmax(masked, rowIsMasked);
  Type narrow = node.elementType(Attention::Query);
  SmallVector<Value> results = {cast(emitResult(probabilities), narrow)};
  unsigned count = node.node.getNumResults();
  if (count > 1)
    results.push_back(keysAreFlat() ? headsFirst(keys, attention.size) : keys);
  if (count > 2)
    results.push_back(keysAreFlat() ? headsFirst(values, attention.valueSize)
                                    : values);
  if (count > 3) {
    Value scored = attention.outputMode == 2   ? asMasked(masked, rowIsMasked)
                   : attention.outputMode == 3 ? probabilities
                   : attention.outputMode == 1 ? bounded
                                               : raw;
    results.push_back(emitter.reshape(
        cast(scored, narrow),
        {attention.batch, attention.heads, attention.queries, attention.keys}));
  }
  return results;
}

static Values lowerAttention(Attention &attention, NodeBinder &node,
                             Emitter &emitter) {
  return AttentionWriter(node, emitter, attention).run();
}

void penstock::onnx::addAttention(OperatorTable &table) {
  table.add("Attention", {23}, bound<inferAttention>, nullptr,
            bound<lowerAttention>);
}
