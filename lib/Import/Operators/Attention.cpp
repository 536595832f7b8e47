//===- Attention.cpp - Scaled dot-product attention -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two products with a softmax between them. Heads stay where they lie: the
// products read and write them by strides, and nothing is transposed. Grouped
// queries share keys and values in the maps, which are not repeated in memory.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

namespace {
enum Operand { Query, Key, Values_, Mask, PastKey, PastValue };

struct Attention {
  bool isCausal = false;
  /// Operands are [batch, sequence, heads * size] instead of [batch, heads,
  /// sequence, size].
  bool isFlat;
  double scale = 0, softcap = 0;
  int64_t outputMode = 0;
  /// `keys` are all keys, the `past` ones of a cache in front.
  int64_t batch, heads, groups, queries, keys, size, valueSize, past = 0;
  /// The mask's shape with all four axes.
  SmallVector<int64_t> mask;

  LogicalResult bind(NodeBinder &node);
  int64_t perGroup() const { return heads / groups; }
  SmallVector<int64_t> resultShape() const {
    if (isFlat)
      return {batch, queries, heads * valueSize};
    return {batch, heads, queries, valueSize};
  }

private:
  LogicalResult bindShapes(NodeBinder &node);
  LogicalResult bindPast(NodeBinder &node);
  LogicalResult bindMask(NodeBinder &node);
};
} // namespace

LogicalResult Attention::bindShapes(NodeBinder &node) {
  int64_t rank = node.rank(Query);
  isFlat = rank == 3;
  if (rank != 3 && rank != 4)
    return node.error() << "operand 'Q' is " << node.type(Query)
                        << ", it must have 3 or 4 axes";
  for (unsigned i : {Key, Values_})
    if (failed(node.requireSameElementType(Query, i)))
      return failure();
    else if (node.rank(i) != rank)
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must have as many axes as "
                          << "'Q', which is " << node.type(Query);
  std::optional<int64_t> givenHeads, givenGroups;
  if (failed(node.attribute("q_num_heads", givenHeads)) ||
      failed(node.attribute("kv_num_heads", givenGroups)))
    return failure();
  ArrayRef<int64_t> q = node.shape(Query), k = node.shape(Key),
                    v = node.shape(Values_);
  if (isFlat) {
    if (!givenHeads || !givenGroups)
      return node.error() << "operands of 3 axes need the attributes "
                             "'q_num_heads' and 'kv_num_heads'";
    heads = *givenHeads;
    groups = *givenGroups;
    if (heads < 1 || groups < 1 || q[2] % heads || k[2] % groups ||
        v[2] % groups)
      return node.error() << "attributes 'q_num_heads' = " << heads
                          << " and 'kv_num_heads' = " << groups
                          << " do not divide the last axes of "
                          << node.type(Query) << ", " << node.type(Key)
                          << " and " << node.type(Values_);
    size = q[2] / heads;
    valueSize = v[2] / groups;
    if (k[2] / groups != size)
      return node.error() << "heads of 'Q' have " << size
                          << " elements, those of 'K' " << k[2] / groups;
  } else {
    heads = q[1];
    groups = k[1];
    size = q[3];
    valueSize = v[3];
    if (v[1] != groups || k[3] != size ||
        (givenHeads && *givenHeads != heads) ||
        (givenGroups && *givenGroups != groups))
      return node.error() << "the heads of " << node.type(Query) << ", "
                          << node.type(Key) << " and " << node.type(Values_)
                          << " do not fit each other";
  }
  batch = q[0];
  queries = q[isFlat ? 1 : 2];
  keys = k[isFlat ? 1 : 2];
  if (k[0] != batch || v[0] != batch || v[isFlat ? 1 : 2] != keys)
    return node.error() << "batches or sequences of " << node.type(Query)
                        << ", " << node.type(Key) << " and "
                        << node.type(Values_) << " differ";
  if (groups == 0 || heads % groups != 0)
    return node.error() << heads << " heads of queries cannot share " << groups
                        << " heads of keys";
  return success();
}

