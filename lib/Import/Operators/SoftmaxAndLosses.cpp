//===- SoftmaxAndLosses.cpp - Softmax, LogSoftmax and class losses --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax, log-softmax and the plain cross-entropy stay composite, so that they
// are differentiated whole; the other forms of the losses pick from the
// log-probabilities by comparing the class index with the label.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"
#include "SoftmaxAxis.h"

#include "dialects/Nn/Nn.h"

#include <cmath>

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

//===--- Softmax, LogSoftmax ---===//

LogicalResult SoftmaxAxis::bind(NodeBinder &node) {
  bool oneAxis = node.getSince() >= 13;
  axis = oneAxis ? -1 : 1;
  if (failed(node.operands({"input"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0),
                                /*end=*/!oneAxis)))
    return failure();
  llvm::append_range(shape, node.shape(0));
  if (oneAxis)
    return success();
  SmallVector<int64_t> matrix = {1, 1};
  for (auto [d, size] : llvm::enumerate(shape))
    matrix[static_cast<int64_t>(d) >= axis] *= size;
  shape = matrix;
  axis = 1;
  return success();
}

template <bool log>
static Values lowerSoftmax(SoftmaxAxis &softmax, NodeBinder &node,
                           Emitter &emitter) {
  Value input = emitter.reshape(node.operand(0), softmax.shape);
  RankedTensorType type = Emitter::getType(input);
  Value result;
  if (log)
    result = emitter.make<nn::LogSoftmaxOp>(input, softmax.axis);
  else
    result = emitter.make<linalg::SoftmaxOp>(
        TypeRange(type), input, emitter.empty(type),
        static_cast<uint64_t>(softmax.axis));
  return emitter.reshape(result, node.shape(0));
}

//===--- SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss ---===//

namespace {
struct ClassLoss {
  std::string reduction = "mean";
  std::optional<int64_t> ignore;
  /// The scores without their class axis, which is axis 1.
  SmallVector<int64_t> samples;
  RankedTensorType loss;

  LogicalResult bind(NodeBinder &node);
  /// The sum (or, without a reduction, each) of what `scale` makes of the
  /// scalars of `operand` at the label's class; ignored labels give zero.
  Value pick(NodeBinder &node, Emitter &emitter, Value operand,
             Emitter::Body scale);
};
} // namespace

LogicalResult ClassLoss::bind(NodeBinder &node) {
  if (failed(node.operands({"scores", "labels", "weights"}, 2)) ||
      failed(node.requireFloat(0)) || failed(node.requireInteger(1)) ||
      failed(node.attribute("reduction", reduction)) ||
      failed(node.attribute("ignore_index", ignore)))
    return failure();
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return node.badAttribute("reduction", "\"mean\", \"sum\" or \"none\"");
  if (node.rank(0) < 2)
    return node.error() << "operand 'scores' is " << node.type(0)
                        << ", it must have the samples at axis 0 and the "
                           "classes at axis 1";
  llvm::append_range(samples, node.shape(0));
  samples.erase(samples.begin() + 1);
  if (node.shape(1) != ArrayRef<int64_t>(samples))
    return node.error() << "operand 'labels' is " << node.type(1)
                        << ", its shape must be that of the scores "
                        << node.type(0) << " without axis 1";
  if (node.has(2)) {
    if (failed(node.requireSameElementType(0, 2)))
      return failure();
    if (node.shape(2) != ArrayRef<int64_t>({node.shape(0)[1]}))
      return node.error() << "operand 'weights' is " << node.type(2)
                          << ", it must have one weight for each of the "
                          << node.shape(0)[1] << " classes";
  }
  loss = node.makeType(reduction == "none" ? ArrayRef<int64_t>(samples)
                                           : ArrayRef<int64_t>());
  return success();
}

Value ClassLoss::pick(NodeBinder &node, Emitter &emitter, Value operand,
                      Emitter::Body scale) {
  // Dimensions: the samples' axes, then the classes.
  int64_t rank = node.rank(0);
  SmallVector<int64_t> sampleDims =
      llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  SmallVector<int64_t> scoreDims = sampleDims;
  scoreDims.insert(scoreDims.begin() + 1, rank - 1);
  bool isVector = Emitter::getShape(operand).size() == 1;
  bool each = reduction == "none";

  SmallVector<Value> operands = {operand, node.operand(1)};
  SmallVector<AffineMap> maps = {isVector ? emitter.map(rank, {rank - 1})
                                          : emitter.map(rank, scoreDims),
                                 emitter.map(rank, sampleDims)};
  bool weighted = node.has(2) && !isVector;
  if (weighted) {
    operands.push_back(node.operand(2));
    maps.push_back(emitter.map(rank, {rank - 1}));
  }
  maps.push_back(each ? emitter.map(rank, sampleDims) : emitter.map(rank, {}));
  SmallVector<utils::IteratorType> iterators(
      rank,
      each ? utils::IteratorType::parallel : utils::IteratorType::reduction);
  iterators.back() = utils::IteratorType::reduction;

  Type element = node.elementType(0);
  Value out = emitter.filled(loss, emitter.scalar(element, 0));
  return emitter.generic(
      operands, out, maps, iterators,
      [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
        OpBuilder &b = inside.builder;
        Value label = scalars[1];
        Value column = linalg::IndexOp::create(b, inside.loc, rank - 1);
        Value isLabel = inside.equal(
            column,
            arith::IndexCastOp::create(b, inside.loc, b.getIndexType(), label));
        Value zero = inside.scalar(element, 0);
        Value term =
            inside.select(isLabel, scale(inside, scalars.drop_back()), zero);
        // A label that names no class makes the loss NaN, unless it is ignored.
        auto integer = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(
              b, inside.loc, b.getIntegerAttr(label.getType(), value));
        };
        Value valid =
            arith::CmpIOp::create(b, inside.loc, arith::CmpIPredicate::ult,
                                  label, integer(node.shape(0)[1]));
        term = inside.select(valid, term, inside.scalar(element, NAN));
        if (ignore)
          term =
              inside.select(inside.equal(label, integer(*ignore)), zero, term);
        return inside.add(scalars.back(), term);
      });
}

