//===- LayerNormalization.cpp - LayerNormalization and its fused forms ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layer and RMS normalization, alone or behind the sum that com.microsoft's
// forms put in front: of a skipped layer, or of embeddings.
//===----------------------------------------------------------------------===//

#include "Indexing.h"
#include "Normalizations.h"
#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

/// Returns true if an operand is a constant of ones: as a scale, it is none.
static bool isOnes(NodeBinder &node, unsigned i) {
  DenseElementsAttr constant = node.constant(i);
  return constant && constant.isSplat() &&
         constant.getSplatValue<APFloat>().isExactlyValue(1.0);
}

/// As many of the values as the node has outputs.
static Values take(NodeBinder &node, ArrayRef<Value> all) {
  return SmallVector<Value>(all.take_front(node.node.getNumResults()));
}

namespace {
struct LayerNorm : TrailingNorm {
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult LayerNorm::bind(NodeBinder &node) {
  return success(succeeded(node.operands({"X", "Scale", "B"}, 2)) &&
                 succeeded(TrailingNorm::bind(node)) &&
                 succeeded(bindAffine(node, 1)) &&
                 succeeded(bindAffine(node, 2)));
}

template <bool centered>
static Types inferLayerNorm(LayerNorm &norm, NodeBinder &node) {
  if (!centered && node.has(2))
    return node.error() << "takes no operand 'B'";
  SmallVector<Type> types = {node.type(0)};
  // RMSNormalization has one output, its contrib form also 1 / sqrt.
  for (unsigned i = 1; i < node.node.getNumResults() && i < (centered ? 3 : 2);
       ++i)
    types.push_back(norm.statistics);
  return types;
}

template <bool centered>
static Values lowerLayerNorm(LayerNorm &norm, NodeBinder &node,
                             Emitter &emitter) {
  Normalized out =
      emitTrailing(emitter, norm, node.operand(0),
                   isOnes(node, 1) ? Value() : node.operand(1),
                   node.has(2) ? node.operand(2) : Value(), centered);
  if (centered)
    return take(node, {out.result, out.mean, out.rstd});
  return take(node, {out.result, out.rstd});
}

//===--- com.microsoft: SkipLayerNormalization ---===//

namespace {
/// LayerNormalization(input + skip + bias), with the sum as another result.
struct SkipNorm : TrailingNorm {
  unsigned beta = 3, bias = 4;
  LogicalResult bind(NodeBinder &node, bool centered);
};
} // namespace

LogicalResult SkipNorm::bind(NodeBinder &node, bool centered) {
  LogicalResult named =
      centered ? node.operands({"input", "skip", "gamma", "beta", "bias"}, 3)
               : node.operands({"input", "skip", "gamma", "bias"}, 3);
  if (!centered)
    bias = 3;
  epsilon = 1e-12;
  if (failed(named) || failed(TrailingNorm::bind(node)) ||
      failed(bindAffine(node, 1)) || failed(bindAffine(node, 2)) ||
      failed(bindAffine(node, bias)) ||
      (centered && failed(bindAffine(node, beta))))
    return failure();
  return success();
}

static Types inferSkipNorm(SkipNorm &norm, NodeBinder &node) {
  SmallVector<Type> types;
  for (unsigned i = 0; i < node.node.getNumResults() && i < 4; ++i)
    types.push_back(i == 1 || i == 2 ? norm.statistics : node.type(0));
  return types;
}

template <bool centered>
static Values lowerSkipNorm(SkipNorm &norm, NodeBinder &node,
                            Emitter &emitter) {
  SmallVector<Value> terms = {node.operand(0), node.operand(1)};
  if (node.has(norm.bias))
    terms.push_back(node.operand(norm.bias));
  Value sum = emitter.elementwise(
      node.type(0), terms, [](Emitter &inside, ArrayRef<Value> scalars) {
        Value total = inside.add(scalars[0], scalars[1]);
        return scalars.size() == 3 ? inside.add(total, scalars[2]) : total;
      });
  Normalized out = emitTrailing(
      emitter, norm, sum, node.operand(2),
      centered && node.has(norm.beta) ? node.operand(norm.beta) : Value(),
      centered);
  if (!centered)
    out.mean = emitter.filled(norm.statistics, emitter.scalar(norm.stash, 0));
  return take(node, {out.result, out.mean, out.rstd, sum});
}

//===--- com.microsoft: EmbedLayerNormalization ---===//

namespace {
/// LayerNormalization of the sum of up to three embeddings, with that sum and
/// the lengths that a mask of the tokens says as further results.
struct EmbedNorm : TrailingNorm {
  enum Operand {
    Words,
    Segments,
    Word,
    Position,
    Segment,
    Gamma,
    Beta,
    Mask,
    Positions
  };
  LogicalResult bind(NodeBinder &node);

private:
  LogicalResult bindTables(NodeBinder &node);
};
} // namespace

LogicalResult EmbedNorm::bindTables(NodeBinder &node) {
  for (unsigned i : {Word, Position, Segment}) {
    if (!node.has(i))
      continue;
    if (failed(node.requireFloat(i)) ||
        failed(node.requireSameElementType(Word, i)))
      return failure();
    if (node.rank(i) != 2 || node.shape(i)[1] != node.shape(Word).back())
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i)
                          << ", it must be a matrix with rows like those of "
                          << node.type(Word);
  }
  if (node.has(Segment) != node.has(Segments))
    return node.error() << "has one of 'segment_ids' and 'segment_embedding'; "
                           "it needs both or neither";
  if (!node.has(Positions) && node.shape(Position)[0] < node.shape(Words)[1])
    return node.error() << "has sequences of " << node.shape(Words)[1]
                        << " tokens, but " << node.shape(Position)[0]
                        << " positions";
  return success();
}

LogicalResult EmbedNorm::bind(NodeBinder &node) {
  epsilon = 1e-12;
  if (failed(node.operands({"input_ids", "segment_ids", "word_embedding",
                            "position_embedding", "segment_embedding", "gamma",
                            "beta", "mask", "position_ids"},
                           1)))
    return failure();
  for (unsigned i : {Word, Position, Gamma, Beta})
    if (!node.has(i))
      return node.error() << "operand '" << node.operandName(i)
                          << "' is left out, but it is not optional";
  for (unsigned i : {Words, Segments, Mask, Positions}) {
    if (!node.has(i))
      continue;
    bool fits = succeeded(node.requireInteger(i)) && node.rank(i) == 2 &&
                node.rank(Words) == 2 &&
                node.shape(i)[1] == node.shape(Words)[1] &&
                (node.shape(i)[0] == node.shape(Words)[0] ||
                 (i == Positions && node.shape(i)[0] == 1));
    if (!fits)
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must be integers in the "
                          << "shape of " << node.type(Words);
  }
  if (failed(bindTables(node)))
    return failure();
  SmallVector<int64_t> shape(node.shape(Words));
  shape.push_back(node.shape(Word)[1]);
  return success(
      succeeded(TrailingNorm::bind(node, node.makeType(shape, Word))) &&
      succeeded(bindAffine(node, Gamma)) && succeeded(bindAffine(node, Beta)));
}

static Types inferEmbedNorm(EmbedNorm &norm, NodeBinder &node) {
  Type i32 = IntegerType::get(node.getContext(), 32);
  const RankedTensorType all[] = {
      norm.full, RankedTensorType::get(norm.full.getShape().take_front(1), i32),
      norm.full};
  return SmallVector<Type>(all, all + std::min(node.node.getNumResults(), 3u));
}

static std::optional<Operator::Range> rangeOfTokens(NodeBinder &node,
                                                    unsigned i) {
  EmbedNorm norm;
  if ((i != EmbedNorm::Words && i != EmbedNorm::Segments &&
       i != EmbedNorm::Positions) ||
      failed(norm.bind(node)))
    return std::nullopt;
  int64_t rows =
      node.shape(i == EmbedNorm::Words      ? EmbedNorm::Word
                 : i == EmbedNorm::Segments ? EmbedNorm::Segment
                                            : EmbedNorm::Position)[0];
  return Operator::Range{-rows, rows};
}

/// The rows of a table that the indices name.
static Value emitRows(Emitter &emitter, Value table, Value indices) {
  MLIRContext *context = emitter.getContext();
  SmallVector<int64_t> shape(Emitter::getShape(indices));
  shape.push_back(Emitter::getShape(table)[1]);
  AffineExpr at[] = {getAffineSymbolExpr(0, context),
                     getAffineDimExpr(2, context)};
  return nn::GatherOp::create(
      emitter.builder, emitter.loc,
      RankedTensorType::get(shape, Emitter::getType(table).getElementType()),
      table, indices, AffineMap::get(3, 1, at, context),
      emitter.builder.getArrayAttr(AffineMapAttr::get(emitter.map(3, {0, 1}))));
}

/// How many tokens of each sequence the mask keeps.
static Value countTokens(NodeBinder &node, Emitter &emitter,
                         const EmbedNorm &norm) {
  Type i32 = emitter.builder.getI32Type();
  auto type = RankedTensorType::get(norm.full.getShape().take_front(1), i32);
  Value zero = emitter.scalar(i32, 0);
  if (!node.has(EmbedNorm::Mask))
    return emitter.filled(type, zero);
  Value ones = emitter.elementwise(
      RankedTensorType::get(node.shape(EmbedNorm::Mask), i32),
      node.operand(EmbedNorm::Mask),
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Type given = scalars[0].getType();
        return inside.select(inside.equal(scalars[0], inside.scalar(given, 1)),
                             inside.scalar(i32, 1), inside.scalar(i32, 0));
      });
  return emitter.reduce(ones, {1}, zero, &Emitter::add);
}