/// Keys and values of earlier steps, [batch, heads, steps, size].
LogicalResult Attention::bindPast(NodeBinder &node) {
  if (node.has(PastKey) != node.has(PastValue))
    return node.error() << "has one of 'past_key' and 'past_value'; it needs "
                           "both or neither";
  if (!node.has(PastKey))
    return success();
  bool fits = node.rank(PastKey) == 4 && node.rank(PastValue) == 4;
  if (fits) {
    past = node.shape(PastKey)[2];
    fits = node.shape(PastKey) == ArrayRef({batch, groups, past, size}) &&
           node.shape(PastValue) == ArrayRef({batch, groups, past, valueSize});
  }
  if (!fits || failed(node.requireSameElementType(Query, PastKey)) ||
      failed(node.requireSameElementType(Query, PastValue)))
    return node.error() << "operands 'past_key' and 'past_value' are "
                        << node.type(PastKey) << " and " << node.type(PastValue)
                        << ", which are no earlier steps of " << node.type(Key)
                        << " and " << node.type(Values_);
  keys += past;
  return success();
}

LogicalResult Attention::bindMask(NodeBinder &node) {
  if (!node.has(Mask))
    return success();
  if (!node.elementType(Mask).isInteger(1) &&
      failed(node.requireSameElementType(Query, Mask)))
    return failure();
  mask.assign(4, 1);
  ArrayRef<int64_t> given = node.shape(Mask);
  const int64_t full[] = {batch, heads, queries, keys};
  bool fits = given.size() <= 4;
  for (size_t i = 0; fits && i < given.size(); ++i) {
    size_t axis = 4 - given.size() + i;
    mask[axis] = given[i];
    fits = given[i] == 1 || given[i] == full[axis];
  }
  if (!fits)
    return node.error() << "operand 'attn_mask' is " << node.type(Mask)
                        << ", which does not broadcast to " << batch << "x"
                        << heads << "x" << queries << "x" << keys;
  return success();
}

LogicalResult Attention::bind(NodeBinder &node) {
  if (failed(node.operands(
          {"Q", "K", "V", "attn_mask", "past_key", "past_value"}, 3)) ||
      failed(node.requireFloat(Query)) || failed(bindShapes(node)) ||
      failed(node.attribute("is_causal", isCausal)) || failed(bindPast(node)) ||
      failed(bindMask(node)) || failed(node.attribute("softcap", softcap)) ||
      failed(node.attribute("qk_matmul_output_mode", outputMode)))
    return failure();
  for (StringRef name : {"left_window_size", "right_window_size"}) {
    int64_t reach = -1;
    if (failed(node.attribute(name, reach)))
      return failure();
    if (reach != -1)
      return node.error() << "attribute '" << name
                          << "' is of a later version; use a mask";
  }
  if (softcap < 0)
    return node.badAttribute("softcap", "a number that is not negative");
  if (outputMode < 0 || outputMode > 3)
    return node.badAttribute("qk_matmul_output_mode", "0, 1, 2 or 3");
  scale = size ? 1 / std::sqrt(static_cast<double>(size)) : 1;
  return node.attribute("scale", scale);
}

static LogicalResult inferAttention(NodeBinder &node, Types &types) {
  Attention attention;
  if (failed(attention.bind(node)))
    return failure();
  auto [batch, heads, groups, queries, keys, size, valueSize] = std::tuple(
      attention.batch, attention.heads, attention.groups, attention.queries,
      attention.keys, attention.size, attention.valueSize);
  Type element = node.elementType(Query);
  const SmallVector<int64_t> shapes[] = {attention.resultShape(),
                                         {batch, groups, keys, size},
                                         {batch, groups, keys, valueSize},
                                         {batch, heads, queries, keys}};
  for (unsigned i = 0; i < node.node.getNumResults() && i < 4; ++i)
    types.push_back(RankedTensorType::get(shapes[i], element));
  return success();
}

namespace {
/// Dimensions of the iteration spaces, and of scores: [batch, group, head in
/// the group, query, key].
enum Dim { B, G, H, Q, K, D };

class AttentionWriter {
public:
  AttentionWriter(NodeBinder &node, OpBuilder &builder, Attention &attention)
      : node(node), emitter(builder, node.getLoc()), attention(attention),
        element(node.elementType(Query).getIntOrFloatBitWidth() < 32
                    ? builder.getF32Type()
                    : node.elementType(Query)),
        scores(RankedTensorType::get({attention.batch, attention.groups,
                                      attention.perGroup(), attention.queries,
                                      attention.keys},
                                     element)) {}
  void run(Values &results);

private:
  /// The scores, and as they are before the softcap.
  Value emitScores(Value &raw);
  Value maskScores(Value raw, Value &rowIsMasked);
  Value emitSoftmax(Value masked, Value rowIsMasked);
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

  NodeBinder &node;
  Emitter emitter;
  Attention &attention;
  /// Joined with those of earlier steps, heads come before positions.
  bool keysAreFlat() const { return attention.isFlat && attention.past == 0; }