template <bool hasLogProbabilities>
static Types inferClassLoss(ClassLoss &loss, NodeBinder &node) {
  if (hasLogProbabilities && node.node.getNumResults() == 2)
    return {loss.loss, node.type(0)};
  return loss.loss;
}

/// A label names a class, or is left out.
static std::optional<Operator::Range> rangeOfLabels(NodeBinder &node,
                                                    unsigned i) {
  ClassLoss loss;
  if (i != 1 || failed(loss.bind(node)))
    return std::nullopt;
  return Operator::Range{0, node.shape(0)[1], loss.ignore};
}

/// From log-probabilities [N, C, ...] to the loss.
static Value emitFromLogProbabilities(ClassLoss &loss, NodeBinder &node,
                                      Emitter &emitter, Value logs) {
  Value sum = loss.pick(node, emitter, logs,
                        [](Emitter &inside, ArrayRef<Value> scalars) -> Value {
                          Value negative = inside.neg(scalars[0]);
                          return scalars.size() == 3
                                     ? inside.mul(negative, scalars[2])
                                     : negative;
                        });
  if (loss.reduction != "mean")
    return sum;
  // The mean is over the weights of the labels that count.
  Value ones = node.has(2)
                   ? node.operand(2)
                   : emitter.filled(node.makeType({node.shape(0)[1]}),
                                    emitter.scalar(node.elementType(0), 1));
  Value total =
      loss.pick(node, emitter, ones,
                [](Emitter &, ArrayRef<Value> scalars) { return scalars[0]; });
  return emitter.elementwise(
      loss.loss, {sum, total},
      [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
        // Where all labels are ignored, nothing is divided by nothing.
        Value by = scalars[1];
        Type type = by.getType();
        if (loss.ignore)
          by = inside.select(inside.equal(by, inside.scalar(type, 0)),
                             inside.scalar(type, 1), by);
        return inside.div(scalars[0], by);
      });
}

static Values lowerCrossEntropy(ClassLoss &loss, NodeBinder &node,
                                Emitter &emitter) {
  bool wantsLogs = node.node.getNumResults() == 2;
  bool plain = loss.reduction == "mean" && !node.has(2);
  // What --loss says beyond the standard, see LossNodes.cpp.
  auto smoothing =
      dyn_cast_or_null<FloatAttr>(node.node.getParam("label_smoothing"));
  auto weights =
      dyn_cast_or_null<DenseF64ArrayAttr>(node.node.getParam("class_weights"));
  Value logs, result;
  if (!plain || (wantsLogs && !node.node.getOutputs()[1].use_empty()))
    logs = emitter.make<nn::LogSoftmaxOp>(node.operand(0),
                                          /*dim=*/1);
  if (plain) {
    // The classes last.
    SmallVector<int64_t> order =
        llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
    order.erase(order.begin() + 1);
    order.push_back(1);
    Value scores = emitter.transpose(node.operand(0), order);
    IntegerAttr ignore = loss.ignore
                             ? emitter.builder.getI64IntegerAttr(*loss.ignore)
                             : IntegerAttr();
    result = nn::CrossEntropyOp::create(emitter.builder, emitter.loc,
                                        TypeRange{loss.loss, scores.getType()},
                                        scores, node.operand(1), ignore,
                                        smoothing, weights)
                 .getLoss();
  } else {
    result = emitFromLogProbabilities(loss, node, emitter, logs);
  }
  if (!wantsLogs)
    return result;
  // Nobody reads it: any value of the type stands for it.
  return {result, logs ? logs : emitter.empty(node.type(0))};
}

static Values lowerLikelihood(ClassLoss &loss, NodeBinder &node,
                              Emitter &emitter) {
  return emitFromLogProbabilities(loss, node, emitter, node.operand(0));
}

void penstock::onnx::addSoftmaxAndLosses(OperatorTable &table) {
  table.add("Softmax", {1, 11, 13}, bound<inferSame<SoftmaxAxis>>, nullptr,
            bound<lowerSoftmax<false>>);
  table.add("LogSoftmax", {1, 11, 13}, bound<inferSame<SoftmaxAxis>>, nullptr,
            bound<lowerSoftmax<true>>);
  table.add("SoftmaxCrossEntropyLoss", {12, 13}, bound<inferClassLoss<true>>,
            nullptr, bound<lowerCrossEntropy>);
  table.add("NegativeLogLikelihoodLoss", {12, 13, 22},
            bound<inferClassLoss<false>>, nullptr, bound<lowerLikelihood>);
  for (StringRef type :
       {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})
    table.set(type, &Operator::range, &rangeOfLabels);
}