static Values lowerEmbedNorm(EmbedNorm &norm, NodeBinder &node,
                             Emitter &emitter) {
  auto operand = [&](unsigned i) { return node.operand(i); };
  SmallVector<Value> terms = {
      emitRows(emitter, operand(norm.Word), operand(norm.Words))};
  if (node.has(norm.Positions)) {
    terms.push_back(
        emitRows(emitter, operand(norm.Position), operand(norm.Positions)));
  } else {
    // The first positions, in their order.
    terms.push_back(emitter.slice(operand(norm.Position), {0, 0},
                                  norm.full.getShape().drop_front()));
  }
  if (node.has(norm.Segments))
    terms.push_back(
        emitRows(emitter, operand(norm.Segment), operand(norm.Segments)));
  Value sum = emitter.elementwise(
      norm.full, terms, [](Emitter &inside, ArrayRef<Value> scalars) {
        Value total = inside.add(scalars[0], scalars[1]);
        return scalars.size() == 3 ? inside.add(total, scalars[2]) : total;
      });
  Normalized out = emitTrailing(emitter, norm, sum, operand(norm.Gamma),
                                operand(norm.Beta), /*centered=*/true);
  return take(node, {out.result, countTokens(node, emitter, norm), sum});
}

void penstock::onnx::addLayerNormalization(OperatorTable &table) {
  table.add("LayerNormalization", {17}, bound<inferLayerNorm<true>>, nullptr,
            bound<lowerLayerNorm<true>>);
  table.add("RMSNormalization", {23}, bound<inferLayerNorm<false>>, nullptr,
            bound<lowerLayerNorm<false>>);
  table.addMicrosoft("LayerNormalization", bound<inferLayerNorm<true>>,
                     bound<lowerLayerNorm<true>>);
  table.addMicrosoft("SimplifiedLayerNormalization",
                     bound<inferLayerNorm<false>>,
                     bound<lowerLayerNorm<false>>);
  table.addMicrosoft("SkipLayerNormalization", bound<inferSkipNorm, true>,
                     bound<lowerSkipNorm<true>, true>);
  table.addMicrosoft("SkipSimplifiedLayerNormalization",
                     bound<inferSkipNorm, false>,
                     bound<lowerSkipNorm<false>, false>);
  table.addMicrosoft("EmbedLayerNormalization", bound<inferEmbedNorm>,
                     bound<lowerEmbedNorm>);
  table.set("EmbedLayerNormalization", &Operator::range, &rangeOfTokens);
}