  Type element;
  RankedTensorType scores;
  Value keys, values;
};
} // namespace

Value AttentionWriter::cast(Value value, Type to) {
  RankedTensorType type = Emitter::typeOf(value);
  if (type.getElementType() == to)
    return value;
  return emitter.elementwise(RankedTensorType::get(type.getShape(), to), value,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return inside.cast(scalars[0], to);
                             });
}

Value AttentionWriter::emitScores(Value &raw) {
  const Attention &a = attention;
  Value q = operand(Query), k = cast(keys, element);
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
        Value bounded = math::TanhOp::create(inside.builder, inside.loc,
                                             inside.div(scalars[0], cap));
        return inside.mul(bounded, cap);
      });
}

Value AttentionWriter::emitBias() {
  if (!node.has(Mask))
    return {};
  Value mask = node.operand(Mask);
  ArrayRef<int64_t> shape = attention.mask;
  bool perHead = shape[1] != 1;
  SmallVector<int64_t> five = {shape[0], perHead ? attention.groups : 1,
                               perHead ? attention.perGroup() : 1, shape[2],
                               shape[3]};
  mask = emitter.reshape(mask, five);
  if (!Emitter::typeOf(mask).getElementType().isInteger(1))
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

/// Whether the row's largest addend is -inf: no key is attended.
Value AttentionWriter::findMaskedRows(Value bias) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(bias);
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
  Value largest =
      emitter.reduce(bias, static_cast<int64_t>(K), emitter.lowest(element),
                     [](Emitter &inside, ArrayRef<Value> scalars) {
                       return inside.max(scalars[0], scalars[1]);
                     });
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
  Value result =
      linalg::SoftmaxOp::create(emitter.builder, emitter.loc, TypeRange(scores),
                                masked, emitter.empty(scores), uint64_t(K))
          ->getResult(0);
  if (!rowIsMasked)
    return result;
  return emitter.elementwise(
      scores, {result, rowIsMasked},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.select(scalars[1], inside.scalar(element, 0), scalars[0]);
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
  int64_t steps = Emitter::shapeOf(value)[1];
  Value parts =
      emitter.reshape(value, {attention.batch, steps, attention.groups, size});
  return emitter.transpose(parts, {0, 2, 1, 3});
}

Value AttentionWriter::withPast(unsigned operand, unsigned past, int64_t size) {
  if (attention.past == 0)
    return node.operand(operand);
  MLIRContext *context = emitter.builder.getContext();
  Value all = emitter.empty(RankedTensorType::get(
      {attention.batch, attention.groups, attention.keys, size},
      node.elementType(operand)));
  SmallVector<int64_t> offsets(4, 0), ones(4, 1);
  for (Value part :
       {node.operand(past), headsFirst(node.operand(operand), size)}) {
    all = tensor::InsertSliceOp::create(
        emitter.builder, emitter.loc, part, all,
        getAsIndexOpFoldResult(context, offsets),
        getAsIndexOpFoldResult(context, Emitter::shapeOf(part)),
        getAsIndexOpFoldResult(context, ones));
    offsets[2] += Emitter::shapeOf(part)[2];
  }
  return all;
}

void AttentionWriter::run(Values &results) {
  keys = withPast(Key, PastKey, attention.size);
  values = withPast(Values_, PastValue, attention.valueSize);
  Value raw, rowIsMasked;
  Value bounded = emitScores(raw);
  Value masked = maskScores(bounded, rowIsMasked);
  Value probabilities = emitSoftmax(masked, rowIsMasked);
  Type narrow = node.elementType(Query);
  results.push_back(cast(emitResult(probabilities), narrow));
  unsigned count = node.node.getNumResults();
  if (count > 1)
    results.push_back(keysAreFlat() ? headsFirst(keys, attention.size) : keys);
  if (count > 2)
    results.push_back(keysAreFlat() ? headsFirst(values, attention.valueSize)
                                    : values);
  if (count > 3) {
    const Value modes[] = {raw, bounded, masked, probabilities};
    results.push_back(emitter.reshape(
        cast(modes[attention.outputMode], narrow),
        {attention.batch, attention.heads, attention.queries, attention.keys}));
  }
}

static LogicalResult lowerAttention(NodeBinder &node, OpBuilder &builder,
                                    Values &results) {
  Attention attention;
  if (failed(attention.bind(node)))
    return failure();
  AttentionWriter(node, builder, attention).run(results);
  return success();
}

void penstock::onnx::addAttention(OperatorTable &table) {
  table.add("Attention", {23}, inferAttention, nullptr, lowerAttention);
}
